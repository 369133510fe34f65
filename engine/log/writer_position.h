#pragma once

#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "engine/base/types.h"

namespace verger::log {

/// How far the log in `directory` is written, by its writer.chk; 0 where there is no such file.
/// Reads 8 bytes, opens no chunk, changes nothing: safe beside a server. Error: kIo.
Result<LogPosition> writer_position(FileSystem& files, const Path& directory);

}  // namespace verger::log
