#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/random.h"
#include "engine/streams/event_store.h"
#include "tests/support/manual_clock.h"

namespace verger::test {

/// How small the parts of a built database are, so that few events make several of them.
struct BuilderOptions {
  std::int32_t chunk_size = 16 * 1024;
  std::uint64_t max_mem_table_size = 20;
  std::uint64_t seed = 1;
  Ticks start = kTestTime;
  /// Moved on after each write.
  std::int64_t seconds_per_write = 1;
  index::HashFunction hash = &index::hash_stream;
};

/// Options that fit a built database, for opening it again.
streams::DatabaseOptions database_options(const BuilderOptions& options, log::Access access);

/// Writes a small database through streams::Database; the same calls give the same bytes. Every
/// failure throws std::runtime_error with the error's text.
class DatabaseBuilder {
 public:
  DatabaseBuilder(FileSystem& files, Path directory, BuilderOptions options = {});
  ~DatabaseBuilder();

  /// One write of `count` events ("e", {"n":number}, padded to `size` bytes), committed at once.
  streams::WriteOutcome write(std::string_view stream, int count = 1, std::size_t size = 32);
  streams::WriteOutcome write(std::string_view stream, std::vector<streams::NewEvent> events);
  streams::WriteOutcome metadata(std::string_view stream, std::string_view json);
  streams::WriteOutcome soft_delete(std::string_view stream);
  streams::WriteOutcome hard_delete(std::string_view stream);
  /// An event with the number 0, whether the stream has one or not: equal numbers at two positions
  /// are what a defect of old servers left.
  void write_number_0(std::string_view stream, const streams::NewEvent& event);
  /// A scavenge point; completes the chunk.
  streams::ScavengePoint point(std::int32_t threshold = 0);
  /// An explicit transaction of `count` events with begin, end and, unless `open`, commit records.
  void transaction(std::string_view stream, int count, bool open = false);

  streams::NewEvent event(std::size_t size = 32);
  streams::Database& database() { return *database_; }
  ManualClock& clock() { return clock_; }
  Random& random() { return random_; }
  const Path& directory() const { return directory_; }
  const BuilderOptions& options() const { return options_; }
  /// Closes the database; nothing may be written afterwards until open().
  void close();
  void open();

 private:
  streams::WriteOutcome committed(streams::WriteResult result);

  FileSystem& files_;
  Path directory_;
  BuilderOptions options_;
  ManualClock clock_;
  SeededRandom random_;
  std::unique_ptr<streams::Database> database_;
};

/// Leaves the files as a kill right behind a point's record does: the point is in the first chunk,
/// which is not completed, and its record, that ends at `record_end`, is the last one. The database
/// is closed, and had nothing behind that chunk.
void leave_killed_behind_point(FileSystem& files, const Path& directory, LogPosition record_end);

}  // namespace verger::test
