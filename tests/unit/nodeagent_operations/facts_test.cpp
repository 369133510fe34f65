#include "nodeagent/operations/facts.h"

#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "tests/support/manual_clock.h"
#include "tests/unit/nodeagent_operations/still_node.h"

namespace verger::agent {
namespace {

constexpr std::int64_t kChunkSize = 100'000;

/// Its only point completed chunk 4 after 10,000 bytes of it.
class NodeWithPoint final : public StillNode {
 public:
  node::ChunkInventory chunks() const override { return inventory; }
  Result<std::vector<streams::ScavengePoint>> scavenge_points() const override {
    if (!point_is_read) {
      return std::vector<streams::ScavengePoint>{};
    }
    return std::vector{streams::ScavengePoint{.position = LogPosition(4 * kChunkSize + 9'700),
                                              .number = EventNumber(0),
                                              .effective_now = Ticks(0)}};
  }
  LogPosition end_of_point(const streams::ScavengePoint&) const override {
    return LogPosition(4 * kChunkSize + 10'000);
  }
  std::optional<api::ScavengePoint> last_finished_point() const override {
    api::ScavengePoint point;
    point.number = 0;
    point.position = 4 * kChunkSize + 9'700;
    return point;
  }
  node::ChunkInventory inventory;
  bool point_is_read = true;
};

class FactsTest : public ::testing::Test {
 protected:
  api::NodeFacts facts_below(std::int64_t chunk) {
    node_.inventory.chunk_size = kChunkSize;
    return collect_facts(&node_, files_, "/", clock_, chunk);
  }
  NodeWithPoint node_;
  MemoryFileSystem files_;
  test::ManualClock clock_;
};

TEST_F(FactsTest, TheChunkThatThePointCompletedIsComparedAsItWasThen) {
  // Chunk 4 was written to before; the scavenge merged it with the older ones.
  node_.inventory.files = {{.start = 0, .bytes = 60'000}, {.start = 5, .bytes = 100'256}};
  node_.inventory.last_chunk = 5;
  const auto facts = facts_below(4);
  EXPECT_EQ(facts.bytes_below, -1) << "one file holds chunks on both sides";
  EXPECT_EQ(facts.compared_chunk, 5);
  EXPECT_EQ(facts.compared_bytes, 60'000);
  EXPECT_EQ(facts.completed_bytes, 12'288) << "128 + 10,000 + 128 in pages of 4 KiB";
}

TEST_F(FactsTest, TheChunkOfThePointIsComparedWhereItWasNotMergedToo) {
  node_.inventory.files = {
      {.start = 0, .bytes = 60'000}, {.start = 4, .bytes = 8'192}, {.start = 5, .bytes = 100'256}};
  node_.inventory.last_chunk = 5;
  const auto facts = facts_below(4);
  EXPECT_EQ(facts.compared_chunk, 5);
  EXPECT_EQ(facts.compared_bytes, 68'192);
  EXPECT_EQ(facts.completed_bytes, 12'288);
}

TEST_F(FactsTest, AChunkThatFilledUpAndWasMergedSinceCountsAsFull) {
  node_.inventory.files = {{.start = 0, .bytes = 60'000}, {.start = 7, .bytes = 100'256}};
  node_.inventory.last_chunk = 7;
  const auto facts = facts_below(5);
  EXPECT_EQ(facts.compared_chunk, 7);
  EXPECT_EQ(facts.completed_bytes, 2 * 102'400);
}

TEST_F(FactsTest, NothingIsComparedBeforeTheLogIsReadUpToThePoint) {
  node_.inventory.files = {{.start = 0, .bytes = 60'000}, {.start = 5, .bytes = 100'256}};
  node_.inventory.last_chunk = 5;
  node_.point_is_read = false;
  const auto facts = facts_below(4);
  EXPECT_EQ(facts.compared_chunk, -1);
  EXPECT_EQ(facts.compared_bytes, -1);
}

}  // namespace
}  // namespace verger::agent
