#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "engine/base/result.h"
#include "engine/index/stream_hash.h"
#include "engine/scavenge/detail/seen_names.h"
#include "engine/scavenge/rules.h"
#include "engine/scavenge/types.h"

namespace verger::scavenge {

struct StateOptions {
  /// Of a new file; an existing one has to have it.
  int page_size = 16384;
  /// SQLite's page cache in bytes.
  std::int64_t cache_size = 40LL * 1024 * 1024;
  /// Stream names remembered in memory as seen before, at 8 bytes each.
  std::size_t names_cache = std::size_t{4} << 20U;
};

/// The page size that a scavenging.db has; `otherwise` where no page was ever written. Errors:
/// kNotFound, kIo.
Result<int> stored_page_size(FileSystem& files, const Path& path, int otherwise);

/// A hash as the key of a row. SQLite orders keys as signed numbers.
inline std::int64_t row_key(StreamHash hash) { return static_cast<std::int64_t>(hash.value()); }

/// One original stream as the calculator visits it.
struct OriginalRow {
  StreamHandle handle;
  OriginalData data;
};

/// A discard point and tombstone flag of a metastream.
struct MetastreamData {
  bool tombstoned = false;
  DiscardPoint discard;
};

/// `index/scavenging/scavenging.db`: what scavenges know of streams and chunks, in the server's
/// schema, encodings and settings, so that either may continue from what the other wrote.
///
/// Streams live in SQLite, not in memory; only the collisions (a handful) and a bounded cache are
/// held. One thread at a time. The file is locked while the object lives. After a failed write the
/// transaction is to be rolled back. Errors: kIo, kNoSpace, kCorruption, kRefused (locked, wrong
/// page size). Format: docs/formats/scavenge.md.
class ScavengeState {
 public:
  /// "<index directory>/scavenging/scavenging.db"
  static Path path_in(const Path& index_directory);
  /// Creates directory, file and tables where they are missing.
  static Result<std::unique_ptr<ScavengeState>> open(FileSystem& files, const Path& index_directory,
                                                     index::HashFunction hash,
                                                     StateOptions options);
  ~ScavengeState();

  // --- Transactions: everything below that writes belongs into one, reset_weights apart. ---
  Result<void> begin();
  Result<void> commit();
  /// Also drops what was learnt of collisions since begin(). Nothing when none is open.
  void roll_back();
  /// What is committed survives a power cut from now on. (The server's settings alone promise only
  /// that the newest transactions are lost together.)
  Result<void> make_durable();
  /// Gives the memory of the page cache back: it fills again as it is needed.
  Result<void> release_cache();

  // --- Checkpoint ---
  /// nullopt when there is none or when it cannot be read (the server treats both alike). Error:
  /// kUnsupported, where a newer server wrote it.
  Result<std::optional<Checkpoint>> checkpoint();
  Result<void> set_checkpoint(const Checkpoint& checkpoint);

  // --- Collisions ---
  /// Every stream name is fed in before anything is read or stored for it. When another stream
  /// turns out to have the same hash, the answer is its name, and its rows have been moved to the
  /// tables by name.
  Result<std::optional<std::string>> note_stream(std::string_view name);
  /// Announces a name to seen_before(), some time before.
  void expect(const detail::SeenNames::Key& key) const;
  /// True when there is nothing to do for this name. Otherwise it counts as noted from now on: the
  /// caller does it before the transaction ends. Both of these may be called in one thread while
  /// another one reads and stores.
  bool seen_before(std::string_view name, const detail::SeenNames::Key& key);
  /// Gives the memory of the names back: they are all new again.
  void forget_seen();
  struct NamedHash {
    StreamHash hash;
    std::string_view name;
  };
  /// Notes many streams, ascending by row_key(), and changes the span: where none of them collides
  /// for the first time the result is that of note_stream() for one after the other. False when one
  /// does: then they are all to be noted by note_stream(), in their order; what has been done
  /// agrees with it.
  Result<bool> note_streams(std::span<NamedHash> streams,
                            const std::function<Result<void>()>& pause);
  bool is_collision(std::string_view name) const;
  bool has_collisions() const;
  /// Does some colliding stream have this hash?
  bool is_collision_hash(StreamHash hash) const;
  std::vector<std::string> collisions() const;
  /// By name for colliding streams, otherwise by hash.
  StreamHandle handle_of(std::string_view name) const;
  StreamHash hash(std::string_view name) const;
  /// The first stream that was noted with this hash; empty when there is none.
  Result<std::string> hash_user(StreamHash hash);

  // --- Accumulating ---
  /// Replaces the limits, the stream becomes active; tombstone and discard points stay.
  Result<void> set_limits(const StreamHandle& stream, const OriginalData& limits);
  struct LimitsOfStream {
    StreamHash hash;
    std::optional<std::int64_t> max_age_seconds;
    std::optional<std::int64_t> max_count;
    std::optional<std::int64_t> truncate_before;
  };
  /// The same of many streams that are kept by hash: fastest sorted by it, as signed numbers. Of
  /// several for one stream the last one counts. `pause` is called now and then; its error ends it.
  Result<void> set_limits(std::span<const LimitsOfStream> streams,
                          const std::function<Result<void>()>& pause);
  Result<void> set_tombstone(const StreamHandle& stream);
  Result<void> set_metastream_discard(const StreamHandle& metastream, DiscardPoint discard);
  Result<void> set_metastream_tombstone(const StreamHandle& metastream);
  Result<void> set_time_range(std::int32_t chunk, TimeRange range);
  Result<std::optional<TimeRange>> time_range(std::int32_t chunk);
  Result<void> add_weight(std::int32_t chunk, double weight);

  // --- Calculating ---
  /// At most `limit` active streams after `from` (nullptr: from the beginning): those kept by name
  /// in byte order first, then by hash as signed numbers.
  Result<std::vector<OriginalRow>> active_streams(const StreamHandle* from, std::size_t limit);
  /// nullopt without a row.
  Result<std::optional<OriginalData>> original_data(const StreamHandle& stream);
  Result<void> set_calculated(const StreamHandle& stream, StreamStatus status, DiscardPoint discard,
                              DiscardPoint maybe);
  struct PointsOfStream {
    StreamHash hash;
    DiscardPoint discard;
    DiscardPoint maybe;
  };
  /// Those of many streams that have a row by hash and stay active; as set_limits().
  Result<void> set_calculated(std::span<const PointsOfStream> streams,
                              const std::function<Result<void>()>& pause);

  // --- Executing ---
  Result<double> weight(std::int32_t from_chunk, std::int32_t to_chunk);
  Result<void> reset_weights(std::int32_t from_chunk, std::int32_t to_chunk);
  /// For the record of a stream; nullopt keeps everything. A stream kept by hash is looked up in
  /// the table its name belongs to.
  Result<std::optional<StreamLimits>> limits_of(std::string_view name);
  Result<std::optional<StreamLimits>> limits_by_name(std::string_view name);
  /// For an index entry, where only the hash is known: original streams first.
  Result<std::optional<StreamLimits>> limits_by_hash(StreamHash hash);
  Result<std::optional<StreamLimits>> original_limits(StreamHash hash);
  Result<std::optional<StreamLimits>> metastream_limits(StreamHash hash);

  /// Calls `visit` with the limits kept by hash that discard something, up to `most` of them, and
  /// with the rule of the discard point. False when there are more.
  Result<bool> visit_limits(
      std::size_t most, const std::function<Result<void>(StreamHash, const StreamLimits&)>& visit);

  /// Every row by hash of a table, in descending unsigned order of hashes, for one pass beside a
  /// PTable. One at a time; no transaction may end meanwhile.
  class LimitsCursor {
   public:
    virtual ~LimitsCursor() = default;
    /// The limits of `hash`; later calls must not request greater hashes.
    virtual Result<const StreamLimits*> seek(StreamHash hash) = 0;
  };
  std::unique_ptr<LimitsCursor> limits_cursor();
  /// The same without the active original streams. nullptr: a row has a status that is not known
  /// here.
  Result<std::unique_ptr<LimitsCursor>> limits_cursor_of_others();

  // --- Cleaning ---
  Result<bool> any_weight();
  Result<void> delete_metastreams();
  Result<void> delete_originals(bool archived_too);

  /// What the file keeps of the database: counts for reports.
  Result<std::int64_t> count_rows(std::string_view table);

 private:
  struct Impl;
  explicit ScavengeState(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace verger::scavenge
