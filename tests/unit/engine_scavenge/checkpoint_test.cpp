#include <gtest/gtest.h>
#include <limits>

#include "engine/scavenge/types.h"

namespace verger::scavenge {
namespace {

// 2022-01-05T00:00:00Z
constexpr Ticks kNow{637'769'376'000'000'000};

Checkpoint first_point(Stage stage) {
  return {.point = {.position = LogPosition(0),
                    .number = EventNumber(0),
                    .effective_now = kNow,
                    .threshold = 0},
          .stage = stage,
          .done_chunk = {},
          .done_stream = {}};
}

TEST(Checkpoint, LeavesDefaultsOut) {
  EXPECT_EQ(encode_checkpoint(first_point(Stage::kMergingChunks)),
            R"({"scavengePoint":{"effectiveNow":"2022-01-05T00:00:00"},)"
            R"("schemaVersion":"V0","checkpointStage":"MergingChunks"})");
}

TEST(Checkpoint, WritesChunkZeroAsDone) {
  auto checkpoint = first_point(Stage::kAccumulating);
  checkpoint.done_chunk = 0;
  EXPECT_EQ(encode_checkpoint(checkpoint),
            R"({"scavengePoint":{"effectiveNow":"2022-01-05T00:00:00"},"schemaVersion":"V0",)"
            R"("checkpointStage":"Accumulating","doneLogicalChunkNumber":0})");
}

TEST(Checkpoint, WritesAllOfAPoint) {
  const Checkpoint checkpoint{.point = {.position = LogPosition(996696),
                                        .number = EventNumber(3),
                                        .effective_now = Ticks(kNow.value() + 1'423'440),
                                        .threshold = -1},
                              .stage = Stage::kDone,
                              .done_chunk = {},
                              .done_stream = {}};
  EXPECT_EQ(encode_checkpoint(checkpoint),
            R"({"scavengePoint":{"position":996696,"eventNumber":3,)"
            R"("effectiveNow":"2022-01-05T00:00:00.142344","threshold":-1},)"
            R"("schemaVersion":"V0","checkpointStage":"Done"})");
}

TEST(Checkpoint, WritesHandlesOfBothKinds) {
  auto checkpoint = first_point(Stage::kCalculating);
  checkpoint.done_stream = StreamHandle{StreamHash(std::numeric_limits<std::uint64_t>::max()), {}};
  EXPECT_TRUE(encode_checkpoint(checkpoint)
                  .ends_with(R"("doneStreamHandle":{"kind":"Hash",)"
                             R"("streamHash":18446744073709551615}})"));
  checkpoint.done_stream = StreamHandle{StreamHash(0), "ab-1"};
  EXPECT_TRUE(encode_checkpoint(checkpoint)
                  .ends_with(R"("doneStreamHandle":{"kind":"Id","streamId":"ab-1"}})"));
}

TEST(Checkpoint, ReadsWhatItWrites) {
  for (int stage = 1; stage <= static_cast<int>(Stage::kDone); ++stage) {
    auto checkpoint = first_point(static_cast<Stage>(stage));
    checkpoint.done_chunk = stage;
    checkpoint.done_stream = StreamHandle{StreamHash(0xF000000000000001U), {}};
    checkpoint.point.threshold = 5;
    EXPECT_EQ(decode_checkpoint(encode_checkpoint(checkpoint)), checkpoint);
  }
}

TEST(Checkpoint, CountsAsNoneWhenItCannotBeRead) {
  EXPECT_FALSE(decode_checkpoint(""));
  EXPECT_FALSE(decode_checkpoint("{"));
  EXPECT_FALSE(decode_checkpoint("[]"));
  EXPECT_FALSE(decode_checkpoint(R"({"scavengePoint":{"effectiveNow":"2022-01-05T00:00:00"}})"));
  EXPECT_FALSE(decode_checkpoint(R"({"scavengePoint":{"effectiveNow":"yesterday"},)"
                                 R"("checkpointStage":"Done"})"));
  EXPECT_FALSE(decode_checkpoint(R"({"scavengePoint":{"effectiveNow":"2022-01-05T00:00:00"},)"
                                 R"("checkpointStage":"Resting"})"));
}

TEST(Checkpoint, KnowsAStageOfANewerServer) {
  EXPECT_EQ(unknown_stage(R"({"scavengePoint":{"effectiveNow":"2022-01-05T00:00:00"},)"
                          R"("checkpointStage":"Resting"})"),
            "Resting");
  EXPECT_FALSE(unknown_stage(encode_checkpoint(first_point(Stage::kMergingChunks))));
  EXPECT_FALSE(unknown_stage(""));
  EXPECT_FALSE(unknown_stage(R"({"checkpointStage":"Resting"})"));
}

}  // namespace
}  // namespace verger::scavenge
