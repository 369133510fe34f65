// Every case of tests/fixtures/scavenge: chunks scavenged beside the open database, switched in,
// and the rest by the scavenge that continues from there, give what one scavenge gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/online/shadow.h"
#include "engine/scavenge/scavenge_run.h"
#include "tests/support/online/online_run.h"
#include "tests/support/results.h"
#include "tests/support/scavenge/compare.h"
#include "tests/support/scavenge/fixture_case.h"
#include "tests/support/scavenge/snapshot.h"

namespace verger::test {
namespace {

using scavenge::Stage;

class OnlineFixture : public testing::TestWithParam<std::string> {
 protected:
  /// As the fixture's `before`, with the point in the log.
  std::unique_ptr<MemoryFileSystem> prepared(const std::string& archive = "before") {
    auto files = fixture_.unpack(archive);
    if (archive == "before" && fixture_.point_is_newer()) {
      const auto server = fixture_.unpack(after_);
      ok(replay_to_point(*files, *server, fixture_.run(), *fixture_.point()));
    }
    return files;
  }

  /// The phases of the server, on the database that it has open: from where the state stands.
  void continue_as_server(MemoryFileSystem& files, streams::Database& live,
                          std::optional<Stage> from) {
    ManualClock clock;
    SeededRandom random(5);
    const auto run = value(scavenge::ScavengeRun::open(
        live, {.files = files, .clock = clock, .random = random, .log = null_log()},
        fixture_.run().options.state));
    if (from) {
      ASSERT_TRUE(run->checkpoint());
      EXPECT_EQ(run->checkpoint()->stage, *from);
    }
    const auto decision = value(run->find_start(/*sync_only=*/true));
    ASSERT_TRUE(decision.point);
    scavenge::ScavengeEvents events;
    auto& job = run->begin(*decision.point, fixture_.run().options, events, nullptr);
    while (true) {
      const auto outcome = job.step({});
      ASSERT_TRUE(outcome) << outcome.error().message;
      if (outcome->kind == StepOutcome::Kind::kDone) {
        break;
      }
    }
    executed_by_server_ = job.progress().chunks_executed;
  }

  /// Online on a clone of `start`; what is there afterwards.
  DatabaseSnapshot online(const MemoryFileSystem& start,
                          std::function<bool(const online_scavenge::PreparedChunk&)> switches = {},
                          int threads = 1) {
    const auto files = start.clone();
    auto live = value(open_database(*files, "/db", fixture_.run(), log::Access::kWrite));
    left_ = 0;
    const auto result = run_online(
        *files, "/db", *live,
        {.point = *fixture_.point(), .threads = threads, .switches = std::move(switches)});
    EXPECT_TRUE(result) << result.error().message;
    if (!result) {
      return {};
    }
    left_ = result->left.size();
    prepared_ = result->preparation.chunks.size();
    continue_as_server(*files, *live, left_ == 0 ? Stage::kMergingChunks : Stage::kExecutingChunks);
    ok(online_scavenge::remove_shadow(*files, "/db"));
    live.reset();
    return take_snapshot(*files, "/db");
  }

  DatabaseSnapshot offline(const MemoryFileSystem& start) {
    const auto files = start.clone();
    const auto result = run_scavenge(*files, "/db", fixture_.run());
    EXPECT_TRUE(result) << result.error().message;
    return take_snapshot(*files, "/db");
  }

  CompareOptions compare_options() const {
    const auto point = fixture_.point()->position;
    return {.point = point,
            .point_chunk = static_cast<std::int32_t>(point.value() / fixture_.run().chunk_size)};
  }

  std::vector<index::IndexEntry> entries_before() {
    auto entries = take_snapshot(*fixture_.unpack("before"), "/db").entries;
    std::ranges::sort(entries);
    return entries;
  }

  /// Chunk files byte for byte, but for their ids; all entries; all rows.
  void expect_same(const DatabaseSnapshot& ours, const DatabaseSnapshot& other, bool versions) {
    ASSERT_EQ(ours.chunks.size(), other.chunks.size());
    for (std::size_t n = 0; n < ours.chunks.size(); ++n) {
      const auto& a = ours.chunks[n];
      const auto& b = other.chunks[n];
      SCOPED_TRACE(a.start);
      EXPECT_EQ(a.start, b.start);
      EXPECT_EQ(a.end, b.end);
      EXPECT_EQ(a.scavenged, b.scavenged);
      EXPECT_EQ(a.file_size, b.file_size);
      EXPECT_EQ(a.physical_size, b.physical_size);
      EXPECT_EQ(a.logical_size, b.logical_size);
      EXPECT_TRUE(a.records == b.records);
      EXPECT_EQ(a.problem, "");
      if (versions) {
        EXPECT_EQ(a.version, b.version);
      }
    }
    EXPECT_TRUE(ours.entries == other.entries);
    EXPECT_THAT(state_differences(ours.state, other.state), testing::IsEmpty());
    EXPECT_THAT(state_differences(other.state, ours.state), testing::IsEmpty());
  }

  FixtureCase fixture_{GetParam()};
  std::string after_ = fixture_.afters().front();
  std::size_t left_ = 0;
  std::size_t prepared_ = 0;
  std::uint64_t executed_by_server_ = 0;
};

TEST_P(OnlineFixture, GivesWhatOneScavengeGives) {
  const auto start = prepared();
  const auto whole = offline(*start);
  const auto ours = online(*start);
  EXPECT_EQ(executed_by_server_, 0U);
  expect_same(ours, whole, true);
  EXPECT_THAT(differences(ours, take_snapshot(*fixture_.unpack(after_), "/db"), entries_before(),
                          compare_options()),
              testing::IsEmpty());
  expect_same(online(*start, {}, 3), whole, true);
}

TEST_P(OnlineFixture, LeavesToTheServerExactlyWhatWasNotSwitched) {
  const auto start = prepared();
  const auto whole = offline(*start);
  // A chunk is not begun twice where weights decide.
  const bool versions = fixture_.point()->threshold >= 0;
  for (const std::size_t switched : {0U, 1U, 2U}) {
    SCOPED_TRACE(switched);
    std::size_t n = 0;
    const auto ours = online(*start, [&](const auto&) { return n++ < switched; });
    if (versions) {
      EXPECT_EQ(executed_by_server_, left_);
    }
    EXPECT_EQ(left_, prepared_ - std::min(prepared_, switched));
    expect_same(ours, whole, versions);
  }
  // Any of them, not only the last ones.
  std::size_t n = 0;
  const auto ours = online(*start, [&](const auto&) { return n++ % 2 == 1; });
  if (versions) {
    EXPECT_EQ(executed_by_server_, left_);
  }
  expect_same(ours, whole, versions);
}

TEST_P(OnlineFixture, ChangesNoFileOfTheNodeBeforeTheSwitch) {
  const auto files = prepared();
  auto live = value(open_database(*files, "/db", fixture_.run(), log::Access::kWrite));
  std::map<std::string, Bytes> before;
  const auto read_all = [&](std::map<std::string, Bytes>& into) {
    for (const auto* directory : {"/db", "/db/index", "/db/index/scavenging"}) {
      if (const auto entries = files->list(directory)) {
        for (const auto& entry : *entries) {
          if (!entry.is_directory) {
            const auto path = Path(directory) / entry.name;
            into[path.string()] = value(read_file(*files, path));
          }
        }
      }
    }
  };
  read_all(before);
  const auto result =
      run_online(*files, "/db", *live, {.point = *fixture_.point(), .switches = [&](const auto&) {
                                          std::map<std::string, Bytes> now;
                                          read_all(now);
                                          EXPECT_TRUE(now == before);
                                          return false;
                                        }});
  ASSERT_TRUE(result) << result.error().message;
}

/// Those in which the server was stopped or killed on its way.
class OnlineAfterTheServer : public OnlineFixture {};

TEST_P(OnlineAfterTheServer, ContinuesWhatItHadBegun) {
  const auto ours = online(*prepared("interrupted"));
  EXPECT_EQ(executed_by_server_, 0U);
  auto entries = entries_before();
  const auto more = take_snapshot(*fixture_.unpack("interrupted"), "/db").entries;
  entries.insert(entries.end(), more.begin(), more.end());
  std::ranges::sort(entries);
  EXPECT_THAT(differences(ours, take_snapshot(*fixture_.unpack("after"), "/db"), entries,
                          compare_options()),
              testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Cases, OnlineAfterTheServer,
                         testing::ValuesIn(scavenge_cases_where([](const FixtureCase& one) {
                           return one.has("interrupted");
                         })),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Cases, OnlineFixture,
                         testing::ValuesIn(scavenge_cases_where([](const FixtureCase& one) {
                           return one.server_scavenged() &&
                                  !one.run().options.unsafe_ignore_hard_delete;
                         })),
                         case_name);

}  // namespace
}  // namespace verger::test
