#include "nodeagent/operations/waiting_limit.h"

#include <gtest/gtest.h>

namespace verger::agent {
namespace {

using std::chrono::seconds;

Ticks at(std::int64_t second) { return Ticks(second * kTicksPerSecond); }

TEST(WaitingLimit, BeginsWithTheFirstLookAndEndsOnce) {
  OperationRecord record;
  EXPECT_FALSE(waited_longer_than(seconds(10), at(100), record));
  EXPECT_FALSE(waited_longer_than(seconds(10), at(110), record));
  EXPECT_TRUE(waited_longer_than(seconds(10), at(111), record));
}

TEST(WaitingLimit, StartsOverWhereTheClockWasSetBack) {
  OperationRecord record;
  EXPECT_FALSE(waited_longer_than(seconds(10), at(5000), record));
  EXPECT_FALSE(waited_longer_than(seconds(10), at(100), record));
  EXPECT_TRUE(waited_longer_than(seconds(10), at(111), record));
}

TEST(WaitingLimit, LeavesWhatTheOperationRemembers) {
  OperationRecord record;
  record.memory_json = R"({"epoch":7})";
  EXPECT_FALSE(waited_longer_than(seconds(10), at(100), record));
  EXPECT_NE(record.memory_json.find(R"("epoch":7)"), std::string::npos);
}

}  // namespace
}  // namespace verger::agent
