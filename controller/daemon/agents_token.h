#pragma once

#include <string>

#include "engine/base/file_system.h"
#include "engine/base/random.h"

namespace verger::controller {

/// What vergerd signs its requests with to agents of this machine that have no TLS: the first line
/// of `file`, made with mode 0600 where it is missing. Errors: kRefused (others may read it),
/// kCorruption (no token), kIo, kNoSpace.
Result<std::string> open_or_make_agents_token(const Path& file, Random& random);

}  // namespace verger::controller
