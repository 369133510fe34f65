#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "nodeagent/external/server_process.h"

namespace verger::external {

struct ChildOptions {
  std::vector<std::string> command{};                ///< the program's path, then its arguments
  std::map<std::string, std::string> environment{};  ///< added to this process's own
  /// Of this process's own, variables that begin so are left out; empty: none are.
  std::string without{};
  Path output{};  ///< what it prints is appended; empty: dropped
};

/// A program that must not outlive us: the kernel kills it when the thread that started it ends, so
/// start it on one that lives as long as the process. It leads a process group of its own, which is
/// killed with this object. One thread.
class ChildProcess {
 public:
  /// Error: kIo.
  static Result<std::unique_ptr<ChildProcess>> start(const ChildOptions& options);
  /// SIGKILL to the group, and waits for the program's end.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t id() const { return id_; }
  /// To the program alone.
  void signal(int number) const;
  /// Its exit status as the shell has it (128 + signal); nullopt while it runs.
  std::optional<int> status();

 private:
  explicit ChildProcess(pid_t id) : id_(id) {}
  pid_t id_;
  std::optional<int> status_;
};

/// Kills the group that a process of an earlier run leads, if that is still the same process.
void kill_group_of(const ServerProcess& process);

}  // namespace verger::external
