#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "engine/log/chunk.h"
#include "engine/log/detail/checkpoint_files.h"
#include "engine/log/detail/chunk_directory.h"
#include "engine/log/epoch.h"
#include "engine/log/transaction_log.h"

namespace verger::log::detail {

/// What an opening starts from; two equal snapshots lead to the same judgement.
struct Snapshot {
  CheckpointFiles checkpoints;
  DirectoryListing listing;
  friend bool operator==(const Snapshot&, const Snapshot&) = default;
};

/// Errors: kNotFound (directory, or nothing of a database in it, unless `may_be_empty`), kIo.
Result<Snapshot> take_snapshot(FileSystem& files, const Path& directory, bool may_be_empty);

/// A directory judged fit to be opened, and what recovery has to do. Nothing has been changed.
struct Judgement {
  std::int32_t chunk_size = 0;
  Checkpoints checkpoints;  ///< writer already where recovery puts it
  /// All chunks in order, the active one last if there is one.
  std::vector<std::shared_ptr<const Chunk>> chunks;
  std::shared_ptr<Chunk> active;
  std::vector<std::string> to_remove;  ///< old versions and the excess chunk
  std::vector<std::string> temporary;
  EpochHistory epochs;  ///< the chain from epoch.chk; empty when that is -1
};

/// The rules of docs/formats/log.md, "Opening". Errors: kNotFound (a chunk is missing),
/// kCorruption, kUnsupported, kInvalidArgument (chunk size), kIo; each says what to do.
Result<Judgement> judge(FileSystem& files, const Path& directory, const Snapshot& snapshot,
                        const LogOptions& options);

/// The chunk size of the database: the option, or the first chunk's header.
Result<std::int32_t> chunk_size_of(FileSystem& files, const Path& directory,
                                   const DirectoryListing& listing, const LogOptions& options);
/// A live chunk that lies below the active one.
Result<std::shared_ptr<Chunk>> open_live_chunk(FileSystem& files, const Path& directory,
                                               const LiveFiles::Live& live,
                                               std::int32_t chunk_size);
Error missing_chunk(const Path& directory, ChunkNumber number, std::int32_t chunk_size);

/// Follows the chain of epoch records from `newest` back, at most 1000. Errors: kCorruption.
Result<EpochHistory> follow_epochs(const std::vector<std::shared_ptr<const Chunk>>& chunks,
                                   LogPosition newest);

}  // namespace verger::log::detail
