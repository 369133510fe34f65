#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "engine/base/types.h"

/// How a server cuts its log: it notes where in truncate.chk and ends; the next start cuts
/// (node-interface.md §3.8; docs/formats/log.md).
namespace verger::log {

/// Where the log is to be cut at the next start; -1: nowhere. Changes nothing.
/// Errors: kIo, kCorruption.
Result<LogPosition> pending_truncation(FileSystem& files, const Path& directory);
/// Notes it durably. The caller holds the database open for writing.
Result<void> note_truncation(FileSystem& files, const Path& directory, LogPosition position);
/// Number of the process that has files of `directory` open for writing; nullopt: there is none.
/// Error: kRefused: it cannot be seen whether there is one.
Result<std::optional<std::int64_t>> process_that_writes(const Path& directory);

}  // namespace verger::log
