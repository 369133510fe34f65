#pragma once

#include "engine/base/random.h"
#include "engine/verify/findings.h"

namespace verger::verify::detail {

/// Looks for damage in scavenging.db, in a copy of it in `scratch`. Error: the copy cannot be made.
Result<void> check_scavenge_state(FileSystem& files, Random& random, const Path& index_directory,
                                  const Path& scratch, Findings& findings);

}  // namespace verger::verify::detail
