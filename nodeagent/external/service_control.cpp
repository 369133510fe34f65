#include "nodeagent/external/service_control.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

namespace verger::external {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kChildLook{20};

/// Commands that took longer than their limit and run on.
std::vector<pid_t>& late_commands() {
  static std::vector<pid_t> commands;
  return commands;
}

/// A child in a session of its own, so that what ends the agent does not end the server.
Result<pid_t> spawn(std::vector<std::string> command) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (auto& word : command) {
    words.push_back(word.data());
  }
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  pid_t child = -1;
  const int error =
      posix_spawnp(&child, words.front(), &actions, &attributes, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return Error{Errc::kIo, fmt::format("{}: cannot be run: {}", command.front(),
                                        std::generic_category().message(error))};
  }
  return child;
}

}  // namespace

void ServiceControl::reap_late_commands() {
  std::erase_if(late_commands(),
                [](pid_t command) { return ::waitpid(command, nullptr, WNOHANG) != 0; });
}

net::awaitable<Result<void>> ServiceControl::run(std::vector<std::string> command,
                                                 milliseconds limit, http::Timers* timers) {
  reap_late_commands();
  const auto text = fmt::format("{}", fmt::join(command, " "));
  VERGER_CO_TRY(const auto child, spawn(std::move(command)));
  for (milliseconds waited{0}; waited < limit; waited += kChildLook) {
    int status = 0;
    const auto ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        co_return Result<void>();
      }
      co_return Error{Errc::kIo,
                      WIFEXITED(status)
                          ? fmt::format("\"{}\" ended with status {}", text, WEXITSTATUS(status))
                          : fmt::format("\"{}\" was ended by signal {}", text, WTERMSIG(status))};
    }
    co_await timers->sleep_for(kChildLook);
  }
  late_commands().push_back(child);
  co_return Error{Errc::kTimeout, fmt::format("\"{}\" has not ended within {} s; it runs on", text,
                                              limit.count() / 1000)};
}

net::awaitable<Result<void>> ServiceControl::act(std::string verb, std::string command) const {
  if (!configured()) {
    co_return Error{Errc::kUnsupported,
                    "the agent has no way to start and stop its server (--service-unit, or "
                    "--start-command and --stop-command)"};
  }
  if (options_.own) {
    const auto call = verb == "start" ? options_.own->start : options_.own->stop;
    co_return co_await call();
  }
  if (!options_.unit.empty()) {
    co_return co_await run({"systemctl", std::move(verb), options_.unit}, options_.limit, &timers_);
  }
  co_return co_await run({"/bin/sh", "-c", std::move(command)}, options_.limit, &timers_);
}

std::string ServiceControl::start_text() const {
  return options_.unit.empty() ? options_.start_command : "systemctl start " + options_.unit;
}

net::awaitable<Result<void>> ServiceControl::start() const {
  return act("start", options_.start_command);
}

net::awaitable<Result<void>> ServiceControl::stop() const {
  return act("stop", options_.stop_command);
}

}  // namespace verger::external
