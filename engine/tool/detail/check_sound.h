#pragma once

#include "engine/streams/event_store.h"
#include "engine/tool/tool_context.h"

namespace verger::tool {

/// Whether a scavenge can work on this database: for what has to be known before a point is written
/// for one. Compares all completed chunks and index tables with their checksums, side by side, with
/// progress. The caller holds StopSignals. Errors: kCorruption, kUnsupported (index tables of
/// version 1), kIo, kCancelled.
Result<void> check_sound(ToolContext& tool, const streams::Database& database);

}  // namespace verger::tool
