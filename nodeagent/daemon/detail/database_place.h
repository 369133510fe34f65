#pragma once

#include "engine/base/file_system.h"

namespace verger::agent {

/// Whether the embedded node may open `directory`: a database is there, or the directory is empty,
/// or `init` says that a new database is meant. A path with a mistake in it is neither. Error:
/// kInvalidArgument, and those of listing it.
Result<void> check_database_place(FileSystem& files, const Path& directory, bool init);

}  // namespace verger::agent
