#pragma once

#include <optional>
#include <string_view>

#include "engine/base/file_system.h"
#include "nodeagent/external/file_access.h"

namespace verger::agent {

/// Writes a new file that only this process's user can read from its first byte on, gives it to
/// `as` where that is set, and makes it durable. What is there under that name is removed first. A
/// crash may leave a part of it; after an error nothing is left. Errors: kNoSpace, kRefused: it may
/// not be given to that user; kIo.
Result<void> write_copy(FileSystem& files, external::FileAccess& access, const Path& path,
                        std::string_view content,
                        const std::optional<external::FileAttributes>& as);

/// Removes a file; nothing happens where there is none. Not durable yet.
Result<void> remove_if_there(FileSystem& files, const Path& path);

/// SHA-256 of a file's content, lower-case hex; empty: there is no such file. Errors: kIo,
/// kUnsupported: it is far too large for a certificate.
Result<std::string> hash_if_there(FileSystem& files, const Path& path);

}  // namespace verger::agent
