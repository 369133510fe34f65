#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include "controller/journal/detail/etcd_values.h"
#include "controller/journal/etcd_client.h"
#include "controller/journal/etcd_journal.h"

namespace verger::controller::detail {

/// What the journal has of etcd: calls that wait for their answers, and reads of more keys than go
/// into one of them. Errors: those of `EtcdClient`, and kCorruption of what cannot be read.
class EtcdStore {
 public:
  /// `lease` may be nullptr; it is renewed beside calls, so that a long piece of work on this
  /// thread, such as replaying the journal, does not lose it.
  EtcdStore(const EtcdOptions& options, std::shared_ptr<EtcdLease> lease)
      : options_(options), lease_(std::move(lease)), keys_(options.prefix) {}
  /// Before anything else. Error: kInvalidArgument or kIo of the certificates.
  Result<void> open();

  [[nodiscard]] const EtcdKeys& keys() const { return keys_; }

  Result<EtcdAnswer> transact(nlohmann::json compare, nlohmann::json success,
                              nlohmann::json failure);
  /// One list of keys for each of `gets`.
  Result<std::vector<std::vector<EtcdKeyValue>>> get(nlohmann::json gets);

  /// What parse_head() reads.
  [[nodiscard]] nlohmann::json head_gets() const;
  Result<EtcdHead> load_head();

  struct StreamPage {
    std::vector<JournalEvent> events;
    bool to_its_end = false;  ///< the stream has no later ones
  };
  Result<StreamPage> read_stream(std::string_view stream, Revision after, std::size_t limit);
  Result<std::vector<JournalEvent>> read_all(Sequence after, std::size_t limit);
  Result<EtcdSize> size();
  /// kNotFound: it has done so already.
  Result<void> compact(std::int64_t revision);
  /// By name, all keys of a folder whose names begin with `prefix`.
  Result<std::map<std::string, EtcdKeyValue>> all_below(std::string_view folder,
                                                        std::string_view prefix);

 private:
  template <class T>
  Result<T> run(net::awaitable<Result<T>> work);
  Result<void> add_events(const std::vector<EtcdKeyValue>& entries, std::vector<JournalEvent>& out);

  EtcdOptions options_;
  std::shared_ptr<EtcdLease> lease_;
  EtcdKeys keys_;
  net::io_context context_{1};
  std::unique_ptr<http::Client> http_;
  std::optional<EtcdClient> client_;
};

}  // namespace verger::controller::detail
