#pragma once

#include <boost/asio/awaitable.hpp>

#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "nodeagent/operations/operation.h"

namespace verger::agent {

/// Whether a restore may work on the files of the agent's node now: the server does not answer, no
/// process has them open, this process may write them, and the directory is one of a database.
///
/// While the server is down nothing proves that the directory is its own but the agent's
/// configuration; what is checked is that it cannot be something else. Errors: kUnsupported (the
/// agent cannot stop and start its server), kRefused (it runs), kUnauthorized (another user's
/// files), those of check_database_directory().
net::awaitable<Result<void>> server_is_stopped(LocalNode node);

/// A database's directory, an empty one, or one to be made in a directory that is there. Error:
/// kConflict: it holds something else, or the directory above it is missing, as where a file system
/// is not mounted.
Result<void> check_database_directory(FileSystem& files, const Path& directory);

}  // namespace verger::agent
