#pragma once

#include <string_view>

#include "controller/journal/journal.h"
#include "engine/base/bytes.h"
#include "engine/base/digest.h"

namespace verger::controller {

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
/// Journal::read_all(check.at()) gives the next.
class ChainCheck {
 public:
  /// kCorruption names the event that is not what was written; the check is then of no more use.
  Result<void> next(const JournalEvent& event);
  /// Of the last event that held.
  [[nodiscard]] Sequence at() const { return at_; }

 private:
  Sequence at_{0};
  Bytes before_;
};

}  // namespace verger::controller
