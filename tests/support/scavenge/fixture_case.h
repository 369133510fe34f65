#pragma once

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

/// Appends to the database in `files` what `after` has from the end of `files`' log to the point,
/// chunk borders included, as a follower would get it.
Result<void> replay_to_point(FileSystem& files, FileSystem& after, const ScavengeRun& run,
                             const streams::ScavengePoint& point);

}  // namespace verger::test
