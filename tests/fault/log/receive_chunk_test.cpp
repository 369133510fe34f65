// A follower takes a leader's scavenged chunk in place of what it has of it, and crashes at any
// disk operation of that: what it had acknowledged, or the chunk in its place, is there afterwards.
#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <map>

#include "engine/base/memory_file_system.h"
#include "engine/base/random.h"
#include "engine/log/transaction_log.h"
#include "tests/support/manual_clock.h"
#include "tests/support/results.h"

namespace verger::log {
namespace {

constexpr std::int32_t kReplicaChunkSize = 3000;
const Path kReplicaDirectory = "/db";
const Path kReceived = "/db/replicated-000000.chunk.tmp";

using Records = std::map<std::int64_t, std::string>;  ///< by position: the framed bytes

struct Replica {
  explicit Replica(std::uint64_t seed) : random(seed) {}
  std::unique_ptr<MemoryFileSystem> files = std::make_unique<MemoryFileSystem>();
  test::ManualClock clock;
  SeededRandom random;

  Result<std::unique_ptr<TransactionLog>> open() {
    LogOptions options{.access = Access::kWrite, .chunk_size = kReplicaChunkSize, .create = true};
    return TransactionLog::open(*files, kReplicaDirectory, options, clock, random, null_log());
  }
};

Records records_of(const TransactionLog& log) {
  Records found;
  LogCursor cursor(log, LogPosition(0), log.end());
  while (const auto record = value(cursor.next())) {
    found[record->position().value()] = as_text(record->framed);
  }
  return found;
}

std::size_t epochs_in(const Records& records) {
  return static_cast<std::size_t>(std::ranges::count_if(records, [](const auto& one) {
    return one.second.at(4) == 2;  // the kind of a system record
  }));
}

/// Rewrites chunks `first` to `last` of the log into one file; every second event goes.
void scavenge(Replica& machine, TransactionLog& log, std::int32_t first, std::int32_t last) {
  const auto chunks = log.chunks();
  ChunkHeader header = log.chunk_at(LogPosition(std::int64_t{first} * kReplicaChunkSize))->header();
  header.end = ChunkNumber(last);
  header.scavenged = true;
  auto writer = value(ChunkWriter::create(*machine.files, kReplicaDirectory, "m.tmp", header));
  int events = 0;
  for (const auto& chunk : chunks) {
    if (chunk->start() < header.start || chunk->end() > header.end) {
      continue;
    }
    auto scanner = value(ChunkScanner::open(chunk, chunk->start_position()));
    while (const auto record = value(scanner.next())) {
      const bool event = record->prepare() != nullptr && record->prepare()->stream == "s";
      if (!event || ++events % 2 == 0) {
        ok(writer.append(record->position(), record->framed));
      }
    }
  }
  value(log.switch_in_chunk(value(writer.finish()).path));
}

struct Setting {
  const char* name;
  int leader_records;    ///< three or four to a chunk
  int follower_records;  ///< that it has of them
  std::int32_t first;    ///< the chunks the leader has made into one
  std::int32_t last;
  std::int32_t own_last = -1;  ///< the follower has made chunks 0 to this one into one
  bool completed = false;      ///< the follower knows that its last chunk is complete
};
void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name; }

/// A follower with a received file beside its log, and what must be there before and after.
struct Prepared {
  std::unique_ptr<MemoryFileSystem> disk;
  Records before;
  Records after;
  std::int64_t end_before = 0;
  std::int64_t end_after = 0;
};

Prepared prepare(const Setting& setting) {
  Replica leader(7);
  Replica follower(99);
  auto leading = value(leader.open());
  auto following = value(follower.open());
  value(leading->append_epoch(EpochNumber(0), leader.random.uuid()));
  const std::string data(550, 'x');
  std::vector<LogPosition> ends;
  for (int i = 0; i < setting.leader_records; ++i) {
    Prepare prepare;
    prepare.flags = 0x27;
    prepare.transaction_position = kNoPosition;
    prepare.stream = "s";
    prepare.event_id = leader.random.uuid();
    prepare.correlation_id = leader.random.uuid();
    prepare.timestamp = leader.clock.now();
    prepare.data = as_bytes(data);
    value(leading->append(std::span(&prepare, 1)));
    ok(leading->flush());
    ends.push_back(leading->end());
    if (i == 5) {
      value(leading->append_epoch(EpochNumber(1), leader.random.uuid()));
    }
  }
  const auto had = ends[static_cast<std::size_t>(setting.follower_records) - 1];
  while (following->append_position() < had) {
    const auto at = following->append_position();
    const auto chunk = leading->chunk_at(at);
    ok(following->start_replicated_chunk(chunk->header()));
    auto scanner = value(ChunkScanner::open(chunk, at));
    while (const auto record = value(scanner.next())) {
      if (record->position() < had) {
        ok(following->append_replicated(record->framed));
      }
    }
    ok(following->flush());
    if (chunk->completed() && (setting.completed || had > chunk->end_position())) {
      ok(following->complete_replicated_chunk());
    }
  }
  ok(following->flush());
  if (setting.own_last >= 0) {
    scavenge(follower, *following, 0, setting.own_last);
  }
  following->set_chaser(following->end());
  ok(following->flush_checkpoints());

  Prepared prepared;
  prepared.before = records_of(*following);
  prepared.end_before = following->end().value();
  following.reset();
  scavenge(leader, *leading, setting.first, setting.last);
  const auto sent = leading->chunk_at(LogPosition(std::int64_t{setting.first} * kReplicaChunkSize));
  const auto start = sent->start_position().value();
  prepared.end_after = sent->end_position().value();
  for (const auto& [position, bytes] : prepared.before) {
    if (position < start) {
      prepared.after[position] = bytes;
    }
  }
  auto scanner = value(ChunkScanner::open(sent, sent->start_position()));
  while (const auto record = value(scanner.next())) {
    prepared.after[record->position().value()] = as_text(record->framed);
  }
  const auto bytes = value(read_file(*leader.files, sent->path()));
  const auto file = value(follower.files->open(kReceived, OpenMode::kCreateNew));
  ok(file->write_at(0, bytes));
  ok(file->sync());
  prepared.disk = follower.files->clone();
  return prepared;
}

/// Opens what a crash left: all that was there before, or all that is there after; it continues.
void check(Replica& machine, const Prepared& prepared, bool must_be_done) {
  auto opened = machine.open();
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  auto& log = **opened;
  const auto end = log.end().value();
  if (must_be_done || records_of(log) == prepared.after) {
    EXPECT_EQ(end, prepared.end_after);
    EXPECT_TRUE(records_of(log) == prepared.after);
  } else {
    EXPECT_EQ(end, prepared.end_before);
    EXPECT_TRUE(records_of(log) == prepared.before);
  }
  for (const auto& chunk : log.chunks()) {
    if (chunk->completed()) {
      const auto sum = chunk->verify_md5();
      EXPECT_TRUE(sum.has_value()) << sum.error().message;
    }
  }
  EXPECT_EQ(log.epochs().all().size(), epochs_in(records_of(log)));
  ASSERT_TRUE(log.append_epoch(EpochNumber(50), machine.random.uuid()).has_value());
  ASSERT_TRUE(log.complete_chunk().has_value());
  opened->reset();
  const auto again = machine.open();
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ((*again)->epochs().last()->number.value(), 50);
}

using Crash = std::function<void(MemoryFileSystem&, std::uint64_t)>;

/// Receives the chunk with a crash at operation after operation; returns how many there are.
int at_every_operation(const Setting& setting, const Crash& crash) {
  const auto prepared = prepare(setting);
  for (std::uint64_t nth = 0;; ++nth) {
    SCOPED_TRACE("operation " + std::to_string(nth));
    Replica machine(5);
    machine.files = prepared.disk->clone();
    auto log = machine.open();
    EXPECT_TRUE(log.has_value());
    // Opening removed the received file, as it does with leftovers; it comes again.
    {
      const auto bytes = value(read_file(*prepared.disk, kReceived));
      const auto file = value(machine.files->open(kReceived, OpenMode::kCreateNew));
      ok(file->write_at(0, bytes));
      ok(file->sync());
    }
    machine.files->reset_count();
    bool struck = false;
    machine.files->set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
      if (operation.number != nth || struck) {
        return struck ? std::optional(Error{Errc::kIo, "the process is gone"}) : std::nullopt;
      }
      struck = true;
      crash(*machine.files, nth);
      return Error{Errc::kIo, "the process dies here"};
    });
    const auto received = (*log)->receive_chunk(kReceived);
    if (!struck) {
      EXPECT_TRUE(received.has_value()) << received.error().message;
      EXPECT_EQ((*log)->end().value(), prepared.end_after);
      EXPECT_TRUE(records_of(**log) == prepared.after);
    }
    log->reset();
    machine.files->set_fault_hook(nullptr);
    check(machine, prepared, !struck);
    if (!struck || testing::Test::HasFailure()) {
      return static_cast<int>(nth);
    }
  }
}

class ReceiveChunk : public testing::TestWithParam<Setting> {};

TEST_P(ReceiveChunk, ACrashOfTheProcessLosesNothing) {
  EXPECT_GT(at_every_operation(
                GetParam(), [](MemoryFileSystem& files, std::uint64_t) { files.kill_process(); }),
            3);
}

TEST_P(ReceiveChunk, APowerCutLosesNothing) {
  EXPECT_GT(at_every_operation(GetParam(),
                               [](MemoryFileSystem& files, std::uint64_t) { files.cut_power(); }),
            3);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    at_every_operation(GetParam(), [seed](MemoryFileSystem& files, std::uint64_t nth) {
      files.cut_power(seed * 1000 + nth);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(
    Settings, ReceiveChunk,
    testing::Values(Setting{"APartOfOneChunk", 14, 5, 1, 1}, Setting{"APartOfTheFirst", 6, 2, 0, 0},
                    Setting{"ACompletedChunk", 18, 10, 2, 2, -1, true},
                    Setting{"PartOfAMergedRange", 20, 8, 0, 3},
                    Setting{"PartOfARangeThatStartsLater", 20, 8, 1, 3},
                    Setting{"InsideTheOwnMergedChunk", 20, 8, 1, 3, 1},
                    Setting{"BehindTheOwnMergedChunk", 20, 8, 2, 3, 1},
                    Setting{"InPlaceOfTheOwnMergedChunk", 20, 8, 0, 3, 1},
                    Setting{"CompletedBehindTheOwnMergedChunk", 20, 10, 1, 3, 1, true}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace verger::log
