#pragma once

#include "engine/base/file_system.h"
#include "engine/base/result.h"

namespace verger::sqlite {

/// Copies a database file with its -wal or -journal to `target`, in `to`. Only reads the source,
/// which may belong to a running server: the copy is one that a crash at some moment could have
/// left. Nothing is synced. Errors: kNotFound, kIo, kNoSpace, kUnavailable (changes too fast).
Result<void> copy_database(FileSystem& from, const Path& source, FileSystem& to,
                           const Path& target);

}  // namespace verger::sqlite
