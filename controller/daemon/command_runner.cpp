#include "controller/daemon/command_runner.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <set>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>

#include "engine/base/unique_fd.h"

namespace verger::controller {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr std::size_t kPipeHolds = 65'536;
constexpr std::size_t kMostAtOnce = 16;
constexpr milliseconds kLookInterval{100};

Error refused(std::string why) { return {Errc::kRefused, std::move(why)}; }

/// Only root and this user may have put it there.
Result<void> check_owner(const fs::path& path) {
  struct stat seen{};
  if (::stat(path.c_str(), &seen) != 0) {
    return Error{errno == ENOENT ? Errc::kNotFound : Errc::kIo,
                 fmt::format("{}: {}", path.string(), std::generic_category().message(errno))};
  }
  if (seen.st_uid != 0 && seen.st_uid != ::geteuid()) {
    return refused(
        fmt::format("{}: it belongs neither to root nor to vergerd's user", path.string()));
  }
  if ((seen.st_mode & 022U) != 0) {
    return refused(
        fmt::format("{0}: others than its owner can change it: chmod go-w {0}", path.string()));
  }
  return {};
}

/// Both ends of a pipe that children do not inherit.
Result<std::pair<UniqueFd, UniqueFd>> make_pipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return Error{Errc::kIo, fmt::format("pipe: {}", std::generic_category().message(errno))};
  }
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

/// In a session of its own, in "/", with nothing of our environment.
Result<pid_t> spawn(const Path& program, const std::vector<std::string>& command, int standard_in) {
  std::vector<char*> arguments;
  for (const auto& each : command) {
    arguments.push_back(const_cast<char*>(each.c_str()));  // NOLINT: posix_spawn's signature
  }
  arguments.push_back(nullptr);
  std::string path = "PATH=/usr/local/bin:/usr/bin:/bin";
  std::string language = "LANG=C.UTF-8";
  char* environment[] = {path.data(), language.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, standard_in, STDIN_FILENO);
  posix_spawn_file_actions_addchdir_np(&actions, "/");
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int error =
      ::posix_spawn(&pid, program.c_str(), &actions, &attributes, arguments.data(), environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return Error{error == ENOENT ? Errc::kNotFound : Errc::kIo,
                 fmt::format("{}: {}", program.string(), std::generic_category().message(error))};
  }
  return pid;
}

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
  bool reap(pid_t pid) {
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) == 0) {
      return false;
    }
    children.erase(pid);
    return true;
  }

  static void kill_session(pid_t pid) { ::kill(-pid, SIGKILL); }

  static net::awaitable<void> watch(std::shared_ptr<State> self, pid_t pid, std::string program) {
    auto left = self->options.limit;
    while (!self->reap(pid)) {
      if (left.count() <= 0) {
        self->log.warning("a notification's command was killed: it ran too long",
                          {{"command", program},
                           {"limit_s", fmt::format("{}", self->options.limit.count() / 1000)}});
        kill_session(pid);
        left = milliseconds::max();
      }
      const auto pause = std::min(left, kLookInterval);
      co_await self->timers.sleep_for(pause);
      left -= pause;
    }
  }
};

CommandRunner::CommandRunner(boost::asio::any_io_executor executor, Options options,
                             http::Timers& timers, Log& log)
    : state_(std::make_shared<State>(std::move(executor), std::move(options), timers, log)) {}

CommandRunner::~CommandRunner() {
  for (const auto pid : state_->children) {
    State::kill_session(pid);
    ::waitpid(pid, nullptr, 0);
  }
  state_->children.clear();
}

std::size_t CommandRunner::running() const { return state_->children.size(); }

Result<Path> CommandRunner::admit(const std::string& program) const {
  const auto& directory = state_->options.directory;
  if (directory.empty()) {
    return refused(
        "commands are not run: start vergerd with --notification-commands DIR, the directory that "
        "holds the programs");
  }
  std::error_code error;
  const auto room = fs::canonical(directory, error);
  if (error) {
    return Error{Errc::kNotFound, fmt::format("--notification-commands {}: {}", directory.string(),
                                              error.message())};
  }
  const bool is_path = program.find('/') != std::string::npos;
  auto file = fs::canonical(is_path ? Path(program) : room / program, error);
  if (program.empty() || error) {
    return Error{Errc::kNotFound,
                 fmt::format("the command \"{}\" is not there; it is looked for in "
                             "{} (--notification-commands)",
                             program, room.string())};
  }
  if (file.parent_path() != room || !fs::is_regular_file(file, error)) {
    return refused(fmt::format("the command {} is no program of {} (--notification-commands)",
                               file.string(), room.string()));
  }
  VERGER_RETURN_IF_ERROR(check_owner(room));
  VERGER_RETURN_IF_ERROR(check_owner(file));
  return file;
}

Result<void> CommandRunner::run(const std::vector<std::string>& command, const std::string& input) {
  if (command.empty()) {
    return Error{Errc::kInvalidArgument, "the command is empty"};
  }
  if (input.size() > kPipeHolds) {
    return Error{Errc::kInvalidArgument, "more input than a pipe holds"};
  }
  VERGER_TRY(const auto program, admit(command.front()));
  if (state_->children.size() >= kMostAtOnce) {
    return Error{Errc::kUnavailable,
                 fmt::format("{} commands of notifications run already", kMostAtOnce)};
  }
  VERGER_TRY(auto ends, make_pipe());
  auto& [read_end, write_end] = ends;
  VERGER_TRY(const auto pid, spawn(program, command, read_end.get()));
  state_->children.insert(pid);
  // The pipe holds all of it, so this does not wait for the program. One that has closed its end
  // already does not want it.
  for (std::size_t written = 0; written < input.size();) {
    const auto count = ::write(write_end.get(), input.data() + written, input.size() - written);
    if (count < 0 && errno != EINTR) {
      break;
    }
    written += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  net::co_spawn(state_->executor, State::watch(state_, pid, program.string()),
                [](const std::exception_ptr&) {});
  return {};
}

}  // namespace verger::controller
