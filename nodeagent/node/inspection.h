#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "engine/base/job.h"
#include "engine/base/result.h"
#include "engine/base/types.h"
#include "engine/streams/event_store.h"
#include "nodeagent/api/agent.h"
#include "nodeagent/api/node.h"
#include "nodeagent/http/message.h"

namespace verger::node {

/// Positions are positions in the log; -1: there is none, or it is not known.
struct NodePositions {
  LogPosition writer{0};  ///< durable on this node's disk
  LogPosition chaser{0};
  LogPosition committed{-1};
  EpochNumber epoch_number{-1};
  LogPosition epoch_position{-1};
};

struct ChunkFile {
  std::int64_t start = 0;  ///< number of its first logical chunk
  std::int64_t bytes = 0;
};

/// The chunk files of the log, in bytes as the disk has them.
struct ChunkInventory {
  std::int64_t file_count = 0;
  std::int64_t total_bytes = 0;
  std::int64_t largest_bytes = 0;
  std::int64_t chunk_size = 0;  ///< of the log: positions of a logical chunk
  /// Number of the newest logical chunk, which may have no file yet; -1: not known.
  std::int64_t last_chunk = -1;
  std::vector<ChunkFile> files{};  ///< by number
  /// Not empty: why the files cannot be listed now; the numbers are those of the last time.
  std::string problem{};

  /// Bytes of the files below this logical chunk; -1 where that is not known, or where one file
  /// holds chunks on both sides.
  [[nodiscard]] std::int64_t bytes_below(std::int64_t chunk) const {
    std::int64_t bytes = 0;
    for (const auto& file : files) {
      if (file.start >= chunk) {
        return file.start == chunk ? bytes : -1;
      }
      bytes += file.bytes;
    }
    return chunk == last_chunk ? bytes : -1;
  }
  /// The first chunk from this one on with which a file begins; -1: there is none yet.
  [[nodiscard]] std::int64_t boundary_from(std::int64_t chunk) const {
    for (const auto& file : files) {
      if (file.start >= chunk) {
        return file.start;
      }
    }
    return last_chunk >= chunk ? last_chunk : -1;
  }
};

/// The index's tables, in bytes; -1: not known.
struct IndexInventory {
  std::int64_t largest_table = -1;
  std::int64_t largest_merge = -1;  ///< of the tables that the next merges put together; 0: none
};
struct IndexTable {
  int level = 0;
  std::int64_t bytes = 0;
};
/// Of tables that merge, up to `max_auto_merge_level`, once a level is full: as if each level got
/// one more now.
IndexInventory inventory_of(const std::vector<IndexTable>& tables, int max_auto_merge_level);

/// Computes a digest; it is there once the job is done.
class DigestWork : public Job {
 public:
  [[nodiscard]] virtual const streams::DatabaseDigest& digest() const = 0;
  /// Up to where the log has been read, of where that ends; 0 of 0: it has not begun.
  [[nodiscard]] virtual LogPosition position() const = 0;
  [[nodiscard]] virtual LogPosition end() const = 0;
};

/// Facts about a node for its agent, without HTTP. Call it on the node's executor, where nothing
/// here blocks. It changes nothing.
class NodeInspection {
 public:
  virtual ~NodeInspection() = default;
  /// Reads the files again that another process writes: for chunks() and how far scavenges
  /// came. Until the next call they show what was read then, all of one moment. Call it before you
  /// judge by them what became of an operation. A node in the same process is always up
  /// to date. Errors: those of reading; then the former answers stay.
  virtual net::awaitable<Result<void>> refresh() { co_return Result<void>(); }
  /// Proves that the files described here are this node's and not another one's; called before
  /// anything is done. Errors: kConflict (it is another node's directory), kUnavailable (no proof).
  virtual net::awaitable<Result<void>> prove_directories() { co_return Result<void>(); }
  /// A scavenge has been started: running_scavenge() is to show it soon.
  virtual void expect_scavenge() {}
  virtual std::string instance_id() const = 0;
  virtual api::NodeState state() const = 0;
  virtual NodePositions positions() const = 0;
  /// The id of the database's first epoch: the same on all nodes, different from every other
  /// cluster's. Empty where it cannot be read.
  virtual std::string database_id() const { return {}; }
  virtual ChunkInventory chunks() const = 0;
  virtual IndexInventory index_tables() const { return {}; }
  /// Events the index holds: what was deleted or expired counts until a scavenge removes it.
  virtual std::int64_t event_count() const { return -1; }
  virtual const Path& database_directory() const = 0;
  virtual const Path& index_directory() const = 0;
  /// Points in the committed log, oldest first. Errors: kCorruption, kIo.
  virtual Result<std::vector<streams::ScavengePoint>> scavenge_points() const = 0;
  /// Where the record of one of these points ends: it completes its chunk. -1: not known.
  virtual LogPosition end_of_point(const streams::ScavengePoint& /*point*/) const {
    return LogPosition(-1);
  }
  /// What scavenging.db says: the point of a run that has not ended (also while it runs)...
  virtual std::optional<api::UnfinishedScavenge> unfinished_scavenge() const = 0;
  /// ... or the last point that was finished.
  virtual std::optional<api::ScavengePoint> last_finished_point() const = 0;
  virtual std::optional<api::RunningScavenge> running_scavenge() const = 0;
  /// Digest of the committed log up to the point (exclusive of nothing the point covers), to be
  /// driven by the caller's JobRunner. The node must outlive the job. Error, here or of the job:
  /// kNotFound.
  virtual Result<std::shared_ptr<DigestWork>> make_digest_job(
      std::int64_t point_number, const streams::DigestOptions& options = {}) const = 0;
};

}  // namespace verger::node
