#include "controller/daemon/command_runner.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <sys/wait.h>

#include "controller/daemon/programs.h"

namespace verger::controller {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMostAtOnce = 16;
constexpr milliseconds kLookInterval{100};
/// Of a program whose end was not seen: no success.
constexpr int kUnknownStatus = 0xFF00;

}  // namespace

struct CommandRunner::State {
  State(boost::asio::any_io_executor on, Options with, http::Timers& by, Log& to)
      : executor(std::move(on)), options(std::move(with)), timers(by), log(to) {}

  boost::asio::any_io_executor executor;
  Options options;
  http::Timers& timers;
  Log& log;
  std::set<pid_t> children;

  /// True once it has ended; then its number may be another's.
  bool reap(pid_t pid, int& status) {
    const auto ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == 0) {
      return false;
    }
    if (ended < 0) {
      status = kUnknownStatus;
    }
    children.erase(pid);
    return true;
  }

  static net::awaitable<Result<void>> watch(std::shared_ptr<State> self, pid_t pid,
                                            std::string program) {
    auto left = self->options.limit;
    int status = 0;
    bool killed = false;
    while (!self->reap(pid, status)) {
      if (left.count() <= 0) {
        kill_session(pid);
        killed = true;
        left = milliseconds::max();
      }
      const auto pause = std::min(left, kLookInterval);
      co_await self->timers.sleep_for(pause);
      left -= pause;
    }
    if (killed) {
      co_return Error{Errc::kTimeout, fmt::format("{} was killed: it did not end within {} s",
                                                  program, self->options.limit.count() / 1000)};
    }
    if (WIFSIGNALED(status)) {
      co_return Error{Errc::kRefused,
                      fmt::format("{} was ended by signal {}", program, WTERMSIG(status))};
    }
    if (WEXITSTATUS(status) != 0) {
      co_return Error{Errc::kRefused,
                      fmt::format("{} exited with {}", program, WEXITSTATUS(status))};
    }
    co_return Result<void>{};
  }

  Result<std::pair<pid_t, std::string>> start(const std::vector<std::string>& command,
                                              const std::string& input) {
    if (command.empty()) {
      return Error{Errc::kInvalidArgument, "the command is empty"};
    }
    if (input.size() > kMostInput) {
      return Error{Errc::kInvalidArgument, "more input than a pipe holds"};
    }
    VERGER_TRY(const auto program,
               admit_program({.directory = options.directory, .option = "--notification-commands"},
                             command.front()));
    if (children.size() >= kMostAtOnce) {
      return Error{Errc::kUnavailable,
                   fmt::format("{} commands of notifications run already", kMostAtOnce)};
    }
    VERGER_TRY(auto ends, make_pipe());
    VERGER_TRY(const auto pid, start_program(program, command, {.in = ends.read.get()}));
    children.insert(pid);
    write_input(ends.write.get(), input);
    return std::pair(pid, program.string());
  }

  static net::awaitable<Result<void>> run(std::shared_ptr<State> self,
                                          std::vector<std::string> command, std::string input) {
    VERGER_CO_TRY(const auto child, self->start(command, input));
    co_return co_await watch(self, child.first, child.second);
  }
};

CommandRunner::CommandRunner(boost::asio::any_io_executor executor, Options options,
                             http::Timers& timers, Log& log)
    : state_(std::make_shared<State>(std::move(executor), std::move(options), timers, log)) {}

CommandRunner::~CommandRunner() {
  for (const auto pid : state_->children) {
    kill_session(pid);
    ::waitpid(pid, nullptr, 0);
  }
  state_->children.clear();
}

std::size_t CommandRunner::running() const { return state_->children.size(); }

Result<Path> CommandRunner::admit(const std::string& program) const {
  return admit_program(
      {.directory = state_->options.directory, .option = "--notification-commands"}, program);
}

net::awaitable<Result<void>> CommandRunner::run(std::vector<std::string> command,
                                                std::string input) {
  return State::run(state_, std::move(command), std::move(input));
}

}  // namespace verger::controller
