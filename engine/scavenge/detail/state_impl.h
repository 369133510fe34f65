#pragma once

#include <array>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/base/sqlite.h"
#include "engine/base/sqlite_rows.h"
#include "engine/scavenge/detail/seen_names.h"
#include "engine/scavenge/scavenge_state.h"

namespace verger::scavenge {

namespace detail {

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};
using NameSet = std::unordered_set<std::string, StringHash, std::equal_to<>>;

/// The same statement for the table by hash and the table by name.
struct KeyedStatement {
  std::optional<sqlite::Statement> by_hash;
  std::optional<sqlite::Statement> by_name;
  /// Parameter 1 is the key.
  sqlite::Statement& keyed(const StreamHandle& stream) {
    if (stream.by_name()) {
      return by_name->bind(1, std::string_view(stream.name));
    }
    return by_hash->bind(1, row_key(stream.hash));
  }
};

}  // namespace detail

struct ScavengeState::Impl {
  Impl(sqlite::Database opened, index::HashFunction hash_function, StateOptions chosen)
      : database(std::move(opened)),
        hash(hash_function),
        options(chosen),
        noted(chosen.names_cache) {}

  Result<void> prepare_statements();
  Result<void> load_collisions();
  Result<sqlite::Statement> prepare(std::string_view sql);
  Result<void> prepare_keyed(detail::KeyedStatement& statement, std::string_view table,
                             std::string_view sql);
  /// The first stream with the hash; nullopt when it is unused.
  Result<std::optional<std::string>> user_of(StreamHash stream_hash);
  /// Moves the rows of `name` from the tables by hash to those by name.
  Result<void> move_rows(std::string_view name, StreamHash hash_of_name);
  void add_collision(std::string_view name);

  sqlite::Database database;
  index::HashFunction hash;
  StateOptions options;

  /// Names that note_stream() has nothing more to do for, once the transaction is committed.
  detail::SeenNames noted;
  detail::NameSet collision_names;
  std::unordered_set<StreamHash> collision_hashes;
  /// roll_back() has to undo something in the two sets above.
  bool learnt = false;

  /// Of active_streams(): few of the streams kept by hash are active.
  bool few_are_active = false;

  /// Hash and name; hash and limits; hash and discard points.
  std::optional<sqlite::MemoryRows> new_users, new_limits, new_points;

  // Statements are finalized before the database closes: they stand after it.
  std::optional<sqlite::Transaction> transaction;
  std::optional<sqlite::Statement> get_checkpoint, put_checkpoint;
  std::optional<sqlite::Statement> get_hash_user, put_hash_user, put_collision;
  std::optional<sqlite::Statement> put_hash_users, find_other_user, put_all_limits, put_all_points;
  detail::KeyedStatement put_limits, put_tombstone, put_meta_discard, put_meta_tombstone;
  detail::KeyedStatement put_calculated, put_points, get_original, get_metastream, get_active;
  detail::KeyedStatement get_original_data;
  std::optional<sqlite::Statement> scan_originals;
  std::optional<sqlite::Statement> put_range, get_range, add_weight, sum_weights, drop_weights;
};

}  // namespace verger::scavenge
