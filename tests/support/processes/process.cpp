#include "tests/support/processes/process.h"

#include <charconv>
#include <fcntl.h>
#include <fmt/ranges.h>
#include <fstream>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sstream>
#include <stdexcept>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "tests/support/temp_directory.h"

extern char** environ;

namespace verger::test {
namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (auto& word : words) {
    result.push_back(word.data());
  }
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    if (!added.contains(text.substr(0, text.find('=')))) {
      result.push_back(text);
    }
  }
  for (const auto& [name, value] : added) {
    result.push_back(name + "=" + value);
  }
  return result;
}

pid_t spawn(const std::vector<std::string>& command,
            const std::map<std::string, std::string>& environment, const std::string& out,
            const std::string& err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (err == out) {
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0644);
  }
  // Sockets that libraries opened for the test would stay open in the child after they were closed
  // here.
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  auto words = command;
  auto variables = merged_environment(environment);
  auto arguments = pointers(words);
  auto entries = pointers(variables);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, command.front().c_str(), &actions, nullptr, arguments.data(),
                                 entries.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw std::system_error(error, std::generic_category(), "cannot start " + command.front());
  }
  return pid;
}

int shell_status(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Process::Process(Options options) : options_(std::move(options)) {
  pid_ = spawn(options_.command, options_.environment, options_.output.string(),
               options_.output.string());
}

Process::~Process() {
  if (pid_ > 0 && !status_) {
    kill();
  }
}

Process::Process(Process&& other) noexcept
    : options_(std::move(other.options_)),
      pid_(std::exchange(other.pid_, -1)),
      status_(std::exchange(other.status_, std::nullopt)) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    if (pid_ > 0 && !status_) {
      kill();
    }
    options_ = std::move(other.options_);
    pid_ = std::exchange(other.pid_, -1);
    status_ = std::exchange(other.status_, std::nullopt);
  }
  return *this;
}

bool Process::running() { return !wait(std::chrono::milliseconds(0)).has_value(); }

void Process::signal(int number) const {
  if (pid_ > 0 && !status_) {
    ::kill(pid_, number);
  }
}

void Process::kill() {
  if (pid_ <= 0 || status_) {
    return;
  }
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  status_ = shell_status(status);
}

std::optional<int> Process::wait(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!status_) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = shell_status(status);
      break;
    }
    if (std::chrono::steady_clock::now() >= end) {
      return std::nullopt;
    }
    pause_briefly();
  }
  return status_;
}

Finished run(const std::vector<std::string>& command,
             const std::map<std::string, std::string>& environment,
             std::chrono::milliseconds limit) {
  const TempDirectory directory;
  const auto out = directory.path() / "out";
  const auto err = directory.path() / "err";
  const pid_t pid = spawn(command, environment, out.string(), err.string());
  const auto end = std::chrono::steady_clock::now() + limit;
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) != pid) {
    if (std::chrono::steady_clock::now() >= end) {
      ::kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      break;
    }
    pause_briefly();
  }
  Finished finished{.out = file_text(out), .err = file_text(err)};
  finished.status = {.code = shell_status(status),
                     .story = fmt::format("{}\n--- stdout\n{}\n--- stderr\n{}",
                                          fmt::join(command, " "), finished.out, finished.err)};
  return finished;
}

void PrintTo(const ExitStatus& status, std::ostream* out) {
  *out << status.code << ", of: " << status.story;
}

std::string program(const std::string& name) { return std::string(VERGER_BIN_DIR) + "/" + name; }

void kill_all_of(const std::filesystem::path& directory) {
  const auto kill_those_there = [&directory] {
    bool found = false;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      pid_t pid = 0;
      const auto name = entry.path().filename().string();
      const auto* end = name.data() + name.size();
      if (std::from_chars(name.data(), end, pid).ptr == end && pid != ::getpid() &&
          file_text(entry.path() / "cmdline").contains(directory.string() + "/")) {
        ::kill(pid, SIGKILL);
        found = true;
      }
    }
    return found;
  };
  while (kill_those_there()) {
    pause_briefly();
  }
}

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void pause_briefly() { poll(nullptr, 0, 5); }

}  // namespace verger::test
