#include "engine/scavenge/start_decision.h"

#include <gtest/gtest.h>

namespace verger::scavenge {
namespace {

ScavengePoint point(std::int64_t number, std::int32_t threshold = 0) {
  return {.position = LogPosition(1000 * (number + 1)),
          .number = EventNumber(number),
          .effective_now = Ticks(638'396'640'000'000'000),
          .threshold = threshold};
}
Checkpoint at(Stage stage, std::int64_t number) {
  return {.point = point(number, 7), .stage = stage, .done_chunk = {}, .done_stream = {}};
}
constexpr auto kNone = std::nullopt;

/// The rows of docs/formats/scavenge.md, "Start".
TEST(DecideStart, Row1ResumesWhatIsUnfinishedWhateverElseIsThere) {
  for (int stage = 1; stage < static_cast<int>(Stage::kDone); ++stage) {
    for (const bool sync_only : {false, true}) {
      const auto decision = decide_start(at(static_cast<Stage>(stage), 3), point(5), sync_only);
      EXPECT_EQ(decision.kind, StartKind::kResume);
      EXPECT_EQ(decision.point, point(3, 7)) << "the stored threshold counts";
    }
  }
}

TEST(DecideStart, Row2CreatesTheFirstPoint) {
  EXPECT_EQ(decide_start(kNone, kNone, false),
            (StartDecision{.kind = StartKind::kCreatePoint, .point = {}, .expected_version = -1}));
}

TEST(DecideStart, Row3HasNothingToSynchronize) {
  EXPECT_EQ(decide_start(kNone, kNone, true).kind, StartKind::kNothing);
}

TEST(DecideStart, Row4UsesAnExistingPoint) {
  for (const bool sync_only : {false, true}) {
    const auto decision = decide_start(kNone, point(4), sync_only);
    EXPECT_EQ(decision.kind, StartKind::kUsePoint);
    EXPECT_EQ(decision.point, point(4));
  }
}

TEST(DecideStart, Row5UsesTheNewestPointAndSkipsOthers) {
  for (const bool sync_only : {false, true}) {
    const auto decision = decide_start(at(Stage::kDone, 2), point(5), sync_only);
    EXPECT_EQ(decision.kind, StartKind::kUsePoint);
    EXPECT_EQ(decision.point, point(5));
  }
}

TEST(DecideStart, Row6CreatesTheNextPoint) {
  for (const int latest : {1, 2}) {
    const auto decision = decide_start(at(Stage::kDone, 2), point(latest), false);
    EXPECT_EQ(decision.kind, StartKind::kCreatePoint);
    EXPECT_EQ(decision.expected_version, 2);
  }
}

TEST(DecideStart, Row7HasNothingToDoWhenAllPointsAreReached) {
  EXPECT_EQ(decide_start(at(Stage::kDone, 2), point(2), true).kind, StartKind::kNothing);
}

TEST(DecideStart, Row8BeginsAgainWhenTheLogHasLostItsPoints) {
  EXPECT_EQ(decide_start(at(Stage::kDone, 2), kNone, true).kind, StartKind::kNothing);
  const auto decision = decide_start(at(Stage::kDone, 2), kNone, false);
  EXPECT_EQ(decision.kind, StartKind::kCreatePoint);
  EXPECT_EQ(decision.expected_version, -1);
}

}  // namespace
}  // namespace verger::scavenge
