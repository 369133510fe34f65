#include "nodeagent/operations/patience.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace verger::agent {
namespace {

using std::chrono::seconds;

Ticks at(std::int64_t second) { return Ticks(second * kTicksPerSecond); }

TEST(Patience, BeginsWithTheFirstLookAndEndsOnce) {
  auto memory = nlohmann::json::object();
  EXPECT_FALSE(waited_longer_than(seconds(10), at(100), memory));
  EXPECT_FALSE(waited_longer_than(seconds(10), at(110), memory));
  EXPECT_TRUE(waited_longer_than(seconds(10), at(111), memory));
}

TEST(Patience, BeginsAnewWhereTheClockWasSetBack) {
  auto memory = nlohmann::json::object();
  EXPECT_FALSE(waited_longer_than(seconds(10), at(5000), memory));
  EXPECT_FALSE(waited_longer_than(seconds(10), at(100), memory));
  EXPECT_TRUE(waited_longer_than(seconds(10), at(111), memory));
}

}  // namespace
}  // namespace verger::agent
