#pragma once

#include <string_view>

#include "engine/streams/event_store.h"

namespace verger::streams::detail {

/// kConflict: the stream is not where the writer thought it was.
Error wrong_version(std::string_view stream, std::int64_t expected, EventNumber current);
/// kDeleted.
Error stream_deleted(std::string_view stream);

}  // namespace verger::streams::detail
