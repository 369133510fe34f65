#pragma once

#include <string>

#include "engine/base/result.h"

namespace verger::agent {

/// The first line of a file that only its owner may read. Errors, naming the file: kRefused: others
/// may read it; kInvalidArgument: the line is empty; kNotFound, kIo.
Result<std::string> read_password_file(const std::string& path);

}  // namespace verger::agent
