#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "controller/journal/chain.h"
#include "controller/journal/etcd_client.h"
#include "controller/journal/journal.h"

/// Keys and values of a journal in etcd, as controller/journal/README.md describes them; no I/O.
/// Readers' error: kCorruption, naming the key.
namespace verger::controller::detail {

/// Where a stream ends.
struct StreamTip {
  Revision revision{0};
  std::string hash{};  ///< of its last event
};
std::string tip_text(const StreamTip& tip);
Result<StreamTip> parse_tip(const EtcdKeyValue& kv);

std::string event_text(const JournalEvent& event);
Result<JournalEvent> parse_event(const EtcdKeyValue& kv);

/// Where the event of a sequence number is.
struct EventPlace {
  std::string stream;
  Revision revision;
};
std::string place_text(std::string_view stream, Revision revision);
Result<EventPlace> parse_place(const EtcdKeyValue& kv);

std::string removed_text(const RemovedRange& range);
Result<RemovedRange> parse_removed(const EtcdKeyValue& kv);

/// The end of the hash chain and the newest epoch, with the store's revisions that wrote them.
struct EtcdHead : ChainHead {
  std::int64_t written = 0;  ///< 0: there is none
  ControllerEpoch epoch{0};
  std::int64_t epoch_written = 0;
};
/// Of the key "head"; the epoch has one of its own.
std::string head_text(const EtcdHead& head);
/// `found`: what was read of the keys "epoch" and "head", in this order.
Result<EtcdHead> parse_head(const std::vector<std::vector<EtcdKeyValue>>& found);

/// Whether etcd takes all of it in one transaction. Error: kInvalidArgument.
Result<void> check_append(std::string_view stream, const std::vector<NewEvent>& events);

/// The summary of a snapshot, and the event that it was made with.
struct KeptSummary {
  StreamTip tip;
  std::string summary;
};
std::string summary_text(const StreamTip& tip, std::string_view summary);
Result<KeptSummary> parse_summary_value(const EtcdKeyValue& kv);

/// The keys, below the prefix.
class EtcdKeys {
 public:
  explicit EtcdKeys(std::string prefix) : prefix_(std::move(prefix)) {}
  [[nodiscard]] std::string at(std::string_view rest) const;
  [[nodiscard]] std::string event(std::string_view stream, std::int64_t revision) const;
  /// A stream's name has no NUL, so no name makes a key between those of another.
  [[nodiscard]] std::string events_of(std::string_view stream) const;
  [[nodiscard]] std::string sequence(std::int64_t number) const;
  /// Of the range that ends there.
  [[nodiscard]] std::string removed(Sequence last) const;
  [[nodiscard]] std::string epoch(ControllerEpoch epoch) const;
  [[nodiscard]] std::string stream(std::string_view name) const;
  [[nodiscard]] std::string summary(std::string_view stream) const;
  [[nodiscard]] std::string state(std::string_view stream) const;

 private:
  std::string prefix_;
};

}  // namespace verger::controller::detail
