#include "engine/scavenge/scavenge_run.h"

#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/results.h"

namespace verger::test {
namespace {

class OneScavenge : public testing::Test {
 protected:
  std::unique_ptr<scavenge::ScavengeRun> open() {
    return value(scavenge::ScavengeRun::open(builder_.database(), {.files = files_,
                                                                   .clock = builder_.clock(),
                                                                   .random = builder_.random(),
                                                                   .log = null_log()}));
  }

  MemoryFileSystem files_;
  DatabaseBuilder builder_{files_, "/db"};
};

TEST_F(OneScavenge, FindsAPointByItsNumber) {
  builder_.write("s", 3);
  EXPECT_EQ(open()->find_start_at(EventNumber(0)).error().message,
            "scavenge point 0 is not in the log, which holds none");
  builder_.point(0);
  builder_.point(0);
  const auto run = open();
  const auto decision = value(run->find_start_at(EventNumber(0)));
  EXPECT_EQ(decision.kind, scavenge::StartKind::kUsePoint);
  EXPECT_EQ(decision.point->number, EventNumber(0));
  const auto missing = run->find_start_at(EventNumber(7));
  EXPECT_EQ(missing.error().code, Errc::kNotFound);
  EXPECT_EQ(missing.error().message, "scavenge point 7 is not in the log; it holds 0 to 1");
}

TEST_F(OneScavenge, StandsWhereTheOneBeforeWasLeft) {
  builder_.write("s", 3);
  builder_.point(0);
  scavenge::ScavengeEvents events;
  for (const bool to_the_end : {false, true}) {
    const auto run = open();
    EXPECT_EQ(run->is_unfinished(), to_the_end);
    EXPECT_EQ(run->job(), nullptr);
    const auto decision = value(run->find_start(/*sync_only=*/true));
    EXPECT_EQ(decision.kind,
              to_the_end ? scavenge::StartKind::kResume : scavenge::StartKind::kUsePoint);
    scavenge::ScavengeOptions options;
    if (!to_the_end) {
      options.stop_after = scavenge::StopAfter{scavenge::Stage::kCalculating, 0};
    }
    auto& job = run->begin(*decision.point, options, events, nullptr);
    Result<StepOutcome> step = StepOutcome{.kind = StepOutcome::Kind::kMore};
    while (step && step->kind != StepOutcome::Kind::kDone) {
      step = job.step(Budget{});
    }
    EXPECT_EQ(step.has_value(), to_the_end);
    EXPECT_EQ(run->job(), &job);
  }
  const auto run = open();
  EXPECT_FALSE(run->is_unfinished());
  EXPECT_EQ(run->checkpoint()->point.number, EventNumber(0));
  EXPECT_EQ(value(run->find_start_at(EventNumber(0))).kind, scavenge::StartKind::kNothing);
}

}  // namespace
}  // namespace verger::test
