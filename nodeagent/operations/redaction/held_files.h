#pragma once

#include <string>
#include <vector>

#include "engine/base/file_system.h"

namespace verger::agent {

/// Files below `directory` that were removed and that a process still has open: their content is on
/// the disk until it closes them. "chunk-000000.000000 (process 4711)", in no order. Processes that
/// cannot be looked into are left out.
std::vector<std::string> removed_and_held(const Path& directory);

}  // namespace verger::agent
