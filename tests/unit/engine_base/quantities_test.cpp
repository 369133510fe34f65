#include "engine/base/quantities.h"

#include <gtest/gtest.h>

namespace verger {
namespace {

TEST(Quantities, AreWrittenForPeople) {
  EXPECT_EQ(with_separators(0), "0");
  EXPECT_EQ(with_separators(999), "999");
  EXPECT_EQ(with_separators(-1234567), "-1,234,567");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(70507), "68.9 KiB");
  EXPECT_EQ(human_bytes(33'742'848), "32.2 MiB");
  EXPECT_EQ(human_bytes(33'554'432), "32 MiB");
  EXPECT_EQ(human_bytes(-2048), "-2 KiB");
  EXPECT_EQ(counted(1, "node"), "1 node");
  EXPECT_EQ(counted(0, "node"), "0 nodes");
  EXPECT_EQ(counted(1'200, "chunk"), "1,200 chunks");
}

}  // namespace
}  // namespace verger
