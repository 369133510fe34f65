#pragma once

#include <functional>

#include "engine/base/bytes.h"
#include "engine/base/file_system.h"
#include "engine/base/result.h"

namespace verger::agent {

/// Makes a file readable for its owner alone; empty: the file system has no users.
using MakePrivate = std::function<Result<void>(const Path&)>;

/// Writes or replaces a file as a whole, private while it is still empty; durable when it returns.
/// A crash before the rename leaves a draft, "<path>.tmp", which the owner of the directory
/// removes. After an error `path` is as it was, and there is no draft. Errors: kNoSpace, kIo, those
/// of `make_private`.
Result<void> write_secret_file(FileSystem& files, const MakePrivate& make_private, const Path& path,
                               ByteView content);

}  // namespace verger::agent
