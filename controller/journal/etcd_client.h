#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "engine/base/result.h"
#include "nodeagent/http/client.h"

namespace verger::controller {

/// "http://10.0.0.1:2379,https://…": at least one; the port defaults to etcd's 2379. Error:
/// kInvalidArgument.
Result<std::vector<http::Endpoint>> parse_etcd_endpoints(std::string_view urls);

struct EtcdKeyValue {
  std::string key;
  std::string value;
  std::int64_t mod_revision = 0;  ///< the store's revision that wrote it last
};

/// What etcd answers to a transaction or a range.
struct EtcdAnswer {
  std::int64_t revision = 0;  ///< of the store; that of every key which this transaction wrote
  bool succeeded = false;
  /// For each operation of the branch that was taken, what it read.
  std::vector<std::vector<EtcdKeyValue>> read{};
};

/// Of the member that answered; members differ little.
struct EtcdSize {
  std::int64_t bytes = 0;
  std::int64_t bytes_in_use = 0;
};

/// Parts of a transaction. Keys and values are any bytes.
namespace etcd {
nlohmann::json put(std::string_view key, std::string_view value, std::int64_t lease = 0);
nlohmann::json get(std::string_view key);
/// With `end`: all keys from `key` to before it.
nlohmann::json remove(std::string_view key, std::string_view end = {});
/// Keys from `from` to before `end`, in order, `limit` at most.
nlohmann::json get_range(std::string_view from, std::string_view end, std::size_t limit);
nlohmann::json is_absent(std::string_view key);
nlohmann::json was_written_at(std::string_view key, std::int64_t mod_revision);
nlohmann::json has_value(std::string_view key, std::string_view value);
/// The first key behind all that begin with `prefix`.
std::string end_of_prefix(std::string prefix);
}  // namespace etcd

/// Speaks with etcd's v3 JSON gateway; each call tries the endpoints in turn, the one that answered
/// last first, until the deadline of all of it.
///
/// Errors: kUnavailable: no endpoint took it; certainly nothing was changed. kUnknownOutcome: of
/// calls that write: one endpoint took it, and what became of it is not known. kNoSpace,
/// kUnauthorized, kInvalidArgument (too large for etcd), kNotFound: its answers.
class EtcdClient {
 public:
  EtcdClient(std::vector<http::Endpoint> endpoints, http::Client& client,
             std::chrono::milliseconds deadline)
      : endpoints_(std::move(endpoints)), client_(client), deadline_(deadline) {}

  /// All of `success` where all of `compare` holds, else all of `failure`.
  net::awaitable<Result<EtcdAnswer>> transact(nlohmann::json compare, nlohmann::json success,
                                              nlohmann::json failure);
  /// Linearizable: what any transaction that ended before has written is seen. A list of get() and
  /// get_range(), all of one moment.
  net::awaitable<Result<EtcdAnswer>> read(nlohmann::json gets);

  net::awaitable<Result<std::int64_t>> grant_lease(std::chrono::seconds ttl);
  /// kNotFound: it is over.
  net::awaitable<Result<void>> keep_lease(std::int64_t lease);
  /// Its keys go at once.
  net::awaitable<Result<void>> revoke_lease(std::int64_t lease);

  net::awaitable<Result<EtcdSize>> size();
  /// Forgets what keys were before this revision of the store. kNotFound: it has done so already.
  net::awaitable<Result<void>> compact(std::int64_t revision);

  [[nodiscard]] std::string urls() const;

 private:
  net::awaitable<Result<nlohmann::json>> ask(std::string path, std::string body, bool writes);

  std::vector<http::Endpoint> endpoints_;
  http::Client& client_;
  std::chrono::milliseconds deadline_;
  std::size_t preferred_ = 0;
};

}  // namespace verger::controller
