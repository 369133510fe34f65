#pragma once

#include <functional>

#include "engine/base/bytes.h"
#include "engine/base/file_system.h"
#include "engine/base/result.h"

namespace verger::agent {

/// Makes a file readable for its owner alone; empty: the file system has no users.
using MakePrivate = std::function<Result<void>(const Path&)>;

/// write_file_durably(), of a file that is private while it is still empty. A crash may leave a
/// draft, "<path>.tmp", which the owner of the directory removes. Errors: kNoSpace, kIo, those of
/// `make_private`.
Result<void> write_secret_file(FileSystem& files, const MakePrivate& make_private, const Path& path,
                               ByteView content);

}  // namespace verger::agent
