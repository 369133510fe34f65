#include "controller/daemon/programs.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace verger::controller {
namespace {

namespace fs = std::filesystem;

Error refused_program(std::string why) { return {Errc::kRefused, std::move(why)}; }

/// Only root and this user may have put it there.
Result<void> check_owner(const fs::path& path) {
  struct stat seen{};
  if (::stat(path.c_str(), &seen) != 0) {
    return Error{errno == ENOENT ? Errc::kNotFound : Errc::kIo,
                 fmt::format("{}: {}", path.string(), std::generic_category().message(errno))};
  }
  if (seen.st_uid != 0 && seen.st_uid != ::geteuid()) {
    return refused_program(
        fmt::format("{}: it belongs neither to root nor to vergerd's user", path.string()));
  }
  if ((seen.st_mode & 022U) != 0) {
    return refused_program(
        fmt::format("{0}: others than its owner can change it: chmod go-w {0}", path.string()));
  }
  return {};
}

}  // namespace

Result<Path> admit_program(const ProgramDirectory& from, const std::string& program) {
  const auto& directory = from.directory;
  if (directory.empty()) {
    return refused_program(fmt::format(
        "commands are not run: start vergerd with {} DIR, the directory that holds the programs",
        from.option));
  }
  std::error_code error;
  const auto room = fs::canonical(directory, error);
  if (error) {
    return Error{Errc::kNotFound,
                 fmt::format("{} {}: {}", from.option, directory.string(), error.message())};
  }
  const bool is_path = program.find('/') != std::string::npos;
  auto file = fs::canonical(is_path ? Path(program) : room / program, error);
  if (program.empty() || error) {
    return Error{Errc::kNotFound,
                 fmt::format("the command \"{}\" is not there; it is looked for in {} ({})",
                             program, room.string(), from.option)};
  }
  if (file.parent_path() != room || !fs::is_regular_file(file, error)) {
    return refused_program(fmt::format("the command {} is no program of {} ({})", file.string(),
                                       room.string(), from.option));
  }
  VERGER_RETURN_IF_ERROR(check_owner(room));
  VERGER_RETURN_IF_ERROR(check_owner(file));
  return file;
}

Result<Pipe> make_pipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return Error{Errc::kIo, fmt::format("pipe: {}", std::generic_category().message(errno))};
  }
  return Pipe{.read = UniqueFd(ends[0]), .write = UniqueFd(ends[1])};
}

Result<pid_t> start_program(const Path& program, const std::vector<std::string>& command,
                            ProgramStreams streams) {
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
  for (const auto& [from, to] :
       {std::pair(streams.in, STDIN_FILENO), std::pair(streams.out, STDOUT_FILENO),
        std::pair(streams.error, STDERR_FILENO)}) {
    if (from >= 0) {
      posix_spawn_file_actions_adddup2(&actions, from, to);
    }
  }
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

void kill_session(pid_t pid) { ::kill(-pid, SIGKILL); }

void write_input(int pipe, std::string_view input) {
  for (std::size_t written = 0; written < input.size();) {
    const auto count = ::write(pipe, input.data() + written, input.size() - written);
    if (count < 0 && errno != EINTR) {
      return;
    }
    written += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
}

}  // namespace verger::controller
