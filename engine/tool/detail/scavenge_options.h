#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "engine/scavenge/options.h"

namespace verger::tool {

/// {"position":1048576,"eventNumber":0,"effectiveNow":"2022-01-05T00:00:00.0000000Z","threshold":0};
/// a missing threshold is 0. Errors: kInvalidArgument and those of reading a file.
Result<streams::ScavengePoint> read_point_file(FileSystem& files, const Path& path);

/// "STAGE[:N]" with the stages accumulate, calculate, execute, merge, index, clean.
/// Error: kInvalidArgument.
Result<scavenge::StopAfter> parse_stop_after(std::string_view text);

/// The stage's word of --stop-after; "done" of kDone.
std::string_view word_of(scavenge::Stage stage);

}  // namespace verger::tool
