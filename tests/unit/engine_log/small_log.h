#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/memory_file_system.h"
#include "engine/base/random.h"
#include "engine/log/transaction_log.h"
#include "tests/support/manual_clock.h"
#include "tests/support/results.h"

namespace verger::log {

/// A log with small chunks on a disk in memory.
struct SmallLog {
  static constexpr std::int32_t kChunkSize = 2000;

  MemoryFileSystem files;
  test::ManualClock clock;
  SeededRandom random{7};
  Path directory = "/db";
  LogOptions options{.access = Access::kWrite, .chunk_size = kChunkSize, .create = true};

  Result<std::unique_ptr<TransactionLog>> try_open() {
    return TransactionLog::open(files, directory, options, clock, random, null_log());
  }
  std::unique_ptr<TransactionLog> open() { return value(try_open()); }
  std::unique_ptr<TransactionLog> open_read_only() {
    LogOptions reading;
    return value(TransactionLog::open(files, directory, reading, clock, random, null_log()));
  }

  Prepare event(std::string_view stream = "stream", std::string_view data = "{}") {
    Prepare prepare;
    prepare.flags = 0x0127;
    prepare.transaction_position = kNoPosition;
    prepare.stream = stream;
    prepare.event_id = random.uuid();
    prepare.correlation_id = random.uuid();
    prepare.timestamp = clock.now();
    prepare.type = "tested";
    prepare.data = as_bytes(data);
    return prepare;
  }
  LogPosition append(TransactionLog& log, const Prepare& prepare) {
    Prepare copy = prepare;
    return value(log.append(std::span(&copy, 1))).front();
  }
  /// One event whose record, with its frame, takes `size` bytes.
  LogPosition append_sized(TransactionLog& log, std::size_t size) {
    Prepare prepare = event("s", "");
    const std::size_t without = record_size(prepare) + kFramingSize;
    const std::string data(size - without, 'x');
    prepare.data = as_bytes(data);
    return append(log, prepare);
  }

  std::vector<std::string> names() {
    std::vector<std::string> found;
    for (const auto& entry : value(files.list(directory))) {
      found.push_back(entry.name);
    }
    return found;
  }
  std::vector<std::string> chunk_names() {
    auto found = names();
    std::erase_if(found, [](const std::string& name) { return !name.starts_with("chunk-"); });
    return found;
  }
  Bytes content(const std::string& name) { return value(read_file(files, directory / name)); }
  void put(const std::string& name, ByteView bytes) {
    const Path path = directory / name;
    if (value(files.exists(path))) {
      ok(files.remove(path));
    }
    const auto file = value(files.open(path, OpenMode::kCreate));
    ok(file->write_at(0, bytes));
    ok(file->sync());
    ok(files.sync_directory(directory));
  }
  void put_checkpoint(const std::string& name, std::int64_t number) {
    Bytes bytes;
    append_le(bytes, number);
    put(name, bytes);
  }
  std::int64_t checkpoint(const std::string& name) {
    const Bytes bytes = content(name);
    EXPECT_EQ(bytes.size(), 8U) << name;
    return load_le<std::int64_t>(bytes.data());
  }
  std::vector<std::int64_t> positions(const TransactionLog& log) {
    std::vector<std::int64_t> found;
    LogCursor cursor(log, LogPosition(0), log.end());
    while (const auto record = value(cursor.next())) {
      found.push_back(record->position().value());
    }
    return found;
  }
};

}  // namespace verger::log
