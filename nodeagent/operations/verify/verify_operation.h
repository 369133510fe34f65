#pragma once

#include <memory>

#include "engine/base/file_system.h"
#include "nodeagent/operations/operation.h"

namespace verger::agent {

/// verify {"throttlePercent", "bytesPerSecond"}: looks for damage in chunk files, checkpoints,
/// index, filters and scavenge state beside the running server; nothing is changed. Result:
/// {"chunkFiles", "chunkBytes", "records", "tables", "entries", "events", "damaged" (count),
/// "damage": [{"file", "offset", "text", "remedy"}], "missingStreams", "notes": [text]}; remedies:
/// "refill", "index", "filter", "scavenge-state". Codes: "conflict" (a scavenge runs or ran, or the
/// log was cut: nothing was found out), "stopped". `files` are the node's; temporary files go to
/// `scratch`, which is emptied.
std::unique_ptr<Operation> make_verify_operation(FileSystem& files, Path scratch);

}  // namespace verger::agent
