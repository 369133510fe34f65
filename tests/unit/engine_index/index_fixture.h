#pragma once

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/memory_file_system.h"
#include "engine/index/index.h"
#include "tests/support/manual_clock.h"
#include "tests/support/results.h"

namespace verger::index {

inline IndexEntry make_entry(std::uint64_t hash, std::int64_t number, std::int64_t position) {
  return {StreamHash(hash), EventNumber(number), LogPosition(position)};
}

/// A database directory on a disk in memory: a log that tests write to, and the index beside it.
class IndexTest : public testing::Test {
 protected:
  using Entries = std::vector<IndexEntry>;
  static constexpr auto kFlags = log::prepare_flags::kData | log::prepare_flags::kTransactionBegin |
                                 log::prepare_flags::kTransactionEnd |
                                 log::prepare_flags::kIsCommitted;

  IndexTest() {
    value(disk_.make_directories("/db"));
    value(disk_.sync_directory("/"));
    open_log();
    options_.read_only = false;
    options_.max_mem_table_size = 10;
    options_.cache_depth = 8;
    options_.stream_existence_filter_size = 10'000;
  }

  void open_log() {
    log_.reset();
    log::LogOptions options;
    options.access = log::Access::kWrite;
    options.chunk_size = 1 << 16;
    options.assume_stopped = true;
    options.create = true;
    options.max_truncation = -1;
    log_ = value(log::TransactionLog::open(disk_, "/db", options, clock_, random_, null_log()));
  }
  Result<std::unique_ptr<Index>> try_open() {
    return Index::open(disk_, kDirectory, *log_, options_, clock_, random_, null_log());
  }
  std::unique_ptr<Index> open() { return value(try_open()); }

  log::Prepare prepare(std::string_view stream, std::int64_t number, std::uint16_t flags = kFlags) {
    log::Prepare prepare;
    prepare.flags = flags;
    prepare.transaction_position = kNoPosition;
    prepare.expected_version = number - 1;
    prepare.stream = stream;
    prepare.event_id = random_.uuid();
    prepare.correlation_id = random_.uuid();
    prepare.timestamp = clock_.now();
    prepare.type = "type";
    return prepare;
  }
  /// One self-committed event in the log; with `index` in it, too.
  LogPosition write(std::string_view stream, std::int64_t number, Index* index = nullptr) {
    auto event = prepare(stream, number);
    const auto position = value(log_->append(std::span(&event, 1))).front();
    value(log_->flush());
    if (index != nullptr) {
      IndexedWrite write{
          {{index->hash(stream), EventNumber(number), position}}, position, position, stream};
      value(index->add(write));
      value(index->maintain());
    }
    return position;
  }
  /// `count` events to each of `streams` streams, in turns.
  void write_many(int streams, int count, Index* index = nullptr) {
    for (int number = 0; number < count; ++number) {
      for (int stream = 0; stream < streams; ++stream) {
        write("stream-" + std::to_string(stream), number, index);
      }
    }
  }
  static Entries all(const Index& index, std::string_view stream) {
    return value(index.range(index.hash(stream), EventNumber(0), kDeletedStream, 1'000'000));
  }
  static std::vector<std::pair<int, std::uint64_t>> levels(const Index& index) {
    std::vector<std::pair<int, std::uint64_t>> result;
    for (const auto& slot : index.tables()) {
      result.emplace_back(slot.level, slot.table->count());
    }
    return result;
  }
  std::vector<std::string> names(const Path& directory) {
    std::vector<std::string> result;
    for (const auto& entry : value(disk_.list(directory))) {
      result.push_back(entry.name);
    }
    return result;
  }
  bool has_backup() {
    return std::ranges::any_of(
        names("/db"), [](const std::string& name) { return name.starts_with("index-backup-"); });
  }
  void write_file(const Path& path, std::string_view text) {
    value(write_file_durably(disk_, path, as_bytes(text)));
  }
  void alter(const Path& path, std::uint64_t offset, std::byte byte) {
    const auto file = value(disk_.open(path, OpenMode::kReadWrite));
    value(file->write_at(offset, ByteView(&byte, 1)));
  }

  static constexpr const char* kDirectory = "/db/index";
  MemoryFileSystem disk_;
  SeededRandom random_{5};
  test::ManualClock clock_;
  IndexOptions options_;
  std::unique_ptr<log::TransactionLog> log_;
};

}  // namespace verger::index
