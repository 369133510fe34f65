#pragma once

#include <memory>

#include "engine/base/memory_file_system.h"

namespace verger::sqlite::detail {

/// A database file with its -wal or -journal, copied at the same path into a disk of its own. Only
/// reads the source. The copy is one that a crash at some moment could have left, although a server
/// may write meanwhile. Errors: kNotFound, kIo, kUnavailable (changes too fast).
Result<std::unique_ptr<MemoryFileSystem>> copy_database(FileSystem& files, const Path& path);

}  // namespace verger::sqlite::detail
