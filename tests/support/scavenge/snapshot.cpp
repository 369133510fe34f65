#include "tests/support/scavenge/snapshot.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/sqlite.h"
#include "engine/scavenge/scavenge_state.h"
#include "tests/support/results.h"
#include "tests/support/scavenge/run.h"

namespace verger::test {
namespace {

std::string posmap_problem(const log::Chunk& chunk, const ChunkSnapshot& snapshot) {
  const auto posmap = value(chunk.posmap());
  if (!snapshot.scavenged) {
    return posmap.empty() ? "" : "an unscavenged chunk with a posmap";
  }
  std::size_t n = 0;
  std::int64_t actual = 0;
  if (posmap.size() != snapshot.records.size()) {
    return fmt::format("{} posmap entries for {} records", posmap.size(), snapshot.records.size());
  }
  for (const auto& [position, framed] : snapshot.records) {
    if (posmap[n].actual != actual ||
        posmap[n].local != position - chunk.start_position().value()) {
      return fmt::format("posmap entry {} does not fit", n);
    }
    actual += static_cast<std::int64_t>(framed.size());
    ++n;
  }
  return "";
}

ChunkSnapshot read_chunk(const std::shared_ptr<const log::Chunk>& chunk) {
  ChunkSnapshot snapshot;
  snapshot.start = chunk->start().value();
  snapshot.end = chunk->end().value();
  snapshot.version = chunk->version();
  snapshot.scavenged = chunk->header().scavenged;
  snapshot.completed = chunk->completed();
  snapshot.file_size = chunk->file_size();
  auto scanner = value(log::ChunkScanner::open(chunk, chunk->start_position()));
  std::int64_t bytes = 0;
  std::int64_t last_end = 0;
  while (const auto record = value(scanner.next())) {
    const auto position = record->position().value();
    snapshot.records.emplace(position, as_text(record->framed));
    bytes += static_cast<std::int64_t>(record->framed.size());
    last_end = position - chunk->start_position().value() +
               static_cast<std::int64_t>(record->framed.size());
  }
  if (const auto footer = chunk->footer()) {
    snapshot.physical_size = footer->physical_data_size;
    snapshot.logical_size = footer->logical_data_size;
    snapshot.problem = posmap_problem(*chunk, snapshot);
    if (snapshot.physical_size != bytes || snapshot.logical_size != last_end) {
      snapshot.problem = "the footer's sizes do not fit the records";
    } else if (chunk->header().effective_version() >= 3 && snapshot.file_size % 4096 != 0) {
      snapshot.problem = "the file size is no multiple of 4096";
    } else if (const auto md5 = chunk->verify_md5(); !md5) {
      snapshot.problem = md5.error().message;
    }
  }
  return snapshot;
}

}  // namespace

StateRows read_state(FileSystem& files, const Path& index_directory) {
  StateRows rows;
  const auto path = scavenge::ScavengeState::path_in(index_directory);
  if (!value(files.exists(path))) {
    return rows;
  }
  auto database = value(sqlite::Database::open_snapshot(files, path));
  struct TableColumns {
    const char* table;
    int columns;
  };
  constexpr TableColumns kTables[] = {{"SchemaVersion", 1},
                                      {"HashCollisions", 1},
                                      {"HashUsers", 2},
                                      {"MetastreamDatas", 3},
                                      {"MetastreamDataCollisions", 3},
                                      {"OriginalStreamDatas", 8},
                                      {"OriginalStreamDataCollisions", 8},
                                      {"ChunkTimeStampRanges", 3},
                                      {"ChunkWeights", 2},
                                      {"Checkpoint", 2}};
  for (const auto& [table, columns] : kTables) {
    auto& texts = rows[table];
    auto select = value(database.prepare(fmt::format("SELECT * FROM {}", table)));
    while (value(select.step())) {
      std::string text;
      for (int column = 0; column < columns; ++column) {
        text += select.column_is_null(column) ? "null" : std::string(select.column_text(column));
        text += column + 1 < columns ? " | " : "";
      }
      if (std::string_view(table) != "ChunkWeights" || !text.ends_with("| 0.0")) {
        texts.push_back(text);
      }
    }
    std::ranges::sort(texts);
  }
  return rows;
}

DatabaseSnapshot snapshot_of(const streams::Database& database) {
  DatabaseSnapshot snapshot;
  for (const auto& chunk : database.transaction_log().chunks()) {
    snapshot.chunks.push_back(read_chunk(chunk));
  }
  for (const auto& slot : database.stream_index().tables()) {
    index::PTableScanner scanner(slot.table);
    while (const auto entry = value(scanner.next())) {
      snapshot.entries.push_back(*entry);
    }
  }
  std::ranges::sort(snapshot.entries);
  return snapshot;
}

DatabaseSnapshot take_snapshot(FileSystem& files, const Path& directory) {
  const auto database = value(open_database(files, directory, {}, log::Access::kReadOnly));
  auto snapshot = snapshot_of(*database);
  snapshot.state = read_state(files, directory / "index");
  return snapshot;
}

}  // namespace verger::test
