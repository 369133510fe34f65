// Every disk operation of an online scavenge fails once, and at every one the power goes: the
// server starts on what is left and reads the same; what was begun is continued, or the server does
// all of it, with the same result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/online/shadow.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/online/online_run.h"
#include "tests/support/results.h"
#include "tests/support/scavenge/snapshot.h"

namespace verger::test {
namespace {

constexpr int kShards = 8;
const Path kDatabase = "/db";

BuilderOptions small_parts() {
  BuilderOptions options;
  options.chunk_size = 4096;
  options.max_mem_table_size = 16;
  options.seconds_per_write = 60;
  return options;
}

ScavengeRun own_run() {
  ScavengeRun run;
  run.chunk_size = small_parts().chunk_size;
  run.max_mem_table_size = small_parts().max_mem_table_size;
  return run;
}

/// Counts, ages, a delete, in chunks of which several are rewritten; records behind the point.
struct Begin {
  std::unique_ptr<MemoryFileSystem> files;
  streams::ScavengePoint point;
  Begin() {
    MemoryFileSystem disk;
    DatabaseBuilder builder(disk, kDatabase, small_parts());
    builder.metadata("count", R"({"$maxCount":2})");
    builder.metadata("age", R"({"$maxAge":900})");
    for (int n = 0; n < 8; ++n) {
      builder.write("count", 2);
      builder.write("age");
      builder.write("plain");
      builder.write("gone");
    }
    builder.hard_delete("gone");
    point = builder.point();
    builder.write("plain", 3);
    builder.close();
    files = disk.clone();  // all of it durable
  }
};

struct Records {
  std::map<std::int64_t, std::string> records;
  std::vector<index::IndexEntry> entries;
  StateRows state;
  std::vector<std::string> layout;
};

Records records_of(FileSystem& files) {
  Records found;
  auto snapshot = take_snapshot(files, kDatabase);
  for (auto& chunk : snapshot.chunks) {
    EXPECT_EQ(chunk.problem, "");
    found.layout.push_back(
        fmt::format("{}-{}{}", chunk.start, chunk.end, chunk.scavenged ? " scavenged" : ""));
    found.records.merge(chunk.records);
  }
  found.entries = std::move(snapshot.entries);
  found.state = std::move(snapshot.state);
  return found;
}

std::string readable(FileSystem& files, const streams::ScavengePoint& point) {
  const auto database = value(open_database(files, kDatabase, own_run(), log::Access::kWrite));
  streams::DigestJob job(*database, point.position, point.effective_now);
  while (value(job.step({.units = 100'000})).kind != StepOutcome::Kind::kDone) {
  }
  return to_hex(job.digest().readable);
}

/// All of it but the server's phases, beside the open database.
Result<OnlineResult> beside(MemoryFileSystem& files, const streams::ScavengePoint& point) {
  VERGER_TRY(const auto live, open_database(files, kDatabase, own_run(), log::Access::kWrite));
  return run_online(files, kDatabase, *live, {.point = point});
}

struct Whole {
  Begin begin;
  Records result;
  std::string digest;
  std::uint64_t operations = 0;

  Whole() {
    digest = readable(*begin.files->clone(), begin.point);
    const auto own = begin.files->clone();
    EXPECT_GE(value(run_scavenge(*own, kDatabase, own_run())).progress.chunks_executed, 2U);
    result = records_of(*own);
    const auto files = begin.files->clone();
    files->reset_count();
    EXPECT_GE(value(beside(*files, begin.point)).preparation.chunks.size(), 2U);
    operations = files->operation_count();
  }
};

const Whole& whole() {
  static const Whole instance;
  return instance;
}

enum class Mishap : std::uint8_t { kError, kNoSpace, kPowerCut, kTornPowerCut, kKill };

/// With a mishap at operation `nth`; false when there are fewer operations.
bool disturb_online(std::uint64_t nth, Mishap mishap, bool server_does_all) {
  const auto files = whole().begin.files->clone();
  bool reached = false;
  files->reset_count();
  files->set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.number != nth) {
      return std::nullopt;
    }
    reached = true;
    if (mishap == Mishap::kPowerCut) {
      files->cut_power();
    } else if (mishap == Mishap::kTornPowerCut) {
      files->cut_power(nth);
    } else if (mishap == Mishap::kKill) {
      files->kill_process();
    }
    return Error{mishap == Mishap::kNoSpace ? Errc::kNoSpace : Errc::kIo,
                 fmt::format("injected at {} {} {}", nth, operation.kind, operation.path.string())};
  });
  static_cast<void>(beside(*files, whole().begin.point));
  files->set_fault_hook({});
  if (!reached) {
    return false;
  }
  EXPECT_EQ(readable(*files, whole().begin.point), whole().digest);
  if (!server_does_all) {
    value(beside(*files, whole().begin.point));
    ok(online_scavenge::remove_shadow(*files, kDatabase));
  }
  value(run_scavenge(*files, kDatabase, own_run()));
  const auto found = records_of(*files);
  EXPECT_EQ(found.records, whole().result.records);
  EXPECT_TRUE(found.entries == whole().result.entries);
  if (!server_does_all) {
    // Alone, it accumulates what is left in chunks that were switched: with other time stamps.
    EXPECT_EQ(found.state, whole().result.state);
  }
  EXPECT_EQ(found.layout, whole().result.layout);
  EXPECT_EQ(readable(*files, whole().begin.point), whole().digest);
  return true;
}

class DisturbedOnline : public testing::TestWithParam<int> {
 protected:
  static void everywhere(Mishap mishap, bool server_does_all = false) {
    std::uint64_t disturbed = 0;
    for (auto nth = static_cast<std::uint64_t>(GetParam());; nth += kShards) {
      SCOPED_TRACE(fmt::format("operation {}", nth));
      if (!disturb_online(nth, mishap, server_does_all) || HasFailure()) {
        break;
      }
      ++disturbed;
    }
    EXPECT_GE(disturbed * kShards + kShards, whole().operations);
  }
};

TEST_P(DisturbedOnline, ContinuesAfterTheFailureOfAnyDiskOperation) { everywhere(Mishap::kError); }
TEST_P(DisturbedOnline, ContinuesAfterAFullDiskAtAnyOperation) { everywhere(Mishap::kNoSpace); }
TEST_P(DisturbedOnline, ContinuesAfterAPowerCutAtAnyDiskOperation) {
  everywhere(Mishap::kPowerCut);
}
TEST_P(DisturbedOnline, ContinuesAfterAPowerCutThatTearsWrites) {
  everywhere(Mishap::kTornPowerCut);
}
TEST_P(DisturbedOnline, ContinuesAfterAKillAtAnyDiskOperation) { everywhere(Mishap::kKill); }
TEST_P(DisturbedOnline, TheServerAloneFinishesAfterAPowerCutAnywhere) {
  everywhere(Mishap::kPowerCut, /*server_does_all=*/true);
}
TEST_P(DisturbedOnline, TheServerAloneFinishesAfterAKillAnywhere) {
  everywhere(Mishap::kKill, /*server_does_all=*/true);
}

INSTANTIATE_TEST_SUITE_P(Shards, DisturbedOnline, testing::Range(0, kShards));

}  // namespace
}  // namespace verger::test
