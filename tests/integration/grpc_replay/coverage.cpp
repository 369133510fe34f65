#include "tests/integration/grpc_replay/coverage.h"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <iostream>

#include "tests/integration/grpc_replay/recorded_messages.h"

namespace verger::testing {
namespace {

std::set<int> from_to(int first, int last) {
  std::set<int> out;
  for (int n = first; n <= last; ++n) {
    out.insert(n);
  }
  return out;
}

std::set<int> all_of(const RecordingCoverage& of) {
  std::set<int> out;
  for (const auto& exchange : recording(of.file)["exchanges"]) {
    if (const auto number = exchange["n"].get<int>(); !of.left_out.contains(number)) {
      out.insert(number);
    }
  }
  return out;
}

}  // namespace

const std::vector<RecordingCoverage>& coverage() {
  static const std::vector<RecordingCoverage> kCoverage = {
      {"01-connect.json", {{"OneNode", {}}}},
      {"02-append.json", {{"OneNode", {}}}},
      {"03-delete.json",
       {{"OneNode", {}}},
       {{43,
         "refused here on purpose: a server's scavenge fails for good on a log with a tombstone of "
         "a metadata stream, and its stream can never have limits or rights again"}}},
      {"04-read-stream.json", {{"OneNode", {}}}},
      {"05-read-all.json", {{"OneNode", {}}}},
      {"06-subscribe.json", {{"OneNode", {}}}},
      {"07-batch-append.json", {{"OneNode", {}}}},
      {"08-persistent.json", {{"PersistentSubscriptions", {}}}},
      {"09-operations.json", {{"EndAsRecorded", {}}}},
      {"10-redaction.json",
       {{"PositionsAreAnsweredByTheSocketAlone", from_to(1, 8)},
        {"TheCallIsTheLock", {9, 10, 11, 12, 13, 23, 24}},
        {"ARefusalEndsTheCallWithItsReason", from_to(14, 22)}}},
      {"11-auth.json",
       {{"RightsAndUsers", {}}},
       {{75,
         "otherwise here on purpose: the server took the old password for up to a second after it "
         "was changed"},
        {76,
         "otherwise here on purpose: the server did not take the new password for up to a "
         "second"}}},
      {"12-follower.json", {{"AFollower", {}}}},
      {"13-no-quorum.json",
       {{"TheLastNodeOfThree", {}}},
       {{2,
         "the gossip of a moment: the server was connecting again to a leader that it knew to be "
         "dead (PreReplica); ours gives a leader up with the connection (Unknown)"}}},
      {"14-leader-change.json",
       {{"ALeaderThatResigns", from_to(1, 14)}, {"ANodeThatIsShutDown", {15, 16}}}},
  };
  return kCoverage;
}

const RecordingCoverage& coverage_of(const std::string& file) {
  const auto found = std::ranges::find(coverage(), file, &RecordingCoverage::file);
  if (found == coverage().end()) {
    ADD_FAILURE() << file << " is not in coverage()";
    static const RecordingCoverage kNone;
    return kNone;
  }
  return *found;
}

std::set<int> wanted_of(const std::string& file) {
  const auto& of = coverage_of(file);
  const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const auto found = of.tests.find(test);
  if (found == of.tests.end()) {
    ADD_FAILURE() << file << " has nothing for " << test;
    return {};
  }
  return found->second.empty() ? all_of(of) : found->second;
}

namespace {

TEST(RecordedCalls, EachIsReplayedOrLeftOutWithAReason) {
  std::set<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(VERGER_TEST_FIXTURES) + "/grpc")) {
    if (entry.path().extension() == ".json") {
      files.insert(entry.path().filename().string());
    }
  }
  std::size_t recorded = 0;
  std::size_t replayed = 0;
  for (const auto& of : coverage()) {
    SCOPED_TRACE(of.file);
    EXPECT_EQ(files.erase(of.file), 1U);
    std::set<int> once;
    for (const auto& [test, numbers] : of.tests) {
      for (const auto number : numbers.empty() ? all_of(of) : numbers) {
        EXPECT_TRUE(once.insert(number).second) << number << " is replayed twice";
        EXPECT_FALSE(of.left_out.contains(number)) << number;
      }
    }
    EXPECT_EQ(once, all_of(of));
    replayed += once.size();
    recorded += recording(of.file)["exchanges"].size();
  }
  EXPECT_TRUE(files.empty()) << *files.begin() << " is replayed by no test";
  std::cout << "All recordings replayed: " << replayed << " of " << recorded << '\n';
  for (const auto& of : coverage()) {
    for (const auto& [number, reason] : of.left_out) {
      std::cout << "  not: " << of.file << ' ' << number << ": " << reason << '\n';
    }
  }
  EXPECT_EQ(recorded, 513U);
  EXPECT_EQ(replayed, 509U);
}

}  // namespace
}  // namespace verger::testing
