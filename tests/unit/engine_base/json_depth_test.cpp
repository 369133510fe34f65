#include "engine/base/json_depth.h"

#include <gtest/gtest.h>
#include <string>

namespace verger {
namespace {

TEST(JsonDepth, CountsBracketsOutsideStrings) {
  EXPECT_EQ(json_depth(""), 0U);
  EXPECT_EQ(json_depth("3"), 0U);
  EXPECT_EQ(json_depth("[]"), 1U);
  EXPECT_EQ(json_depth(R"({"a":[1,{"b":2}],"c":[]})"), 3U);
  EXPECT_EQ(json_depth(R"({"[[[":"\"[[["})"), 1U);
}

TEST(JsonDepth, IsNeverTooSmallForBrokenText) {
  EXPECT_EQ(json_depth(std::string(100'000, '[')), 100'000U);
  EXPECT_EQ(json_depth("]]][["), 2U);
  EXPECT_EQ(json_depth("\"\\"), 0U);
}

}  // namespace
}  // namespace verger
