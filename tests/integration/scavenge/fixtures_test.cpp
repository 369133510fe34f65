// Every case of tests/fixtures/scavenge: our result equals the server's.
#include "tests/support/fixtures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scavenge/compare.h"
#include "tests/support/scavenge/fixture_case.h"
#include "tests/support/scavenge/snapshot.h"

namespace verger::test {
namespace {

using scavenge::Stage;

/// `before` of the case, with the point in its log.
std::unique_ptr<MemoryFileSystem> prepared(FixtureCase& fixture, const std::string& after,
                                           const std::string& archive = "before") {
  auto files = fixture.unpack(archive);
  if (archive == "before" && fixture.point_is_newer()) {
    const auto server = fixture.unpack(after);
    const auto replayed = replay_to_point(*files, *server, fixture.run(), *fixture.point());
    EXPECT_TRUE(replayed) << replayed.error().message;
  }
  return files;
}

CompareOptions compare_options(const FixtureCase& fixture) {
  const auto point = fixture.point()->position;
  return {.point = point,
          .point_chunk = static_cast<std::int32_t>(point.value() / fixture.run().chunk_size)};
}

std::vector<index::IndexEntry> entries_before(FixtureCase& fixture) {
  auto entries = take_snapshot(*fixture.unpack("before"), "/db").entries;
  if (fixture.has("interrupted")) {
    const auto more = take_snapshot(*fixture.unpack("interrupted"), "/db").entries;
    entries.insert(entries.end(), more.begin(), more.end());
  }
  std::ranges::sort(entries);
  return entries;
}

/// All but the cases the server failed on: ScavengeDefect has those.
class ScavengeFixture : public testing::TestWithParam<std::string> {
 protected:
  FixtureCase fixture{GetParam()};
};
/// Those in which there was something to scavenge.
class ReachedPoint : public ScavengeFixture {};
/// Those in which the server was stopped or killed on its way.
class InterruptedServer : public ScavengeFixture {};

TEST_P(ScavengeFixture, GivesTheServersResult) {
  for (const auto& after : fixture.afters()) {
    SCOPED_TRACE(after);
    const auto files = prepared(fixture, after);
    const auto result = run_scavenge(*files, "/db", fixture.run());
    ASSERT_TRUE(result) << result.error().message;
    if (!fixture.point()) {
      EXPECT_TRUE(result->nothing_to_do);
      continue;
    }
    const auto found =
        differences(take_snapshot(*files, "/db"), take_snapshot(*fixture.unpack(after), "/db"),
                    entries_before(fixture), compare_options(fixture));
    EXPECT_THAT(found, testing::IsEmpty());
  }
}

TEST_P(ReachedPoint, DoesNotDependOnTheNumberOfThreads) {
  const auto after = fixture.afters().front();
  for (const int threads : {1, 2, 4}) {
    SCOPED_TRACE(threads);
    const auto files = prepared(fixture, after);
    auto run = fixture.run();
    run.options.threads = threads;
    run.options.hash_in_background = threads > 1;  // and chunks are read ahead
    if (threads == 4) {
      run.options.accumulation_batch = 3;  // most chunks have several batches
    }
    run.step_units = 50;
    const auto runner = scavenge::make_thread_runner(threads);
    run.runner = runner.get();
    const auto result = run_scavenge(*files, "/db", run);
    ASSERT_TRUE(result) << result.error().message;
    const auto found =
        differences(take_snapshot(*files, "/db"), take_snapshot(*fixture.unpack(after), "/db"),
                    entries_before(fixture), compare_options(fixture));
    EXPECT_THAT(found, testing::IsEmpty());
  }
}

TEST_P(InterruptedServer, IsContinuedByUs) {
  const auto files = prepared(fixture, "after", "interrupted");
  const auto result = run_scavenge(*files, "/db", fixture.run());
  ASSERT_TRUE(result) << result.error().message;
  const auto found =
      differences(take_snapshot(*files, "/db"), take_snapshot(*fixture.unpack("after"), "/db"),
                  entries_before(fixture), compare_options(fixture));
  EXPECT_THAT(found, testing::IsEmpty());
}

TEST_P(InterruptedServer, HadOurRowsByThen) {
  const auto files = prepared(fixture, "after");
  auto run = fixture.run();
  run.options.stop_after = {.stage = Stage::kCalculating, .nth = 0};
  const auto stopped = run_scavenge(*files, "/db", run);
  ASSERT_FALSE(stopped);
  ASSERT_EQ(stopped.error().code, Errc::kCancelled) << stopped.error().message;
  auto ours = read_state(*files, "/db/index");
  auto server = read_state(*fixture.unpack("interrupted"), "/db/index");
  ASSERT_THAT(server["Checkpoint"], testing::ElementsAre(testing::HasSubstr("ExecutingChunks")));
  // The server has executed some chunks by then: what weights it still has are ours.
  EXPECT_THAT(ours["ChunkWeights"], testing::IsSupersetOf(server["ChunkWeights"]));
  EXPECT_FALSE(server["ChunkWeights"].empty());
  for (const auto* table : {"ChunkWeights", "Checkpoint"}) {
    ours.erase(table);
    server.erase(table);
  }
  EXPECT_THAT(state_differences(ours, server), testing::IsEmpty());
}

TEST_P(ReachedPoint, GivesTheSameAfterAStopInAnyStage) {
  const auto after = fixture.afters().front();
  const auto start = prepared(fixture, after);
  const auto server = take_snapshot(*fixture.unpack(after), "/db");
  const auto before = entries_before(fixture);
  auto options = compare_options(fixture);
  // A chunk that was executed but not yet noted as done is executed again where weights do not
  // matter.
  options.versions =
      fixture.point()->threshold >= 0 && !fixture.run().options.unsafe_ignore_hard_delete;
  for (int stage = 1; stage < static_cast<int>(Stage::kDone); ++stage) {
    for (const std::uint64_t nth : {0U, 1U, 3U}) {
      SCOPED_TRACE(fmt::format("stopped in {} after {}",
                               scavenge::to_string(static_cast<Stage>(stage)), nth));
      const auto files = start->clone();
      auto run = fixture.run();
      run.options.stop_after = {static_cast<Stage>(stage), nth};
      const auto stopped = run_scavenge(*files, "/db", run);
      if (stopped) {
        continue;  // the stage has fewer units
      }
      ASSERT_EQ(stopped.error().code, Errc::kCancelled) << stopped.error().message;
      const auto result = run_scavenge(*files, "/db", fixture.run());
      ASSERT_TRUE(result) << result.error().message;
      EXPECT_THAT(differences(take_snapshot(*files, "/db"), server, before, options),
                  testing::IsEmpty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ScavengeFixture,
                         testing::ValuesIn(scavenge_cases_where([](const FixtureCase& one) {
                           return !one.server_failed();
                         })),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Cases, ReachedPoint,
                         testing::ValuesIn(scavenge_cases_where([](const FixtureCase& one) {
                           return one.server_scavenged();
                         })),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Cases, InterruptedServer,
                         testing::ValuesIn(scavenge_cases_where([](const FixtureCase& one) {
                           return one.has("interrupted");
                         })),
                         case_name);

}  // namespace
}  // namespace verger::test
