#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/index/entry.h"
#include "engine/log/chunk.h"
#include "engine/streams/event_store.h"

namespace verger::test {

/// One live chunk file, completely read.
struct ChunkSnapshot {
  std::int32_t start = 0;
  std::int32_t end = 0;
  int version = 0;
  bool scavenged = false;
  bool completed = false;
  std::int64_t physical_size = 0;
  std::int64_t logical_size = 0;
  std::uint64_t file_size = 0;
  /// Log position -> framed bytes.
  std::map<std::int64_t, std::string> records;
  /// What is wrong with posmap, sizes or MD5; empty when nothing is.
  std::string problem;
};

/// Rows as text, sorted: table -> rows.
using StateRows = std::map<std::string, std::vector<std::string>>;

/// What is in a database directory.
struct DatabaseSnapshot {
  std::vector<ChunkSnapshot> chunks;
  /// Entries of the PTables of the index map, sorted.
  std::vector<index::IndexEntry> entries;
  StateRows state;  ///< empty when there is no scavenging.db
};

/// Chunks and tables of an open database; not the rows of scavenging.db.
DatabaseSnapshot snapshot_of(const streams::Database& database);
/// Opens read-only. Throws std::runtime_error when something cannot be read.
DatabaseSnapshot take_snapshot(FileSystem& files, const Path& directory);
/// Zero weights are left out, and with them the order of tables.
StateRows read_state(FileSystem& files, const Path& index_directory);

}  // namespace verger::test
