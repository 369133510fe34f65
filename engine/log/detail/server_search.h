#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/file_system.h"
#include "engine/base/result.h"

namespace verger::log::detail {

/// A process that has a file of a database open for writing.
struct WritingProcess {
  std::int64_t id = 0;
  std::string file;     ///< that it has open
  std::string command;  ///< for a person
};

/// Looks through `proc` (/proc) for a process that has files of `directory` open for writing: the
/// server leaves no lock file. Our own process is left out, our lock covers it.
///
/// A process of another user that cannot be looked into counts only when its name or command line
/// is that of a server; else only root could ever write. nullopt: there is none. Errors:
/// kRefused (such a process, or `proc` cannot be read), each saying what to do.
Result<std::optional<WritingProcess>> find_writing_process(const Path& directory,
                                                           const Path& proc = "/proc");
/// The same; kRefused also where there is one.
Result<void> refuse_running_server(const Path& directory, const Path& proc = "/proc");

}  // namespace verger::log::detail
