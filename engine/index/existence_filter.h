#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "engine/base/types.h"
#include "engine/index/bloom_filter.h"

namespace verger::index {

/// The stream existence filter of an index directory: a filter of every stream's hash, and a
/// checkpoint before which the log is in it. The server answers "no such stream" from it, so what
/// is missing is worse than what is too much; Verger keeps it for the server and does not read it.
/// Format: docs/formats/index.md, "Stream existence filter". One thread at a time.
class ExistenceFilter {
 public:
  /// `logical_bytes`: of a filter that is to be made; 0 = add nothing.
  ExistenceFilter(FileSystem& files, Path index_directory, std::uint64_t logical_bytes);

  /// Reads the checkpoint; -1 when there is none, or less than all of it. Errors: kIo.
  Result<void> load();
  LogPosition checkpoint() const { return checkpoint_; }
  bool enabled() const { return logical_bytes_ != 0; }

  /// Adds hashes, then moves the checkpoint up to `checkpoint`: everything in the log before it is
  /// in the filter now. With a checkpoint of -1 so far it makes the files; a damaged .dat beside a
  /// checkpoint is left to the server, which rebuilds it. Errors: kIo, kNoSpace.
  Result<void> add(std::vector<StreamHash> hashes, LogPosition checkpoint);
  /// The log ends at `position` now: what is added there later must be read again, also when
  /// nothing is added here.
  Result<void> lower(LogPosition position);
  /// For a verifier. nullptr when there is no usable filter.
  Result<std::unique_ptr<BloomFilter>> open_filter() const;

 private:
  Path data_path() const;
  Path checkpoint_path() const;
  Result<void> write_checkpoint(LogPosition position);

  FileSystem& files_;
  Path directory_;
  std::uint64_t logical_bytes_;
  LogPosition checkpoint_ = kNoPosition;
};

}  // namespace verger::index
