#include "engine/scavenge/detail/state_schema.h"

#include <fmt/format.h>

namespace verger::scavenge::detail {
namespace {

constexpr std::string_view kOriginalColumns =
    "isTombstoned INTEGER DEFAULT 0, maxAge INTEGER NULL, maxCount INTEGER NULL, "
    "truncateBefore INTEGER NULL, discardPoint INTEGER DEFAULT 0, "
    "maybeDiscardPoint INTEGER DEFAULT 0, status INTEGER DEFAULT 0";
constexpr std::string_view kMetastreamColumns =
    "isTombstoned INTEGER DEFAULT 0, discardPoint INTEGER NULL";

Result<void> check_pragma(sqlite::Database& database, const Path& path, std::string_view name,
                          std::string_view expected, std::string_view advice) {
  VERGER_TRY(const auto found, database.query_text(fmt::format("PRAGMA {}", name)));
  if (found.value_or("") != expected) {
    return Error{Errc::kRefused, fmt::format("{}: {} is {}, not {}; {}", path.string(), name,
                                             found.value_or("unknown"), expected, advice)};
  }
  return {};
}

}  // namespace

Result<void> apply_pragmas(sqlite::Database& database, const Path& path, int page_size,
                           std::int64_t cache_size) {
  VERGER_RETURN_IF_ERROR(database.execute(fmt::format("PRAGMA page_size = {}", page_size)));
  // Switching to WAL writes the first page of a new file, and with it the page size.
  VERGER_TRY(const auto mode, database.query_text("PRAGMA journal_mode = wal"));
  VERGER_RETURN_IF_ERROR(check_pragma(database, path, "page_size", std::to_string(page_size),
                                      "give the page size the file was made with"));
  if (mode.value_or("") != "wal") {
    return Error{Errc::kRefused,
                 fmt::format("{}: journal_mode stays {}", path.string(), mode.value_or("unknown"))};
  }
  VERGER_RETURN_IF_ERROR(database.execute("PRAGMA synchronous = 1"));
  VERGER_RETURN_IF_ERROR(
      check_pragma(database, path, "synchronous", "1", "the setting did not stick"));
  const auto cache = -(cache_size / 1024);
  VERGER_RETURN_IF_ERROR(database.execute(fmt::format("PRAGMA cache_size = {}", cache)));
  return check_pragma(database, path, "cache_size", std::to_string(cache),
                      "the setting did not stick");
}

Result<void> create_schema(sqlite::Database& database) {
  VERGER_TRY(const auto tables,
             database.query_int(
                 "SELECT count(*) FROM sqlite_master WHERE (type = 'table' AND name IN "
                 "('SchemaVersion', 'HashCollisions', 'HashUsers', 'MetastreamDatas', "
                 "'MetastreamDataCollisions', 'OriginalStreamDatas', "
                 "'OriginalStreamDataCollisions', 'Checkpoint', 'ChunkTimeStampRanges', "
                 "'ChunkWeights')) OR (type = 'index' AND name IN "
                 "('OriginalStreamDatasKeyStatus', 'OriginalStreamDataCollisionsKeyStatus'))"));
  if (tables == 12) {  // nothing is written to a file that is complete
    return {};
  }
  const auto text = [](std::string_view name, std::string_view key, std::string_view columns) {
    return fmt::format("CREATE TABLE IF NOT EXISTS {} (key {} PRIMARY KEY{}{});", name, key,
                       columns.empty() ? "" : ", ", columns);
  };
  VERGER_TRY(auto transaction, sqlite::Transaction::begin(database));
  const std::string sql =
      "CREATE TABLE IF NOT EXISTS SchemaVersion (version Integer PRIMARY KEY);"
      "INSERT OR IGNORE INTO SchemaVersion (version) SELECT 1 WHERE NOT EXISTS "
      "(SELECT 1 FROM SchemaVersion);" +
      text("HashCollisions", "TEXT", "") + text("HashUsers", "INT", "value TEXT NOT NULL") +
      text("MetastreamDatas", "INTEGER", kMetastreamColumns) +
      text("MetastreamDataCollisions", "TEXT", kMetastreamColumns) +
      text("OriginalStreamDatas", "INTEGER", kOriginalColumns) +
      text("OriginalStreamDataCollisions", "TEXT", kOriginalColumns) +
      "CREATE INDEX IF NOT EXISTS OriginalStreamDatasKeyStatus "
      "ON OriginalStreamDatas (status, key);"
      "CREATE INDEX IF NOT EXISTS OriginalStreamDataCollisionsKeyStatus "
      "ON OriginalStreamDataCollisions (status, key);"
      "CREATE TABLE IF NOT EXISTS Checkpoint (key Integer PRIMARY KEY, value Text NOT NULL);" +
      text("ChunkTimeStampRanges", "INTEGER", "min INTEGER, max INTEGER") +
      text("ChunkWeights", "INTEGER", "value REAL NOT NULL");
  VERGER_RETURN_IF_ERROR(database.execute(sql));
  return transaction.commit();
}

}  // namespace verger::scavenge::detail
