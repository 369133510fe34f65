#pragma once

#include <memory>
#include <optional>

#include "engine/index/bloom_filter.h"
#include "engine/index/index.h"
#include "engine/verify/findings.h"

namespace verger::verify::detail {

/// Reports the damaged lines of a table's bloom filter. A table without a filter is in order.
void check_table_filter(FileSystem& files, const index::TableSlot& slot, Findings& findings);

/// Whether the stream existence filter has the streams that it says it has. A server answers "no
/// such stream" from it.
class ExistenceCheck {
 public:
  /// Reports a filter that cannot be used. Errors: kIo.
  static Result<ExistenceCheck> open(FileSystem& files, const Path& index_directory,
                                     Findings& findings);

  /// `entry` is in a table and in the log. Entries of one hash come one after the other.
  void look_at(const index::IndexEntry& entry, Findings& findings);

 private:
  Path path_;
  std::unique_ptr<index::BloomFilter> filter_;  ///< nullptr: there is nothing to check
  LogPosition checkpoint_ = kNoPosition;
  std::optional<StreamHash> last_seen_;
};

}  // namespace verger::verify::detail
