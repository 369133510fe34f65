// Every disk operation of a scavenge fails once, and at every one the power goes: the database
// opens again, reads the same, and the scavenge finishes with the same result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/database/database_builder.h"
#include "tests/support/scavenge/run.h"
#include "tests/support/scavenge/snapshot.h"

namespace verger::test {
namespace {

constexpr int kShards = 8;
const Path kDirectory = "/db";

BuilderOptions small() {
  BuilderOptions options;
  options.chunk_size = 4096;
  options.max_mem_table_size = 16;
  options.seconds_per_write = 60;
  return options;
}

ScavengeRun small_run() {
  ScavengeRun run;
  run.chunk_size = small().chunk_size;
  run.max_mem_table_size = small().max_mem_table_size;
  run.options.state.page_size = 1024;
  run.options.state.names_cache = 64;
  run.options.limits_cache = 64;
  return run;
}

struct SmallDatabase {
  std::unique_ptr<MemoryFileSystem> files;
  streams::ScavengePoint point;
};

/// Two streams with one hash.
constexpr const char* kCollided = "c2ffqlptrdepdm";
constexpr const char* kCollidedToo = "cedldnj4ssvq4i";

/// Every rule once: counts, ages within and across chunks, truncation, deletes, a transaction,
/// a hash collision.
SmallDatabase small_database() {
  auto files = std::make_unique<MemoryFileSystem>();
  DatabaseBuilder builder(*files, kDirectory, small());
  builder.metadata("count", R"({"$maxCount":2})");
  builder.metadata("age", R"({"$maxAge":900})");
  for (int n = 0; n < 10; ++n) {
    builder.write("count", 2);
    builder.write("age");
    builder.write("plain");
    builder.write(n % 2 == 0 ? "gone" : kCollided);
  }
  builder.metadata(kCollided, R"({"$maxCount":1})");
  builder.write(kCollidedToo, 3);
  builder.metadata("count", R"({"$maxCount":3})");
  builder.transaction("gone", 2);
  builder.hard_delete("gone");
  builder.write("soft", 3);
  builder.soft_delete("soft");
  builder.write("age", 2);
  builder.metadata("plain", R"({"$tb":2})");
  const auto point = builder.point();
  builder.write("plain");
  builder.close();
  return {files->clone(), point};  // all of it durable
}

/// What must come out the same however a run was disturbed.
struct Outcome {
  std::map<std::int64_t, std::string> records;
  std::vector<index::IndexEntry> entries;
  StateRows state;
  /// Start, end, scavenged of each chunk file. Versions differ: a chunk may be executed twice.
  std::vector<std::string> layout;
};

Outcome outcome_of(FileSystem& files) {
  Outcome outcome;
  auto snapshot = take_snapshot(files, kDirectory);
  for (auto& chunk : snapshot.chunks) {
    EXPECT_EQ(chunk.problem, "");
    outcome.layout.push_back(
        fmt::format("{}-{}{}", chunk.start, chunk.end, chunk.scavenged ? " scavenged" : ""));
    outcome.records.merge(chunk.records);
  }
  outcome.entries = std::move(snapshot.entries);
  outcome.state = std::move(snapshot.state);
  return outcome;
}

/// What readers see, had the log ended at the point and were it then.
std::string readable_digest(FileSystem& files, const streams::ScavengePoint& point) {
  const auto database = open_database(files, kDirectory, small_run(), log::Access::kWrite);
  if (!database) {
    ADD_FAILURE() << "cannot open the database: " << database.error().message;
    return "";
  }
  streams::DigestJob job(**database, point.position, point.effective_now);
  for (;;) {
    const auto stepped = job.step({.units = 100'000});
    if (!stepped) {
      ADD_FAILURE() << stepped.error().message;
      return "";
    }
    if (stepped->kind == StepOutcome::Kind::kDone) {
      return to_hex(job.digest().readable);
    }
  }
}

/// Counts merges that were reported as failed: then the layout may differ.
class MergeFailures final : public scavenge::ScavengeEvents {
 public:
  void chunks_merged(const scavenge::ChunksMerged& chunks) override {
    failed_ = failed_ || !chunks.merged;
  }
  bool failed() const { return failed_; }

 private:
  bool failed_ = false;
};

/// What the undisturbed run gives; made once.
struct Reference {
  SmallDatabase before = small_database();
  Outcome outcome;
  std::string digest;
  std::uint64_t operations = 0;

  Reference() {
    digest = readable_digest(*before.files->clone(), before.point);
    const auto files = before.files->clone();
    files->reset_count();
    const auto result = run_scavenge(*files, kDirectory, small_run());
    if (!result) {
      ADD_FAILURE() << result.error().message;
      return;
    }
    operations = files->operation_count();
    outcome = outcome_of(*files);
    EXPECT_GE(result->progress.chunks_executed, 2U);
    EXPECT_GE(result->progress.groups_merged, 1U);
    EXPECT_GE(result->progress.entries_discarded, 5U);
    EXPECT_EQ(outcome.state.at("HashCollisions").size(), 2U);
  }
};

const Reference& reference() {
  static const Reference instance;
  return instance;
}

enum class Fault : std::uint8_t { kError, kPowerCut, kTornPowerCut, kKill };

/// Runs with a fault at operation `nth`; false when the run has fewer operations.
bool disturb(std::uint64_t nth, Fault fault) {
  const auto files = reference().before.files->clone();
  bool reached = false;
  bool at_merge_file = false;  // a group whose file cannot be made stays as it is, without an event
  files->reset_count();
  files->set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.number != nth) {
      return std::nullopt;
    }
    reached = true;
    at_merge_file = operation.path.string().find(".merge.") != std::string::npos;
    if (fault == Fault::kPowerCut) {
      files->cut_power();
    } else if (fault == Fault::kTornPowerCut) {
      files->cut_power(nth);
    } else if (fault == Fault::kKill) {
      files->kill_process();
    }
    return Error{Errc::kIo,
                 fmt::format("injected at {} {} {}", nth, operation.kind, operation.path.string())};
  });
  MergeFailures merges;
  auto run = small_run();
  run.events = &merges;
  auto result = run_scavenge(*files, kDirectory, run);
  files->set_fault_hook({});
  if (!reached) {
    EXPECT_TRUE(result) << result.error().message;
    return false;
  }
  EXPECT_EQ(readable_digest(*files, reference().before.point), reference().digest);
  if (!result || fault != Fault::kError) {
    merges = {};
    result = run_scavenge(*files, kDirectory, run);
    EXPECT_TRUE(result) << result.error().message;
  }
  const auto outcome = outcome_of(*files);
  const auto& expected = reference().outcome;
  EXPECT_EQ(outcome.records, expected.records);
  EXPECT_EQ(outcome.entries, expected.entries);
  EXPECT_EQ(outcome.state, expected.state);
  if (!merges.failed() && !(fault == Fault::kError && at_merge_file)) {
    EXPECT_EQ(outcome.layout, expected.layout);
  }
  EXPECT_EQ(readable_digest(*files, reference().before.point), reference().digest);
  return true;
}

class Disturbed : public testing::TestWithParam<int> {
 protected:
  static void disturb_everywhere(Fault fault) {
    std::uint64_t disturbed = 0;
    for (auto nth = static_cast<std::uint64_t>(GetParam());; nth += kShards) {
      SCOPED_TRACE(fmt::format("operation {}", nth));
      if (!disturb(nth, fault) || HasFailure()) {
        break;
      }
      ++disturbed;
    }
    RecordProperty("disturbed", static_cast<int>(disturbed));
    std::cout << fmt::format("{} of {} operations disturbed\n", disturbed, reference().operations);
    EXPECT_GE(disturbed * kShards + kShards, reference().operations);
  }
};

TEST_P(Disturbed, SurvivesTheFailureOfAnyDiskOperation) { disturb_everywhere(Fault::kError); }
TEST_P(Disturbed, SurvivesAPowerCutAtAnyDiskOperation) { disturb_everywhere(Fault::kPowerCut); }
TEST_P(Disturbed, SurvivesAPowerCutThatTearsWrites) { disturb_everywhere(Fault::kTornPowerCut); }
TEST_P(Disturbed, SurvivesBeingKilledAtAnyDiskOperation) { disturb_everywhere(Fault::kKill); }

INSTANTIATE_TEST_SUITE_P(Shards, Disturbed, testing::Range(0, kShards));

}  // namespace
}  // namespace verger::test
