#pragma once

#include <chrono>
#include <filesystem>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace verger::test {

/// A child process of the test. Its output goes to a file. Killed when the object ends.
class Process {
 public:
  struct Options {
    std::vector<std::string> command;
    std::map<std::string, std::string> environment;  ///< added to the test's own
    std::filesystem::path output;                    ///< stdout and stderr, appended
  };
  /// Throws when the program cannot be started.
  explicit Process(Options options);
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  bool running();
  void signal(int number) const;
  /// SIGKILL, and waits for its end.
  void kill();
  /// Exit status as the shell has it (128 + signal); nullopt when it still runs after `limit`.
  std::optional<int> wait(std::chrono::milliseconds limit);
  const Options& options() const { return options_; }

 private:
  Options options_;
  pid_t pid_ = -1;
  std::optional<int> status_;
};

/// How a program ended. A number; an expectation that it fails also prints the command and what the
/// program wrote.
struct ExitStatus {
  int code = 0;
  std::string story{};
  operator int() const { return code; }  // NOLINT(google-explicit-constructor): it is a number
  friend void PrintTo(const ExitStatus& status, std::ostream* out);
};

/// Runs a program to its end and collects what it prints.
struct Finished {
  ExitStatus status{};
  std::string out;
  std::string err;
};
Finished run(const std::vector<std::string>& command,
             const std::map<std::string, std::string>& environment = {},
             std::chrono::milliseconds limit = std::chrono::seconds(60));

/// A program of the build under test: "<build>/bin/<name>".
std::string program(const std::string& name);

/// SIGKILL to every process whose command line names something in `directory`, until there is none:
/// as where a machine loses its power. Also those that one of them is starting at that moment.
void kill_all_of(const std::filesystem::path& directory);

/// The whole file; empty when it is not there.
std::string file_text(const std::filesystem::path& path);

void pause_briefly();

/// Calls `condition` until it holds, with a pause of a few milliseconds; false after `limit`.
template <class Condition>
bool eventually(std::chrono::milliseconds limit, Condition condition) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) {
      return false;
    }
    // Other processes do the work: there is nothing in this one to wait on.
    pause_briefly();
  }
  return true;
}

}  // namespace verger::test
