#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/index/entry_sweep.h"
#include "engine/index/index.h"
#include "engine/log/transaction_log.h"
#include "engine/scavenge/types.h"

namespace verger::scavenge {

/// The index as accumulator and calculator see it: only entries below the scavenge point. For a
/// stream kept by hash the log is not looked at below the point. For one kept by name only entries
/// whose record is there and belongs to it count (where the record is missing the server fails
/// instead). Streams that are looked up in ascending order of their hashes are found fastest.
class IndexView {
 public:
  IndexView(const index::Index& index, const log::TransactionLog& log, LogPosition point);

  /// Entries with a number in [from, from + count), ascending, one for each number: the one with
  /// the lowest position.
  Result<void> forward(const StreamHandle& stream, std::int64_t from, std::int64_t count,
                       std::vector<index::IndexEntry>& out);
  /// A number above `number` that the hash has an entry for, in the first table that has one.
  Result<std::optional<EventNumber>> next(const StreamHandle& stream, EventNumber number);
  /// Gives the name of a stream kept by hash; empty when it is not known.
  using NameOf = std::function<Result<std::string>()>;
  /// -1 when there is none. Behind the point other streams may have the hash of a stream that is
  /// kept by it: for entries there `name_of` and the log decide whose they are.
  Result<EventNumber> last_number(const StreamHandle& stream, const NameOf& name_of);
  /// No entry of a hash below the point has a number below `first_kept`. Of a hash with many
  /// entries also false where one behind the point has.
  Result<bool> has_none_before(StreamHash hash, std::int64_t first_kept);
  /// Is the record at `position` a tombstone?
  Result<bool> is_tombstone(LogPosition position);

 private:
  /// Holds the entries of a stream kept by hash, if they are not too many.
  Result<bool> load(const StreamHandle& stream);
  Result<bool> belongs(const index::IndexEntry& entry, std::string_view name);

  const index::Index* index_;
  const log::TransactionLog* log_;
  LogPosition point_;
  Bytes buffer_;
  index::EntrySweep sweep_;
  std::optional<StreamHash> loaded_;  ///< what found_ is about
  bool complete_ = false;
  index::EntrySweep::Found found_;
};

}  // namespace verger::scavenge
