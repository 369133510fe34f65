#include "controller/journal/detail/sqlite_schema.h"

#include <fmt/format.h>

namespace verger::controller::detail {
namespace {

constexpr std::int64_t kSchemaVersion = 3;
constexpr std::string_view kSchema = R"(
CREATE TABLE events (
  sequence INTEGER PRIMARY KEY,
  stream   TEXT NOT NULL,
  revision INTEGER NOT NULL,
  type     TEXT NOT NULL,
  data     TEXT NOT NULL,
  at       INTEGER NOT NULL,
  epoch    INTEGER NOT NULL,
  hash     BLOB NOT NULL,
  UNIQUE (stream, revision)
) STRICT;
CREATE TABLE streams (
  stream   TEXT PRIMARY KEY,
  revision INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE epochs (
  epoch INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  at    INTEGER NOT NULL
) STRICT;
)";
/// Since schema 2. `hash` is that of the event at `revision`.
constexpr std::string_view kSnapshotSchema = R"(
CREATE TABLE snapshots (
  stream   TEXT PRIMARY KEY,
  revision INTEGER NOT NULL,
  hash     BLOB NOT NULL,
  summary  TEXT NOT NULL,
  state    TEXT NOT NULL
) STRICT, WITHOUT ROWID;
)";
/// Since schema 3. `hash` is that of the event `last`.
constexpr std::string_view kRemovedSchema = R"(
CREATE TABLE removed (
  last  INTEGER PRIMARY KEY,
  first INTEGER NOT NULL,
  hash  BLOB NOT NULL
) STRICT;
)";
}  // namespace

Result<void> bring_up_to_date(sqlite::Database& database, const Path& path) {
  VERGER_TRY(const auto version, database.query_int("PRAGMA user_version"));
  if (version > kSchemaVersion) {
    return Error{Errc::kUnsupported,
                 fmt::format("{}: journal of schema {}, this program knows up to {}; use the newer "
                             "program",
                             path.string(), version, kSchemaVersion)};
  }
  if (version == kSchemaVersion) {
    return {};
  }
  VERGER_TRY(auto transaction, sqlite::Transaction::begin(database));
  if (version == 0) {
    VERGER_RETURN_IF_ERROR(database.execute(kSchema));
  }
  if (version < 2) {
    VERGER_RETURN_IF_ERROR(database.execute(kSnapshotSchema));
  }
  VERGER_RETURN_IF_ERROR(database.execute(kRemovedSchema));
  VERGER_RETURN_IF_ERROR(database.execute(fmt::format("PRAGMA user_version = {}", kSchemaVersion)));
  return transaction.commit();
}

}  // namespace verger::controller::detail
