#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace verger::testing {

/// Which test replays which exchanges of a recording (tests/fixtures/grpc). Each test checks that
/// it replays exactly those that stand here for it, and one that each exchange is in one of them or
/// is left out with a reason: so the sum is what it says.
struct RecordingCoverage {
  std::string file;
  /// By the test's name; an empty set: all that are not left out.
  std::map<std::string, std::set<int>> tests;
  /// By number, with the reason.
  std::map<int, std::string> left_out{};
};
const std::vector<RecordingCoverage>& coverage();

/// Of that file. Fails the test where it is not in coverage().
const RecordingCoverage& coverage_of(const std::string& file);
/// The exchanges of the file that the running test is to replay.
std::set<int> wanted_of(const std::string& file);

}  // namespace verger::testing
