#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "nodeagent/client/answers.h"
#include "nodeagent/client/dialect.h"
#include "nodeagent/client/outcome.h"
#include "nodeagent/client/server_work.h"
#include "nodeagent/http/client.h"

namespace verger::client {

struct Credentials {
  std::string user;
  std::string password;
};
/// Looked at with each request, so that new ones count at once; null or without user: none are
/// sent.
using SharedCredentials = std::shared_ptr<const Credentials>;

struct ScavengeParameters {
  std::optional<std::int32_t> threads{};           ///< 1 to 4
  std::optional<std::int32_t> threshold{};         ///< 22.10; negative: all chunks
  std::optional<std::int32_t> throttle_percent{};  ///< 22.10; 1 to 100
  bool sync_only = false;                          ///< 22.10: no new point
  std::optional<std::int32_t> start_from_chunk{};  ///< of use before 22.10 only
};

struct NewEvent {
  std::string id;  ///< GUID; repeating an append with the same ids is safe
  std::string type;
  std::string data_json = "{}";
  std::string metadata_json{};  ///< empty: none
};
/// Expected versions of an append; others are event numbers from 0.
inline constexpr std::int64_t kAnyVersion = -2;
inline constexpr std::int64_t kNoStream = -1;
inline constexpr std::int64_t kStreamExists = -4;

/// Calls the node interface of one node. A value: copy it freely; `client` outlives every call.
///
/// Each call has `deadline` in all (the server's own is 10 s, and it does not always keep it). What
/// a version does not have is refused (unsupported_version) without a request. Nothing is repeated,
/// but for one case: gossip, info and ping, which any client may read, are sent again without
/// credentials when these were refused (Outcome::credentials_refused says so).
class NodeClient {
 public:
  NodeClient(http::Client& client, http::Endpoint node, std::optional<Credentials> credentials,
             NodeDialect dialect = {},
             std::chrono::milliseconds deadline = std::chrono::seconds(15));
  NodeClient(http::Client& client, http::Endpoint node, SharedCredentials credentials,
             NodeDialect dialect = {},
             std::chrono::milliseconds deadline = std::chrono::seconds(15));

  [[nodiscard]] const http::Endpoint& node() const { return node_; }
  [[nodiscard]] const NodeDialect& dialect() const { return dialect_; }
  void set_dialect(NodeDialect dialect) { dialect_ = dialect; }

  net::awaitable<Outcome<api::Gossip>> gossip() const;
  net::awaitable<Outcome<api::NodeInfo>> info() const;
  net::awaitable<Outcome<Nothing>> ping() const;
  net::awaitable<Outcome<Live>> live() const;
  net::awaitable<Outcome<Login>> login() const;
  net::awaitable<Outcome<StatusLines>> metrics() const;
  net::awaitable<Outcome<Stats>> stats() const;
  /// For users in $ops or $admins.
  net::awaitable<Outcome<NodeSettings>> settings() const;

  net::awaitable<Outcome<StartedScavenge>> start_scavenge(ScavengeParameters parameters) const;
  net::awaitable<Outcome<api::CurrentScavenge>> current_scavenge() const;
  net::awaitable<Outcome<LastScavenge>> last_scavenge() const;
  /// Waits for the end (from 22.10.1), minutes perhaps; when the deadline passes, read current.
  net::awaitable<Outcome<StoppedScavenge>> stop_scavenge(std::string id) const;
  net::awaitable<Outcome<StoppedScavenge>> stop_current_scavenge() const;
  /// The newest 20 entries of all nodes' runs.
  net::awaitable<Outcome<std::vector<api::ScavengeEvent>>> scavenges() const;
  /// The newest `count` entries of one run, at or below `from` where it is given.
  net::awaitable<Outcome<std::vector<api::ScavengeEvent>>> scavenge_log(
      std::string id, std::int32_t count, std::optional<std::int64_t> from = std::nullopt) const;

  net::awaitable<Outcome<Nothing>> resign() const;
  net::awaitable<Outcome<Nothing>> set_priority(std::int32_t priority) const;
  net::awaitable<Outcome<Nothing>> reload() const;
  net::awaitable<Outcome<Nothing>> shutdown() const;
  net::awaitable<Outcome<MergeIndexes>> merge_indexes() const;

  net::awaitable<Outcome<std::vector<ServerWork>>> projections() const;
  net::awaitable<Outcome<std::vector<ServerWork>>> subscriptions() const;
  net::awaitable<Outcome<Nothing>> enable_projection(std::string name) const;
  /// Of the cluster, all of them.
  net::awaitable<Outcome<Nothing>> restart_projections() const;
  net::awaitable<Outcome<Nothing>> restart_subscriptions() const;

  net::awaitable<Outcome<AutoScavenge>> auto_scavenge() const;
  net::awaitable<Outcome<Nothing>> pause_auto_scavenge() const;
  net::awaitable<Outcome<Nothing>> resume_auto_scavenge() const;

  /// Where Atom is on (NodeInfo::atom_pub); elsewhere no_such_route.
  net::awaitable<Outcome<Appended>> append(std::string stream, std::vector<NewEvent> events,
                                           std::int64_t expected_version = kAnyVersion) const;
  net::awaitable<Outcome<StreamPage>> read_forward(std::string stream, std::int64_t from,
                                                   std::int32_t count) const;
  /// From the head where `from` is empty.
  net::awaitable<Outcome<StreamPage>> read_backward(std::string stream,
                                                    std::optional<std::int64_t> from,
                                                    std::int32_t count) const;

 private:
  [[nodiscard]] http::Request request(std::string method, std::string target) const;

  http::Client* client_;
  http::Endpoint node_;
  SharedCredentials credentials_;
  NodeDialect dialect_;
  std::chrono::milliseconds deadline_;
};

/// "/admin/scavenge?threads=2&syncOnly=true", with what the dialect knows. Error: kUnsupported: a
/// parameter that this version does not have; kInvalidArgument: one that it would refuse.
Result<std::string> scavenge_target(const ScavengeParameters& parameters,
                                    const NodeDialect& dialect);

}  // namespace verger::client
