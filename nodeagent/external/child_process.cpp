#include "nodeagent/external/child_process.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

namespace verger::external {
namespace {

constexpr int kCannotRun = 127;

std::vector<std::string> environment_of(const ChildOptions& options) {
  const auto& added = options.environment;
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const bool left_out = !options.without.empty() && text.starts_with(options.without);
    if (!left_out && !added.contains(text.substr(0, text.find('=')))) {
      out.push_back(text);
    }
  }
  for (const auto& [name, value] : added) {
    out.push_back(fmt::format("{}={}", name, value));
  }
  return out;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (auto& text : texts) {
    out.push_back(text.data());
  }
  out.push_back(nullptr);
  return out;
}

/// In the child of a process with threads: nothing here allocates or locks.
[[noreturn]] void become(char* const* command, char* const* environment, const char* output,
                         pid_t parent) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) {
    ::_exit(kCannotRun);  // it has ended in between
  }
  const int input = ::open("/dev/null", O_RDONLY);
  const int out = ::open(output, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (input < 0 || out < 0 || ::dup2(input, STDIN_FILENO) < 0 || ::dup2(out, STDOUT_FILENO) < 0 ||
      ::dup2(out, STDERR_FILENO) < 0) {
    ::_exit(kCannotRun);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  ::execve(command[0], command, environment);
  ::_exit(kCannotRun);
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const ChildOptions& options) {
  auto command = options.command;
  auto environment = environment_of(options);
  const auto words = pointers_to(command);
  const auto variables = pointers_to(environment);
  const std::string output = options.output.empty() ? "/dev/null" : options.output.string();
  const auto parent = ::getpid();
  const auto child = ::fork();
  if (child < 0) {
    return Error{Errc::kIo, fmt::format("{}: cannot be run: {}", options.command.front(),
                                        std::generic_category().message(errno))};
  }
  if (child == 0) {
    become(words.data(), variables.data(), output.c_str(), parent);
  }
  return std::unique_ptr<ChildProcess>(new ChildProcess(child));
}

ChildProcess::~ChildProcess() {
  if (status()) {
    // Others of its group may be there.
    ::kill(-id_, SIGKILL);
    return;
  }
  ::kill(-id_, SIGKILL);
  ::kill(id_, SIGKILL);  // where it has not begun a group of its own yet
  while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ChildProcess::signal(int number) const {
  if (!status_) {
    ::kill(id_, number);
  }
}

std::optional<int> ChildProcess::status() {
  int status = 0;
  if (!status_ && ::waitpid(id_, &status, WNOHANG) == id_) {
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return status_;
}

void kill_group_of(const ServerProcess& process) {
  if (still_runs(process)) {
    ::kill(-static_cast<pid_t>(process.id), SIGKILL);
    ::kill(static_cast<pid_t>(process.id), SIGKILL);
  }
}

}  // namespace verger::external
