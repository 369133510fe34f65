// The power goes, or an operation fails, at every disk operation of a workload that appends,
// completes chunks, switches one in and truncates: the log opens for writing again, and what was
// flushed is there.
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "engine/base/memory_file_system.h"
#include "engine/base/random.h"
#include "engine/log/transaction_log.h"
#include "tests/support/manual_clock.h"

namespace verger::log {
namespace {

constexpr std::int32_t kChunkSize = 3000;
const Path kDirectory = "/db";

/// What must be in the log: positions known to be durable, and those that may be there.
struct Expected {
  std::map<std::int64_t, std::string> durable;  ///< by position: the framed bytes
  std::set<std::int64_t> tried;
  std::int64_t truncating_to = -1;  ///< begun, perhaps done
  std::int64_t end = 0;
};

struct Machine {
  MemoryFileSystem files;
  test::ManualClock clock;
  SeededRandom random{3};

  Result<std::unique_ptr<TransactionLog>> open() {
    LogOptions options{.access = Access::kWrite, .chunk_size = kChunkSize, .create = true};
    return TransactionLog::open(files, kDirectory, options, clock, random, null_log());
  }
};

class Workload {
 public:
  Workload(Machine& machine, Expected& expected) : machine_(machine), expected_(expected) {}

  Result<void> run() {
    VERGER_TRY(log_, machine_.open());
    VERGER_RETURN_IF_ERROR(epoch(0));
    for (int i = 0; i < 3; ++i) {
      VERGER_RETURN_IF_ERROR(write(1, 700));
      VERGER_RETURN_IF_ERROR(write(2, 450));
      VERGER_RETURN_IF_ERROR(flush());
    }
    VERGER_RETURN_IF_ERROR(rewrite(0, 1));
    VERGER_RETURN_IF_ERROR(write(1, 700));
    VERGER_RETURN_IF_ERROR(log_->complete_chunk());
    note_flushed();
    VERGER_RETURN_IF_ERROR(epoch(1));
    VERGER_RETURN_IF_ERROR(write(3, 300));
    VERGER_RETURN_IF_ERROR(flush());
    VERGER_RETURN_IF_ERROR(truncate(std::prev(expected_.durable.end(), 2)->first));
    VERGER_RETURN_IF_ERROR(write(1, 400));
    VERGER_RETURN_IF_ERROR(flush());
    VERGER_RETURN_IF_ERROR(
        truncate(expected_.durable.begin()->first + kChunkSize));  // the merged chunk goes
    VERGER_RETURN_IF_ERROR(write(2, 300));
    VERGER_RETURN_IF_ERROR(flush());
    log_->set_chaser(log_->end());
    return log_->flush_checkpoints();
  }

 private:
  Result<void> write(std::size_t count, std::size_t size) {
    const std::string data(size, 'x');
    std::vector<Prepare> prepares(count);
    for (auto& prepare : prepares) {
      prepare.flags = 0x27;
      prepare.transaction_position = kNoPosition;
      prepare.stream = "s";
      prepare.event_id = machine_.random.uuid();
      prepare.correlation_id = machine_.random.uuid();
      prepare.timestamp = machine_.clock.now();
      prepare.data = as_bytes(data);
    }
    VERGER_TRY(const auto positions, log_->append(prepares));
    for (std::size_t i = 0; i < count; ++i) {
      Bytes framed;
      append_framed(framed, prepares[i]);
      unflushed_[positions[i].value()] = as_text(framed);
      expected_.tried.insert(positions[i].value());
    }
    return {};
  }
  Result<void> flush() {
    VERGER_RETURN_IF_ERROR(log_->flush());
    note_flushed();
    return {};
  }
  void note_flushed() {
    expected_.durable.merge(unflushed_);
    unflushed_.clear();
    expected_.end = log_->end().value();
  }
  Result<void> epoch(int number) {
    const auto from = log_->append_position();
    VERGER_TRY(const auto made, log_->append_epoch(EpochNumber(number), machine_.random.uuid()));
    static_cast<void>(made);
    note_flushed();
    LogCursor cursor(*log_, from, log_->end());
    for (;;) {
      VERGER_TRY(const auto record, cursor.next());
      if (!record) {
        return {};
      }
      expected_.durable[record->position().value()] = as_text(record->framed);
    }
  }
  /// Merges chunks `first` to `last`, keeping every record.
  Result<void> rewrite(std::size_t first, std::size_t last) {
    const auto chunks = log_->chunks();
    ChunkHeader header = chunks[first]->header();
    header.end = chunks[last]->end();
    header.scavenged = true;
    header.chunk_id = machine_.random.uuid();
    VERGER_TRY(auto writer, ChunkWriter::create(machine_.files, kDirectory, "m.tmp", header));
    for (auto i = first; i <= last; ++i) {
      VERGER_TRY(auto scanner, ChunkScanner::open(chunks[i], chunks[i]->start_position()));
      for (;;) {
        VERGER_TRY(const auto record, scanner.next());
        if (!record) {
          break;
        }
        VERGER_RETURN_IF_ERROR(writer.append(record->position(), record->framed));
      }
    }
    VERGER_TRY(const auto finished, writer.finish());
    VERGER_RETURN_IF_ERROR(log_->switch_in_chunk(finished.path));
    return {};
  }
  Result<void> truncate(std::int64_t position) {
    const auto chunk = log_->chunk_at(LogPosition(position));
    const auto target = chunk->header().scavenged ? chunk->start_position().value() : position;
    expected_.truncating_to = target;
    VERGER_RETURN_IF_ERROR(log_->truncate(LogPosition(position)));
    std::erase_if(expected_.durable, [&](const auto& one) { return one.first >= target; });
    expected_.truncating_to = -1;
    expected_.end = target;
    return {};
  }

  Machine& machine_;
  Expected& expected_;
  std::unique_ptr<TransactionLog> log_;
  std::map<std::int64_t, std::string> unflushed_;
};

void check(Machine& machine, const Expected& expected) {
  auto opened = machine.open();
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  auto& log = **opened;
  std::map<std::int64_t, std::string> found;
  LogPosition newest_epoch = kNoPosition;
  LogCursor cursor(log, LogPosition(0), log.end());
  for (;;) {
    const auto record = cursor.next();
    ASSERT_TRUE(record.has_value()) << record.error().message;
    if (!*record) {
      break;
    }
    found[(*record)->position().value()] = as_text((*record)->framed);
    if (std::holds_alternative<SystemRecord>((*record)->record)) {
      newest_epoch = (*record)->position();
    }
  }
  const bool truncated = expected.truncating_to >= 0 && log.end().value() <= expected.truncating_to;
  for (const auto& [position, bytes] : expected.durable) {
    if (truncated && position >= expected.truncating_to) {
      continue;
    }
    ASSERT_TRUE(found.contains(position)) << position;
    EXPECT_EQ(found[position], bytes) << position;
  }
  for (const auto& chunk : log.chunks()) {
    if (chunk->completed()) {
      const auto sum = chunk->verify_md5();
      EXPECT_TRUE(sum.has_value()) << sum.error().message;
    }
  }
  EXPECT_EQ(log.checkpoints().truncate, kNoPosition);
  EXPECT_EQ(log.epochs().last().value_or(Epoch{}).position, newest_epoch);
  // And it continues.
  ASSERT_TRUE(log.append_epoch(EpochNumber(50), machine.random.uuid()).has_value());
  ASSERT_TRUE(log.complete_chunk().has_value());
  opened->reset();
  const auto again = machine.open();
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ((*again)->epochs().last()->number.value(), 50);
}

/// Runs the workload with `fault` at operation after operation, until none is left.
template <class Fault>
int at_every_operation(Fault fault) {
  for (std::uint64_t nth = 0;; ++nth) {
    Machine machine;
    Expected expected;
    bool struck = false;
    machine.files.set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
      if (operation.number != nth || struck) {
        return std::nullopt;
      }
      struck = true;
      return fault(machine.files, nth);
    });
    std::optional<Error> ended;
    {
      Workload workload(machine, expected);
      if (const auto outcome = workload.run(); !outcome) {
        ended = outcome.error();
      }
    }
    machine.files.set_fault_hook(nullptr);
    if (!struck) {
      EXPECT_FALSE(ended) << ended->message;
      check(machine, expected);
      return static_cast<int>(nth);
    }
    SCOPED_TRACE("operation " + std::to_string(nth));
    machine.files.cut_power(nth);  // in any case, nothing that was not synced counts
    check(machine, expected);
    if (testing::Test::HasFailure()) {
      return static_cast<int>(nth);
    }
  }
}

TEST(LogFaults, APowerCutAtAnyOperationLosesNothingFlushed) {
  const int operations = at_every_operation([](MemoryFileSystem& files, std::uint64_t) {
    files.cut_power();
    return Error{Errc::kIo, "the power went"};
  });
  EXPECT_GT(operations, 100);
  RecordProperty("operations", operations);
}

TEST(LogFaults, ATornPowerCutAtAnyOperationLosesNothingFlushed) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    at_every_operation([&](MemoryFileSystem& files, std::uint64_t nth) {
      files.cut_power(seed * 1000 + nth);
      return Error{Errc::kIo, "the power went"};
    });
  }
}

TEST(LogFaults, AFailureOfAnyOperationLosesNothingFlushed) {
  EXPECT_GT(at_every_operation(
                [](MemoryFileSystem&, std::uint64_t) { return Error{Errc::kIo, "no luck"}; }),
            100);
}

}  // namespace
}  // namespace verger::log
