#include "engine/backup/detail/snapshot_program.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

#include "engine/base/unique_fd.h"

namespace verger::backup::detail {
namespace {

/// Where the program has the lock.
constexpr int kLockDescriptor = 3;

Error system_error(const Path& path, int error) {
  return {error == ENOENT ? Errc::kNotFound : Errc::kIo,
          fmt::format("{}: {}", path.string(), std::generic_category().message(error))};
}

/// Only root and this user may have put it there.
Result<mode_t> check_changed_by_us_alone(const Path& path) {
  struct stat seen{};
  if (::stat(path.c_str(), &seen) != 0) {
    return system_error(path, errno);
  }
  if (seen.st_uid != 0 && seen.st_uid != ::geteuid()) {
    return Error{Errc::kRefused,
                 fmt::format("{}: it belongs neither to root nor to this user: a program that is "
                             "run for snapshots has to",
                             path.string())};
  }
  if ((seen.st_mode & 022U) != 0) {
    return Error{
        Errc::kRefused,
        fmt::format("{0}: others than its owner can change it: chmod go-w {0}", path.string())};
  }
  return seen.st_mode;
}

Result<UniqueFd> open_output(const Path& path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid()) {
    return system_error(path, errno);
  }
  return fd;
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

}  // namespace

Result<void> check_snapshot_program(const Path& program) {
  if (!program.is_absolute()) {
    return Error{Errc::kRefused,
                 fmt::format("the snapshot command \"{}\" is no absolute path of a program",
                             program.string())};
  }
  VERGER_TRY(const auto mode, check_changed_by_us_alone(program));
  if (!S_ISREG(mode) || ::access(program.c_str(), X_OK) != 0) {
    return Error{Errc::kRefused,
                 fmt::format("{}: it is no program that this user can run", program.string())};
  }
  VERGER_RETURN_IF_ERROR(check_changed_by_us_alone(program.parent_path()));
  return {};
}

Result<std::unique_ptr<SnapshotProgram>> SnapshotProgram::start(const Call& call) {
  const UniqueFd lock(::open(call.lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) {
    return system_error(call.lock, errno);
  }
  // Of the open file, which the program inherits: free once the last process that has it is gone.
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK
               ? Error{Errc::kUnavailable,
                       fmt::format("{}: a snapshot command of an earlier backup still runs",
                                   call.lock.string())}
               : system_error(call.lock, errno);
  }
  VERGER_TRY(const auto output, open_output(call.output));
  VERGER_TRY(const auto errors, open_output(call.errors));
  std::vector<std::string> command{call.program.string(), call.action};
  auto environment = call.environment;
  const auto words = pointers_to(command);
  const auto variables = pointers_to(environment);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.get(), STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, lock.get(), kLockDescriptor);
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
  pid_t id = -1;
  const int error = ::posix_spawn(&id, call.program.c_str(), &actions, &attributes, words.data(),
                                  variables.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return system_error(call.program, error);
  }
  return std::unique_ptr<SnapshotProgram>(new SnapshotProgram(id));
}

SnapshotProgram::~SnapshotProgram() {
  if (status()) {
    return;
  }
  ::kill(-id_, SIGKILL);
  ::kill(id_, SIGKILL);
  while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<int> SnapshotProgram::status() {
  int status = 0;
  if (!status_ && ::waitpid(id_, &status, WNOHANG) == id_) {
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return status_;
}

}  // namespace verger::backup::detail
