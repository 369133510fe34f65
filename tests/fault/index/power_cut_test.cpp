// The power goes, or an operation fails, at each operation of catching up with flushes and merges,
// replacing a table, and rebuilding. What opens afterwards serves the same entries.
#include <algorithm>

#include "engine/base/memory_file_system.h"
#include "engine/index/index.h"
#include "tests/support/manual_clock.h"
#include "tests/support/results.h"

namespace verger::index {
namespace {

constexpr int kEvents = 64;
constexpr int kStreams = 3;

std::string stream_name(int event) { return "stream-" + std::to_string(event % kStreams); }

class PowerCut : public testing::Test {
 protected:
  using Entries = std::vector<IndexEntry>;

  std::unique_ptr<log::TransactionLog> open_log(FileSystem& disk) {
    log::LogOptions options;
    options.access = log::Access::kWrite;
    options.chunk_size = 1 << 16;
    options.assume_stopped = true;
    options.create = true;
    return value(log::TransactionLog::open(disk, "/db", options, clock_, random_, null_log()));
  }
  Result<std::unique_ptr<Index>> open_index(FileSystem& disk, const log::TransactionLog& log) {
    IndexOptions options;
    options.read_only = false;
    options.max_mem_table_size = 10;
    options.cache_depth = 8;
    options.stream_existence_filter_size = 10'000;
    return Index::open(disk, "/db/index", log, options, clock_, random_, null_log());
  }
  LogPosition write(log::TransactionLog& log, int event) {
    namespace flags = log::prepare_flags;
    const auto name = stream_name(event);
    log::Prepare prepare;
    prepare.flags =
        flags::kData | flags::kTransactionBegin | flags::kTransactionEnd | flags::kIsCommitted;
    prepare.transaction_position = kNoPosition;
    prepare.expected_version = event / kStreams - 1;
    prepare.stream = name;
    prepare.event_id = random_.uuid();
    prepare.correlation_id = random_.uuid();
    prepare.timestamp = clock_.now();
    prepare.type = "type";
    return value(log.append(std::span(&prepare, 1))).front();
  }
  /// A log of kEvents events, and an index of the first half of them in tables and memory.
  std::unique_ptr<MemoryFileSystem> half_indexed() {
    auto disk = std::make_unique<MemoryFileSystem>();
    value(disk->make_directories("/db"));
    value(disk->sync_directory("/"));
    const auto log = open_log(*disk);
    const auto index = value(open_index(*disk, *log));
    for (int event = 0; event < kEvents / 2; ++event) {
      const auto position = write(*log, event);
      value(log->flush());
      const auto name = stream_name(event);
      value(index->add({{{hash_stream(name), EventNumber(event / kStreams), position}},
                        position,
                        position,
                        name}));
      value(index->maintain());
    }
    for (int event = kEvents / 2; event < kEvents; ++event) {
      write(*log, event);
    }
    value(log->flush());
    value(log->flush_checkpoints());
    return disk;
  }
  static Entries entries_of(const Index& index) {
    Entries entries;
    for (int stream = 0; stream < kStreams; ++stream) {
      const auto found = value(
          index.range(hash_stream(stream_name(stream)), EventNumber(0), kDeletedStream, 1000));
      entries.insert(entries.end(), found.begin(), found.end());
    }
    return entries;
  }
  /// Everything that changes files of the index, once.
  Result<void> work(FileSystem& disk, const log::TransactionLog& log) {
    VERGER_TRY(auto index, open_index(disk, log));
    const auto slots = index->tables();
    for (const auto& slot : slots) {
      VERGER_TRY(auto writer, PTableWriter::create(disk, index->directory(), random_.uuid(),
                                                   slot.table->count(), 8));
      PTableScanner scanner(slot.table);
      while (true) {
        VERGER_TRY(const auto* entry, scanner.next());
        if (!entry) {
          break;
        }
        VERGER_RETURN_IF_ERROR(writer.append(*entry));
      }
      VERGER_TRY(const auto path, writer.finish());
      VERGER_RETURN_IF_ERROR(index->replace_table(slot.table, path));
    }
    return index->rebuild(log);
  }
  /// Fails operation `nth` of work() in one way, opens again and compares. False: there is no nth.
  bool survives(const MemoryFileSystem& base, const Entries& expected, std::uint64_t nth,
                const std::function<void(MemoryFileSystem&)>& fault) {
    const auto disk = base.clone();
    bool hit = false;
    {
      const auto log = open_log(*disk);
      disk->reset_count();
      disk->set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
        if (operation.number < nth || hit) {
          return std::nullopt;
        }
        hit = true;
        fault(*disk);
        return Error{Errc::kIo, "fault injected at " + std::string(operation.kind) + " " +
                                    operation.path.string()};
      });
      static_cast<void>(work(*disk, *log));
    }
    disk->set_fault_hook(nullptr);
    const auto log = open_log(*disk);
    auto index = open_index(*disk, *log);
    EXPECT_TRUE(index) << index.error().message;
    if (index) {
      EXPECT_EQ(entries_of(**index), expected);
      // It continues from there, and leaves no file behind that is not named.
      EXPECT_TRUE(work(*disk, *log));
      EXPECT_EQ(entries_of(*value(open_index(*disk, *log))), expected);
      EXPECT_EQ(value(disk->list("/db/index")).size(), 4U);
      EXPECT_EQ(value(disk->list("/db")).size(), value(base_->list("/db")).size()) << "a backup";
    }
    return hit;
  }
  void try_all(const std::function<void(MemoryFileSystem&, std::uint64_t)>& fault) {
    Entries expected;
    {
      const auto disk = base_->clone();
      const auto log = open_log(*disk);
      expected = entries_of(*value(open_index(*disk, *log)));
      ASSERT_EQ(expected.size(), std::size_t{kEvents});
    }
    std::uint64_t nth = 0;
    for (; !HasFailure(); ++nth) {
      SCOPED_TRACE("operation " + std::to_string(nth));
      if (!survives(*base_, expected, nth, [&](MemoryFileSystem& disk) { fault(disk, nth); })) {
        break;
      }
    }
    RecordProperty("operations", static_cast<int>(nth));
    EXPECT_GT(nth, 100U);
  }

  SeededRandom random_{17};
  test::ManualClock clock_;
  std::unique_ptr<MemoryFileSystem> base_ = half_indexed();
};

TEST_F(PowerCut, AtAnyOperationLosesNoEntry) {
  try_all([](MemoryFileSystem& disk, std::uint64_t) { disk.cut_power(); });
}

TEST_F(PowerCut, WithTornWritesLosesNoEntry) {
  try_all([](MemoryFileSystem& disk, std::uint64_t nth) { disk.cut_power(nth * 31 + 7); });
}

TEST_F(PowerCut, FailureOfAnyOperationLosesNoEntry) {
  try_all([](MemoryFileSystem&, std::uint64_t) {});
}

TEST_F(PowerCut, DeathOfTheProcessAtAnyOperationLosesNoEntry) {
  try_all([](MemoryFileSystem& disk, std::uint64_t) { disk.kill_process(); });
}

}  // namespace
}  // namespace verger::index
