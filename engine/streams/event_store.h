#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/digest.h"
#include "engine/base/result.h"
#include "engine/index/index.h"
#include "engine/log/transaction_log.h"
#include "engine/streams/metadata.h"

namespace verger::streams {

/// Special values of an expected version; every number >= 0 is exact.
inline constexpr std::int64_t kExpectAny = -2;
inline constexpr std::int64_t kExpectNoStream = -1;
inline constexpr std::int64_t kExpectStreamExists = -4;

struct NewEvent {
  Uuid id;
  std::string type;
  bool is_json = true;
  Bytes data;
  Bytes metadata;
};

/// What became of a write. Positions are of this node's log.
struct WriteOutcome {
  EventNumber first;
  EventNumber last;
  /// Where the last event's record lies; of a write without events, its marker.
  LogPosition position;
  /// The write is committed once the replication position has reached this (end of its last
  /// record).
  LogPosition end;
  /// True when the events were there already (same ids): nothing was written.
  bool repeated = false;
};

/// kConflict carries the stream's current version for the answer's ES-CurrentVersion.
struct WriteFailure {
  Error error;
  EventNumber current_version{-1};
};
using WriteResult = std::expected<WriteOutcome, WriteFailure>;

/// An event as a reader gets it.
struct Event {
  std::string stream;
  EventNumber number;
  Uuid id;
  std::string type;
  bool is_json = false;
  bool is_redacted = false;  ///< data is then empty
  Bytes data;
  Bytes metadata;
  Ticks timestamp;
  /// kNoPosition when a stream was read and a commit record made it an event: only $all shows
  /// where.
  LogPosition commit_position;
  LogPosition prepare_position;
};

enum class StreamStatus : std::uint8_t { kSuccess, kNoStream, kDeleted };

struct StreamSlice {
  StreamStatus status = StreamStatus::kSuccess;
  /// Forward: ascending; backward: descending. Limits ($maxCount, $maxAge, $tb) are applied.
  std::vector<Event> events;
  /// Where the next page begins (forward: may be past gaps; backward: -1 at the end).
  EventNumber next;
  bool end_of_stream = false;
  EventNumber last_event_number{-1};
};

/// (commit, prepare): the order of $all.
struct AllPosition {
  LogPosition commit;
  LogPosition prepare;
  friend auto operator<=>(const AllPosition&, const AllPosition&) = default;
};

struct AllSlice {
  std::vector<Event> events;
  AllPosition next;
  bool end = false;
};

/// When what was appended is made durable.
enum class Flush : std::uint8_t {
  kNow,    ///< before the call returns
  kLater,  ///< by the next flush, which further appends share
};

struct DatabaseOptions {
  log::LogOptions log;
  index::IndexOptions index;
  /// Empty: "<directory>/index".
  Path index_directory;
};

/// A database: the log, its index, and the event model on top.
///
/// Reads are safe from any thread, beside one writing thread. What is not committed
/// (commit_up_to) is neither read nor indexed nor counted; only expected versions and idempotency
/// see writes in flight. A single node commits right after each append.
class Database {
 public:
  /// Everything already in the log counts as committed when `commit_all` is true (single node,
  /// read-only tools); a cluster member passes false and calls commit_up_to.
  static Result<std::unique_ptr<Database>> open(FileSystem& files, const Path& directory,
                                                DatabaseOptions options, bool commit_all,
                                                Clock& clock, Random& random, Log& log);
  ~Database();

  log::TransactionLog& transaction_log();
  const log::TransactionLog& transaction_log() const;
  index::Index& stream_index();
  const index::Index& stream_index() const;
  FileSystem& files();

  // --- Writing (one thread; leader) ---

  /// Appends to this node's log; visible after commit_up_to(outcome.end), which needs it flushed.
  /// Idempotent by event ids as the server is: a retry answers with the first outcome.
  /// Failures: kConflict (wrong expected version), kDeleted, kInvalidArgument, kNoSpace, kIo.
  WriteResult append(std::string_view stream, std::int64_t expected_version,
                     std::vector<NewEvent> events, Flush flush = Flush::kNow);
  /// This node begins to lead: the writer remembers nothing of an earlier term.
  void begin_term();
  /// Metadata of `stream`: a write to its metastream. Rules for soft-deleted streams apply. That of
  /// a hard-deleted stream is taken while the writer remembers metadata it wrote before: one of the
  /// last 2,000 streams it wrote to, in this term.
  WriteResult set_metadata(std::string_view stream, std::int64_t expected_version, NewEvent event,
                           Flush flush = Flush::kNow);
  WriteResult soft_delete(std::string_view stream, std::int64_t expected_version,
                          Flush flush = Flush::kNow);
  WriteResult hard_delete(std::string_view stream, std::int64_t expected_version,
                          Flush flush = Flush::kNow);
  /// A scavenge point with the expected version of $scavengePoints; completes the chunk.
  WriteResult append_scavenge_point(std::int64_t expected_version, std::int32_t threshold);

  /// As those of the log (TransactionLog::begin_flush): its sync() may run in another thread,
  /// beside further appends. Errors: kIo, kNoSpace; no write is taken afterwards.
  Result<std::shared_ptr<log::LogFlush>> begin_flush();
  Result<void> finish_flush();
  /// Everything appended, before it returns.
  Result<void> flush();

  // --- Committing and replication (the same thread) ---

  /// Everything below `position` is on a majority: index it, make it visible.
  Result<void> commit_up_to(LogPosition position);
  LogPosition committed() const;
  /// Follower: bytes of whole framed records from the leader; not committed.
  Result<void> append_replicated(ByteView framed_records, Flush flush = Flush::kNow);
  Result<void> receive_chunk(const Path& temporary);
  /// Cuts log and index; positions at or above `position` are gone. Rebuilds the index where
  /// needed. Committed data is cut only when the caller insists: kRefused otherwise.
  Result<void> truncate(LogPosition position, bool even_committed = false);

  // --- Reading ---

  Result<StreamSlice> read_forward(std::string_view stream, EventNumber from,
                                   std::size_t count) const;
  /// `from` = kDeletedStream (maximum) starts at the last event.
  Result<StreamSlice> read_backward(std::string_view stream, EventNumber from,
                                    std::size_t count) const;
  Result<AllSlice> read_all_forward(AllPosition from, std::size_t count) const;
  Result<AllSlice> read_all_backward(AllPosition from, std::size_t count) const;
  /// kNoStream, a number, or kDeletedStream.
  Result<EventNumber> last_event_number(std::string_view stream) const;
  Result<StreamMetadata> metadata(std::string_view stream) const;

 private:
  struct State;
  explicit Database(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A scavenge point in the log (docs/formats/scavenge.md).
struct ScavengePoint {
  LogPosition position;
  EventNumber number;  ///< event number in $scavengePoints
  Ticks effective_now;
  std::int32_t threshold = 0;
  friend bool operator==(const ScavengePoint&, const ScavengePoint&) = default;
};

/// All points in the committed log, oldest first. Errors: kCorruption (foreign event in the
/// stream).
Result<std::vector<ScavengePoint>> scavenge_points(const Database& database);

/// The two digests of the design, over the committed log below an end.
///
/// Logical: per logical chunk the SHA-256 over its live records in order, each as position (i64),
/// length (u32), record without framing; `logical` is the SHA-256 over those digests.
///
/// Readable: over the events that readers saw if the log ended there and it were EffectiveNow, so
/// that it is the same before and after a scavenge of that point. The sum modulo 2^256
/// (little-endian) of each visible event's SHA-256 over stream, number, id, type, JSON flag, time,
/// data and metadata; positions are not in it.
struct DatabaseDigest {
  std::vector<Sha256Digest> chunks;  ///< by logical chunk number
  Sha256Digest logical;
  Sha256Digest readable;
  std::uint64_t records = 0;
  std::uint64_t readable_events = 0;
};

struct DigestOptions {
  /// False: only chunks, logical and records are computed, in constant memory.
  bool readable = true;
  /// What of the events is kept until it is known who can read them (some 60 bytes each) stays in
  /// memory up to this; beyond it, it goes to a temporary file without a name. nullptr: no file.
  std::uint64_t memory_bytes = 64ULL << 20U;
  FileSystem* files = nullptr;
  Path temporary_directory{};
  std::uint64_t keep_free = 256ULL << 20U;  ///< bytes, where the temporary file is
  /// A thread of its own hashes what was read, and then sums half of the parts.
  bool hash_in_background = false;
};

/// Computes the digest up to `end` (exclusive) as a Job, in one pass over the log; the result is
/// there once it is done. Errors: those of reading; kNoSpace for temporary files.
class DigestJob final : public Job {
 public:
  DigestJob(const Database& database, LogPosition end, Ticks effective_now,
            const DigestOptions& options = {});
  ~DigestJob() override;
  Result<StepOutcome> step(Budget budget) override;
  const DatabaseDigest& digest() const;
  /// For progress: up to where the log has been read, of where that ends.
  LogPosition position() const;
  LogPosition end() const;
  /// Of the temporary file.
  std::uint64_t bytes_on_disk() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace verger::streams
