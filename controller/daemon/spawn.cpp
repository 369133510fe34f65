#include "controller/daemon/spawn.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

#include "engine/base/unique_fd.h"

namespace verger::controller {
namespace {

constexpr std::size_t kPipeHolds = 65'536;

/// Children are only ours: those that were spawned here.
void reap(std::vector<pid_t>& children) {
  std::erase_if(children, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
}

}  // namespace

Result<void> spawn_command(const std::vector<std::string>& command, const std::string& input) {
  static std::vector<pid_t> children;  // of one thread, the controller's
  reap(children);
  if (command.empty() || command.front().empty()) {
    return Error{Errc::kInvalidArgument, "the command is empty"};
  }
  if (input.size() > kPipeHolds) {
    return Error{Errc::kInvalidArgument, "more input than a pipe holds"};
  }
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return Error{Errc::kIo, fmt::format("pipe: {}", std::generic_category().message(errno))};
  }
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  std::vector<char*> arguments;
  for (const auto& each : command) {
    arguments.push_back(const_cast<char*>(each.c_str()));  // NOLINT: posix_spawn's signature
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, read_end.get(), STDIN_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  pid_t pid = -1;
  const int error =
      ::posix_spawnp(&pid, arguments.front(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return Error{error == ENOENT ? Errc::kNotFound : Errc::kIo,
                 fmt::format("{}: {}", command.front(), std::generic_category().message(error))};
  }
  children.push_back(pid);
  // The pipe holds all of it, so this does not wait for the program. One that has closed its end
  // already does not want it.
  for (std::size_t written = 0; written < input.size();) {
    const auto count = ::write(write_end.get(), input.data() + written, input.size() - written);
    if (count < 0 && errno != EINTR) {
      break;
    }
    written += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  return {};
}

}  // namespace verger::controller
