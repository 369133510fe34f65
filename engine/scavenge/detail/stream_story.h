#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/scavenge/explain.h"

namespace verger::scavenge::detail {

/// What decides about one stream: its limits, the record they come from, and the calculation's
/// walk.
struct StreamStory {
  std::string name;
  bool metastream = false;
  StreamHandle handle;
  StreamLimits limits;
  std::optional<OriginalData> original;
  EventNumber last = kNoStream;
  /// Of the walk, by number, up to and with the first event that stays. Empty for a metastream, and
  /// for a stream without limits.
  std::vector<StreamWalker::Verdict> verdicts;
  DiscardPoint walked;               ///< how far this walk alone discards
  std::optional<Decider> metadata;   ///< the newest in order
  std::optional<Decider> tombstone;  ///< of the stream, or of a metastream's original
  std::optional<Decider> last_event;

  [[nodiscard]] const StreamWalker::Verdict* verdict_of(EventNumber number) const;
  /// The event at which the walk ended.
  [[nodiscard]] const StreamWalker::Verdict* first_kept() const;
};

Result<StreamStory> read_story(Preview& preview, std::string_view name);

/// The file of the chunk that holds a position; empty when there is none.
std::string chunk_file_of(const log::TransactionLog& log, LogPosition position);

}  // namespace verger::scavenge::detail
