#pragma once

#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/memory_file_system.h"
#include "tests/support/scavenge/run.h"

namespace verger::test {

/// A case of tests/fixtures/scavenge, unpacked into memory. Directories are "/db".
class FixtureCase {
 public:
  /// Throws when the case cannot be read.
  explicit FixtureCase(const std::string& name);

  const std::string& name() const { return name_; }
  const nlohmann::json& json() const { return json_; }
  bool has(const std::string& archive) const;
  /// Its scavenge ended in an error, by one of its known defects.
  bool server_failed() const { return name_.starts_with("fails-"); }
  /// There was a point, and the server's scavenge reached it.
  bool server_scavenged() const { return point().has_value() && !server_failed(); }
  /// The directory of "before", "after", "interrupted", "after-n1" …; a copy of its own.
  std::unique_ptr<MemoryFileSystem> unpack(const std::string& archive);
  /// Archives of finished nodes: "after", or "after-n1" ….
  std::vector<std::string> afters() const;

  /// The point that was processed; nullopt in a case without one.
  std::optional<streams::ScavengePoint> point() const;
  /// The server's options, and the last request's parameters.
  ScavengeRun run() const;
  /// The server wrote the point after `before`.
  bool point_is_newer() const;

 private:
  std::string name_;
  nlohmann::json json_;
  std::map<std::string, std::unique_ptr<MemoryFileSystem>> unpacked_;
};

/// Names of the cases that `holds` is true of: what a test is instantiated for. Throws where there
/// is none, so that no test is left out in silence.
std::vector<std::string> scavenge_cases_where(const std::function<bool(const FixtureCase&)>& holds);

/// The case's name as a test's: for INSTANTIATE_TEST_SUITE_P.
std::string case_name(const testing::TestParamInfo<std::string>& info);

/// Appends to the database in `files` what `after` has from the end of `files`' log to the point,
/// chunk borders included, as a follower would get it.
Result<void> replay_to_point(FileSystem& files, FileSystem& after, const ScavengeRun& run,
                             const streams::ScavengePoint& point);

}  // namespace verger::test
