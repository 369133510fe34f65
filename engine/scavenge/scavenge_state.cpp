#include "engine/scavenge/scavenge_state.h"

#include <fmt/format.h>

#include "engine/base/assert.h"
#include "engine/scavenge/detail/state_impl.h"
#include "engine/scavenge/detail/state_schema.h"
#include "engine/streams/stream_names.h"

namespace verger::scavenge {

Result<int> stored_page_size(FileSystem& files, const Path& path, int otherwise) {
  VERGER_TRY(const auto file, files.open(path, OpenMode::kRead));
  // Bytes 16 and 17, big-endian; 1 stands for 65536.
  std::array<std::byte, 18> head{};
  VERGER_TRY(const auto got, file->read_at(0, head));
  if (got < head.size()) {
    return otherwise;
  }
  const auto stored = (std::to_integer<int>(head[16]) << 8) | std::to_integer<int>(head[17]);
  return stored == 1 ? 65536 : stored;
}

ScavengeState::ScavengeState(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ScavengeState::~ScavengeState() { roll_back(); }

Path ScavengeState::path_in(const Path& index_directory) {
  return index_directory / "scavenging" / "scavenging.db";
}

Result<std::unique_ptr<ScavengeState>> ScavengeState::open(FileSystem& files,
                                                           const Path& index_directory,
                                                           index::HashFunction hash,
                                                           StateOptions options) {
  const auto path = path_in(index_directory);
  VERGER_RETURN_IF_ERROR(files.make_directories(path.parent_path()));
  // Chunks change for good soon: the names of what they rest on must not be lost before.
  VERGER_RETURN_IF_ERROR(files.sync_directory(index_directory));
  VERGER_TRY(auto database, sqlite::Database::open(files, path, {.own_state = false}));
  VERGER_RETURN_IF_ERROR(files.sync_directory(path.parent_path()));
  VERGER_RETURN_IF_ERROR(
      detail::apply_pragmas(database, path, options.page_size, options.cache_size));
  VERGER_RETURN_IF_ERROR(detail::create_schema(database));
  auto impl = std::make_unique<Impl>(std::move(database), hash, options);
  VERGER_RETURN_IF_ERROR(impl->prepare_statements());
  VERGER_RETURN_IF_ERROR(impl->load_collisions());
  return std::unique_ptr<ScavengeState>(new ScavengeState(std::move(impl)));
}

Result<sqlite::Statement> ScavengeState::Impl::prepare(std::string_view sql) {
  return database.prepare(sql);
}

Result<void> ScavengeState::Impl::prepare_keyed(detail::KeyedStatement& statement,
                                                std::string_view table, std::string_view sql) {
  const auto singular =
      table == "OriginalStreamDatas" ? "OriginalStreamDataCollisions" : "MetastreamDataCollisions";
  VERGER_TRY(statement.by_hash, prepare(fmt::format(fmt::runtime(sql), table)));
  VERGER_TRY(statement.by_name, prepare(fmt::format(fmt::runtime(sql), singular)));
  return {};
}

Result<void> ScavengeState::Impl::prepare_statements() {
  constexpr auto kOriginal = "OriginalStreamDatas";
  constexpr auto kMetastream = "MetastreamDatas";
  VERGER_TRY(get_checkpoint, prepare("SELECT value FROM Checkpoint WHERE key = 0"));
  VERGER_TRY(put_checkpoint, prepare("INSERT INTO Checkpoint (key, value) VALUES (0, ?1) "
                                     "ON CONFLICT (key) DO UPDATE SET value = excluded.value"));
  VERGER_TRY(get_hash_user, prepare("SELECT value FROM HashUsers WHERE key = ?1"));
  VERGER_TRY(put_hash_user, prepare("INSERT INTO HashUsers (key, value) VALUES (?1, ?2) "
                                    "ON CONFLICT (key) DO NOTHING"));
  VERGER_TRY(new_users, sqlite::MemoryRows::create(database, "verger_new_users", 2));
  // "OR IGNORE" for all constraints: SQLite then keeps no copies of the pages that it changes.
  VERGER_TRY(put_hash_users, prepare("INSERT OR IGNORE INTO HashUsers (key, value) "
                                     "SELECT c0, c1 FROM verger_new_users"));
  VERGER_TRY(find_other_user,
             prepare("SELECT 1 FROM verger_new_users CROSS JOIN HashUsers ON HashUsers.key = c0 "
                     "WHERE HashUsers.value <> c1 LIMIT 1"));
  VERGER_TRY(put_collision, prepare("INSERT OR IGNORE INTO HashCollisions (key) VALUES (?1)"));
  VERGER_RETURN_IF_ERROR(prepare_keyed(
      put_limits, kOriginal,
      "INSERT INTO {} (key, maxAge, maxCount, truncateBefore, status) VALUES (?1, ?2, ?3, ?4, 1) "
      "ON CONFLICT (key) DO UPDATE SET maxAge = excluded.maxAge, maxCount = excluded.maxCount, "
      "truncateBefore = excluded.truncateBefore, status = excluded.status"));
  VERGER_TRY(new_limits, sqlite::MemoryRows::create(database, "verger_new_limits", 4));
  VERGER_TRY(
      put_all_limits,
      prepare("INSERT INTO OriginalStreamDatas (key, maxAge, maxCount, truncateBefore, status) "
              "SELECT c0, c1, c2, c3, 1 FROM verger_new_limits WHERE true ON CONFLICT (key) DO "
              "UPDATE SET maxAge = excluded.maxAge, maxCount = excluded.maxCount, "
              "truncateBefore = excluded.truncateBefore, status = excluded.status"));
  VERGER_TRY(new_points, sqlite::MemoryRows::create(database, "verger_new_points", 3));
  VERGER_TRY(put_all_points,
             prepare("INSERT INTO OriginalStreamDatas (key, discardPoint, maybeDiscardPoint) "
                     "SELECT c0, c1, c2 FROM verger_new_points WHERE true ON CONFLICT (key) DO "
                     "UPDATE SET discardPoint = excluded.discardPoint, "
                     "maybeDiscardPoint = excluded.maybeDiscardPoint"));
  VERGER_RETURN_IF_ERROR(prepare_keyed(
      put_tombstone, kOriginal,
      "INSERT INTO {} (key, isTombstoned, status) VALUES (?1, 1, 1) ON CONFLICT (key) DO UPDATE "
      "SET isTombstoned = excluded.isTombstoned, status = excluded.status"));
  VERGER_RETURN_IF_ERROR(prepare_keyed(
      put_meta_discard, kMetastream,
      "INSERT INTO {} (key, discardPoint) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET "
      "discardPoint = excluded.discardPoint"));
  VERGER_RETURN_IF_ERROR(
      prepare_keyed(put_meta_tombstone, kMetastream,
                    "INSERT INTO {} (key, isTombstoned) VALUES (?1, 1) ON CONFLICT (key) "
                    "DO UPDATE SET isTombstoned = excluded.isTombstoned"));
  VERGER_RETURN_IF_ERROR(prepare_keyed(
      put_calculated, kOriginal,
      "UPDATE {} SET status = ?2, discardPoint = ?3, maybeDiscardPoint = ?4 WHERE key = ?1"));
  // The status is in an index: leaving it alone spares that.
  VERGER_RETURN_IF_ERROR(
      prepare_keyed(put_points, kOriginal,
                    "UPDATE {} SET discardPoint = ?2, maybeDiscardPoint = ?3 WHERE key = ?1"));
  VERGER_RETURN_IF_ERROR(prepare_keyed(
      get_original, kOriginal,
      "SELECT isTombstoned, maxAge, discardPoint, maybeDiscardPoint FROM {} WHERE key = ?1"));
  VERGER_RETURN_IF_ERROR(prepare_keyed(get_metastream, kMetastream,
                                       "SELECT isTombstoned, discardPoint FROM {} WHERE key = ?1"));
  VERGER_RETURN_IF_ERROR(
      prepare_keyed(get_original_data, kOriginal,
                    "SELECT isTombstoned, maxAge, maxCount, truncateBefore, discardPoint, "
                    "maybeDiscardPoint, status FROM {} WHERE key = ?1"));
  constexpr std::string_view kActive =
      "SELECT key, isTombstoned, maxAge, maxCount, truncateBefore, discardPoint, "
      "maybeDiscardPoint FROM {} WHERE status = 1 AND key > ?1 ORDER BY key LIMIT ?2";
  VERGER_RETURN_IF_ERROR(prepare_keyed(get_active, kOriginal, kActive));
  // Where most streams are active, a look at the table for each entry of the index costs more.
  VERGER_TRY(scan_originals, prepare("SELECT key, isTombstoned, maxAge, maxCount, truncateBefore, "
                                     "discardPoint, maybeDiscardPoint, status FROM "
                                     "OriginalStreamDatas NOT INDEXED WHERE key >= ?1 ORDER BY "
                                     "key LIMIT ?2"));
  VERGER_TRY(put_range, prepare("INSERT INTO ChunkTimeStampRanges (key, min, max) VALUES (?1, ?2, "
                                "?3) ON CONFLICT (key) DO UPDATE SET min = excluded.min, max = "
                                "excluded.max"));
  VERGER_TRY(get_range, prepare("SELECT min, max FROM ChunkTimeStampRanges WHERE key = ?1"));
  VERGER_TRY(add_weight,
             prepare("INSERT INTO ChunkWeights (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO "
                     "UPDATE SET value = value + excluded.value"));
  VERGER_TRY(sum_weights,
             prepare("SELECT total(value) FROM ChunkWeights WHERE key BETWEEN ?1 AND ?2"));
  VERGER_TRY(drop_weights, prepare("DELETE FROM ChunkWeights WHERE key BETWEEN ?1 AND ?2"));
  return {};
}

// --- Transactions ---

Result<void> ScavengeState::begin() {
  VERGER_ASSERT(!impl_->transaction);
  VERGER_TRY(auto transaction, sqlite::Transaction::begin(impl_->database));
  impl_->transaction.emplace(std::move(transaction));
  impl_->learnt = false;
  return {};
}

Result<void> ScavengeState::commit() {
  VERGER_ASSERT(impl_->transaction.has_value());
  VERGER_RETURN_IF_ERROR(impl_->transaction->commit());
  impl_->transaction.reset();
  impl_->learnt = false;
  return {};
}

void ScavengeState::roll_back() {
  if (!impl_->transaction) {
    return;
  }
  impl_->transaction.reset();
  impl_->noted.clear();
  if (impl_->learnt) {
    // When the file cannot be read now, the next statement says so; the run has failed anyway.
    static_cast<void>(impl_->load_collisions().has_value());
    impl_->learnt = false;
  }
}

Result<void> ScavengeState::make_durable() {
  VERGER_TRY(const auto busy, impl_->database.query_int("PRAGMA wal_checkpoint(FULL)"));
  if (busy != 0) {
    return Error{Errc::kIo, "scavenging.db: the write-ahead log could not be written back"};
  }
  return {};
}

Result<void> ScavengeState::release_cache() {
  return impl_->database.execute("PRAGMA shrink_memory");
}

// --- Checkpoint ---

Result<std::optional<Checkpoint>> ScavengeState::checkpoint() {
  auto& get = *impl_->get_checkpoint;
  get.reset();
  VERGER_TRY(const bool found, get.step());
  std::optional<Checkpoint> checkpoint;
  std::optional<std::string> unknown;
  if (found) {
    checkpoint = decode_checkpoint(get.column_text(0));
    unknown = unknown_stage(get.column_text(0));
  }
  get.reset();
  if (unknown) {
    return unknown_stage_error("scavenging.db", *unknown);
  }
  return checkpoint;
}

Result<void> ScavengeState::set_checkpoint(const Checkpoint& checkpoint) {
  const auto json = encode_checkpoint(checkpoint);
  return impl_->put_checkpoint->bind(1, std::string_view(json)).run();
}

// --- Collisions ---

Result<void> ScavengeState::Impl::load_collisions() {
  collision_names.clear();
  collision_hashes.clear();
  VERGER_TRY(auto names, database.prepare("SELECT key FROM HashCollisions"));
  for (;;) {
    VERGER_TRY(const bool more, names.step());
    if (!more) {
      return {};
    }
    add_collision(names.column_text(0));
  }
}

void ScavengeState::Impl::add_collision(std::string_view name) {
  collision_names.emplace(name);
  collision_hashes.insert(hash(name));
}

void ScavengeState::expect(const detail::SeenNames::Key& key) const { impl_->noted.expect(key); }

void ScavengeState::forget_seen() { impl_->noted.clear(); }

bool ScavengeState::seen_before(std::string_view name, const detail::SeenNames::Key& key) {
  // A metastream's name hardly comes again, and would take the place of one that does.
  return !streams::is_metastream(name) && impl_->noted.insert(key);
}

Result<std::optional<std::string>> ScavengeState::Impl::user_of(StreamHash stream_hash) {
  auto& get = *get_hash_user;
  get.bind(1, row_key(stream_hash));
  VERGER_TRY(const bool used, get.step());
  std::optional<std::string> user;
  if (used) {
    user = get.column_text(0);
  }
  get.reset();
  return user;
}

Result<std::string> ScavengeState::hash_user(StreamHash hash) {
  VERGER_TRY(auto user, impl_->user_of(hash));
  return std::move(user).value_or(std::string());
}

Result<bool> ScavengeState::note_streams(std::span<NamedHash> streams,
                                         const std::function<Result<void>()>& pause) {
  auto& impl = *impl_;
  VERGER_ASSERT(std::ranges::is_sorted(
      streams, {}, [](const NamedHash& stream) { return row_key(stream.hash); }));
  const auto known = std::ranges::remove_if(
      streams, [this](const auto& stream) { return is_collision(stream.name); });
  streams = streams.first(streams.size() - known.size());
  // Who is first with a hash would be decided by the order here.
  const bool several = std::ranges::adjacent_find(streams, [](const auto& a, const auto& b) {
                         return a.hash == b.hash && a.name != b.name;
                       }) != streams.end();
  if (several) {
    return false;
  }
  const auto repeated = std::ranges::unique(streams, {}, &NamedHash::hash);
  streams = streams.first(streams.size() - repeated.size());
  const sqlite::MemoryRows::Rows rows{
      .count = streams.size(),
      .value = [&](std::size_t row, int column) -> sqlite::MemoryRows::Value {
        if (column == 0) {
          return row_key(streams[row].hash);
        }
        return streams[row].name;
      },
      .pause = pause};
  VERGER_RETURN_IF_ERROR(impl.new_users->run(*impl.put_hash_users, rows));
  if (impl.database.changes() == static_cast<std::int64_t>(streams.size())) {
    return true;
  }
  VERGER_TRY(const bool collides, impl.new_users->run(*impl.find_other_user, rows));
  return !collides;
}

Result<std::optional<std::string>> ScavengeState::note_stream(std::string_view name) {
  auto& impl = *impl_;
  if (is_collision(name)) {
    return std::nullopt;
  }
  const auto stream_hash = impl.hash(name);
  VERGER_TRY(auto user, impl.user_of(stream_hash));
  impl.learnt = true;
  if (!user) {
    VERGER_RETURN_IF_ERROR(impl.put_hash_user->bind(1, row_key(stream_hash)).bind(2, name).run());
    return std::nullopt;
  }
  if (*user == name) {
    return std::nullopt;
  }
  const bool user_is_new = !is_collision(*user);
  VERGER_RETURN_IF_ERROR(impl.put_collision->bind(1, name).run());
  impl.add_collision(name);
  if (user_is_new) {
    VERGER_RETURN_IF_ERROR(impl.put_collision->bind(1, std::string_view(*user)).run());
    impl.add_collision(*user);
    VERGER_RETURN_IF_ERROR(impl.move_rows(*user, stream_hash));
  }
  return user;
}

Result<void> ScavengeState::Impl::move_rows(std::string_view name, StreamHash hash_of_name) {
  struct Move {
    const char* insert;
    const char* remove;
  };
  constexpr Move kMoves[] = {
      {"INSERT OR REPLACE INTO OriginalStreamDataCollisions SELECT ?2, isTombstoned, maxAge, "
       "maxCount, truncateBefore, discardPoint, maybeDiscardPoint, status FROM "
       "OriginalStreamDatas WHERE key = ?1",
       "DELETE FROM OriginalStreamDatas WHERE key = ?1"},
      {"INSERT OR REPLACE INTO MetastreamDataCollisions SELECT ?2, isTombstoned, "
       "ifnull(discardPoint, 0) FROM MetastreamDatas WHERE key = ?1",
       "DELETE FROM MetastreamDatas WHERE key = ?1"},
  };
  const auto key = row_key(hash_of_name);
  for (const auto& move : kMoves) {
    VERGER_TRY(auto insert, prepare(move.insert));
    VERGER_RETURN_IF_ERROR(insert.bind(1, key).bind(2, name).run());
    VERGER_TRY(auto remove, prepare(move.remove));
    VERGER_RETURN_IF_ERROR(remove.bind(1, key).run());
  }
  return {};
}

bool ScavengeState::is_collision(std::string_view name) const {
  return !impl_->collision_names.empty() && impl_->collision_names.contains(name);
}

bool ScavengeState::has_collisions() const { return !impl_->collision_names.empty(); }

bool ScavengeState::is_collision_hash(StreamHash hash) const {
  return !impl_->collision_hashes.empty() && impl_->collision_hashes.contains(hash);
}

std::vector<std::string> ScavengeState::collisions() const {
  return {impl_->collision_names.begin(), impl_->collision_names.end()};
}

StreamHandle ScavengeState::handle_of(std::string_view name) const {
  return {impl_->hash(name), is_collision(name) ? std::string(name) : std::string()};
}

StreamHash ScavengeState::hash(std::string_view name) const { return impl_->hash(name); }

}  // namespace verger::scavenge
