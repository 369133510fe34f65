#include <gtest/gtest.h>

#include "nodeagent/node/inspection.h"

namespace verger::node {
namespace {

TEST(IndexInventory, OfNoTablesNeedsNothing) {
  const auto out = inventory_of({}, 1'000);
  EXPECT_EQ(out.largest_table, 0);
  EXPECT_EQ(out.largest_merge, 0);
}

TEST(IndexInventory, TheNextMergeGoesUpThroughTheLevelsThatAreNotEmpty) {
  // Level 2 is empty, so that a merge of the first two ends there.
  const std::vector<IndexTable> tables{{0, 10}, {1, 25}, {3, 400}};
  const auto out = inventory_of(tables, 1'000);
  EXPECT_EQ(out.largest_table, 400);
  EXPECT_EQ(out.largest_merge, 10 + 10 + 25);
}

TEST(IndexInventory, LevelsThatAreMergedByHandOnlyAreNotCounted) {
  const auto out = inventory_of({{0, 10}, {1, 25}}, 1);
  EXPECT_EQ(out.largest_merge, 20);
}

TEST(ChunkInventory, TellsWhatLiesBelowAChunkUnlessAFileHoldsBothSides) {
  ChunkInventory chunks;
  chunks.files = {{.start = 0, .bytes = 5}, {.start = 3, .bytes = 7}, {.start = 4, .bytes = 9}};
  EXPECT_EQ(chunks.bytes_below(4), 12);
  EXPECT_EQ(chunks.bytes_below(3), 5);
  EXPECT_EQ(chunks.bytes_below(0), 0);
  EXPECT_EQ(chunks.bytes_below(2), -1) << "chunks 0 to 2 are one file";
  EXPECT_EQ(chunks.bytes_below(5), -1) << "not there yet";
  EXPECT_EQ(chunks.boundary_from(1), 3);
  EXPECT_EQ(chunks.boundary_from(4), 4);
  EXPECT_EQ(chunks.boundary_from(5), -1);
}

TEST(ChunkInventory, AChunkThatHasNoFileYetIsABoundaryToo) {
  ChunkInventory chunks;
  chunks.files = {{.start = 0, .bytes = 5}, {.start = 3, .bytes = 7}};
  chunks.last_chunk = 4;
  EXPECT_EQ(chunks.boundary_from(4), 4);
  EXPECT_EQ(chunks.bytes_below(4), 12);
}

}  // namespace
}  // namespace verger::node
