#pragma once

#include <string>
#include <vector>

#include "engine/base/result.h"

namespace verger::controller {

/// Starts a program (found by PATH) in a session of its own with `input`, at most 64 KiB, on its
/// standard input, and does not wait for it; those that have ended since are reaped. Errors:
/// kInvalidArgument (no command, too much input), kNotFound, kIo.
Result<void> spawn_command(const std::vector<std::string>& command, const std::string& input);

}  // namespace verger::controller
