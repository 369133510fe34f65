#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "controller/journal/journal.h"
#include "engine/base/bytes.h"
#include "engine/base/digest.h"

namespace verger::controller {

/// Of lower-case hexadecimal digits, as hashes are kept.
Bytes bytes_of_hex(std::string_view hex);

/// The hash of an event after one with the hash `before` (empty: the first one). Format:
/// controller/journal/README.md.
Sha256Digest chain_hash(ByteView before, const JournalEvent& event);

/// Where the chain ends.
struct ChainHead {
  Sequence sequence{0};
  Bytes hash{};  ///< empty: there is no event yet
};

/// The event that comes behind `head`, with its hash; `head` is then behind it.
JournalEvent chain_event(ChainHead& head, std::string_view stream, Revision revision,
                         NewEvent event, Ticks at, ControllerEpoch epoch);

/// Walks the hash chain event by event, so that a long one can be walked in pieces:
/// Journal::read_all(check.at()) gives the next. Across what was removed it continues by the hash
/// that was kept, and end() demands that each such gap is on record in the chain itself.
class ChainCheck {
 public:
  ChainCheck() = default;
  explicit ChainCheck(std::vector<RemovedRange> removed) { know(std::move(removed)); }
  /// In the middle of a walk: more was removed since.
  void know(std::vector<RemovedRange> removed);
  /// kCorruption names the event that is not what was written. The check is then as it was before.
  Result<void> next(const JournalEvent& event);
  /// kCorruption names events that are missing though no event of the chain records their removal.
  [[nodiscard]] Result<void> end() const;
  /// Of the last event that held.
  [[nodiscard]] Sequence at() const { return at_; }
  /// Events that were removed before it.
  [[nodiscard]] std::int64_t missing() const { return missing_; }

 private:
  Sequence at_{0};
  Bytes before_;
  std::int64_t missing_ = 0;
  std::vector<RemovedRange> removed_;
  std::vector<std::pair<Sequence, Sequence>> gaps_;      ///< that were passed
  std::vector<std::pair<Sequence, Sequence>> recorded_;  ///< in events
};

/// The ranges of an event of the type kEventsRemoved.
std::vector<std::pair<Sequence, Sequence>> recorded_ranges(std::string_view data);

/// All that `journal` holds, at once.
Result<ChainCheck> check_chain(Journal& journal);

/// Sorted, and those that touch or overlap made one.
std::vector<std::pair<Sequence, Sequence>> joined(
    std::vector<std::pair<Sequence, Sequence>> ranges);

}  // namespace verger::controller
