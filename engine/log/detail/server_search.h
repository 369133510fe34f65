#pragma once

#include "engine/base/file_system.h"
#include "engine/base/result.h"

namespace verger::log::detail {

/// Looks through `proc` (/proc) for a process that has files of `directory` open for writing: the
/// server leaves no lock file. Our own process is left out, our lock covers it.
///
/// A process of another user that cannot be looked into counts only when its name or command line
/// is that of a server; else nobody but root could ever write. Errors: kRefused (a process, or
/// `proc` cannot be read), each saying what to do.
Result<void> refuse_running_server(const Path& directory, const Path& proc = "/proc");

}  // namespace verger::log::detail
