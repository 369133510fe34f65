#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/processes/ports.h"
#include "tests/support/processes/process.h"

namespace verger::test {

/// The S3-compatible server s3rver of the npm registry, with one bucket, "backups", as a process on
/// a leased port of 127.0.0.1. Its only key is S3RVER, with the secret S3RVER.
class S3rver {
 public:
  /// `lock`: the directory of package.json and package-lock.json; all of it is put below
  /// `directory`, which exists.
  S3rver(std::filesystem::path lock, std::filesystem::path directory)
      : lock_(std::move(lock)), directory_(std::move(directory)) {}

  /// Empty, or why not.
  [[nodiscard]] std::string install() const;
  /// `more`: further options. Empty once it listens, or its output.
  std::string start(const std::vector<std::string>& more = {});
  [[nodiscard]] std::uint16_t port() const { return ports_[0]; }
  /// Where it has its objects.
  [[nodiscard]] std::filesystem::path objects() const { return directory_ / "objects"; }

 private:
  std::filesystem::path lock_;
  std::filesystem::path directory_;
  PortLease ports_{1};
  std::optional<Process> process_;
};

}  // namespace verger::test
