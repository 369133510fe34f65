#pragma once

#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/unique_fd.h"

/// Programs that vergerd runs for others: those of one directory alone, with an environment that
/// holds no secret of vergerd's.
namespace verger::controller {

struct ProgramDirectory {
  Path directory{};           ///< empty: no program is run
  std::string_view option{};  ///< of vergerd, that names it; for messages
};

/// The file that `program` names: one of the directory, by its name alone or by its whole path.
/// Errors: kRefused (no directory, outside of it, others than its owner, root or vergerd's user,
/// can change it), kNotFound.
Result<Path> admit_program(const ProgramDirectory& from, const std::string& program);

/// A pipe that children do not inherit.
struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
Result<Pipe> make_pipe();

/// What a program has as its standard streams; -1: vergerd's own.
struct ProgramStreams {
  int in = -1;
  int out = -1;
  int error = -1;
};
/// In a session of its own, in "/", with PATH and LANG alone. Errors: kNotFound, kIo.
Result<pid_t> start_program(const Path& program, const std::vector<std::string>& command,
                            ProgramStreams streams);
/// With all it has started in its session.
void kill_session(pid_t pid);

/// What a pipe holds, so that writing it does not wait for the program.
inline constexpr std::size_t kMostInput = 65'536;
/// Writes at most that to the write end of a pipe whose read end is open here, too.
void write_input(int pipe, std::string_view input);

}  // namespace verger::controller
