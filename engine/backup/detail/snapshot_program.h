#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/result.h"

namespace verger::backup::detail {

/// Whether this user may run it for us: an absolute path of a file that can be executed, which,
/// like its directory, belongs to root or to this user and can be changed by no other one. Errors:
/// kNotFound, kRefused.
Result<void> check_snapshot_program(const Path& program);

/// One call of a program, in a session of its own, from "/", with `environment` alone. One thread.
class SnapshotProgram {
 public:
  struct Call {
    Path program;
    std::string action;
    std::vector<std::string> environment;  ///< "NAME=value"
    Path output;                           ///< file: what it prints
    Path errors;                           ///< file: what it reports
    Path lock;  ///< held by it and by all that it starts, also when this process is no more
  };
  /// Errors: kUnavailable (one that an earlier process started still runs), kIo.
  static Result<std::unique_ptr<SnapshotProgram>> start(const Call& call);
  /// Kills the session of one that runs, and waits for its end.
  ~SnapshotProgram();
  SnapshotProgram(const SnapshotProgram&) = delete;
  SnapshotProgram& operator=(const SnapshotProgram&) = delete;

  /// Its exit status as the shell has it (128 + signal); nullopt while it runs.
  std::optional<int> status();

 private:
  explicit SnapshotProgram(pid_t id) : id_(id) {}
  pid_t id_;
  std::optional<int> status_;
};

}  // namespace verger::backup::detail
