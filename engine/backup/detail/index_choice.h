#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/backup/blob_store.h"
#include "engine/backup/detail/restore_place.h"
#include "engine/backup/manifest.h"
#include "engine/base/clock.h"
#include "engine/base/job.h"
#include "engine/base/random.h"
#include "engine/index/index.h"
#include "engine/index/rebuild_job.h"
#include "engine/log/transaction_log.h"

/// Whether a restore copies the index tables or makes them from the log it has restored.
namespace verger::backup::detail {

/// The index map, a table, or a table's filter: what can be made from the log. The existence filter
/// and the state of scavenges are not among them.
[[nodiscard]] bool is_index_table(const BackedUpFile& file);

/// Makes the tables of an index directory without any from a log.
class IndexFromLog {
 public:
  /// Up to `end`. The disk, clock and random outlive it.
  IndexFromLog(FileSystem& disk, Path directory, std::unique_ptr<log::TransactionLog> log,
               LogPosition end, Clock& clock, Random& random);
  /// True once it is done. Errors: kCorruption (the log), kNoSpace, kIo.
  Result<bool> step(Budget budget);

 private:
  Result<void> begin();

  FileSystem& disk_;
  Path directory_;
  std::unique_ptr<log::TransactionLog> log_;
  LogPosition end_;
  Clock& clock_;
  Random& random_;
  std::unique_ptr<index::Index> index_;
  std::unique_ptr<index::IndexRebuildJob> job_;
};

/// Of everything but the tables. Bytes are those that the repository has: compression makes log and
/// tables smaller by different factors.
struct CopyMeasured {
  std::uint64_t bytes = 0;  ///< copied by this process
  double seconds = 0;
  std::uint64_t left = 0;  ///< of the tables
};
/// Of these files as they are stored. Errors: those of BlobStore::open_blob().
Result<std::uint64_t> stored_bytes(BlobStore& store, std::span<const NewFile> files);

struct IndexChoice {
  bool from_log = false;
  std::string text;  ///< for people
};
/// Copying the tables would take so long as the rest shows; what the other way takes is measured by
/// making the tables of the log's first part, where it could matter at all. The log waits in
/// `place`, complete. Error: kIo.
Result<IndexChoice> choose_index(FileSystem& disk, const RestorePlace& place,
                                 const Manifest& manifest, const CopyMeasured& copied, Clock& clock,
                                 Random& random);

}  // namespace verger::backup::detail
