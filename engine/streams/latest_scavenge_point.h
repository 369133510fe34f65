#pragma once

#include <optional>

#include "engine/streams/event_store.h"

namespace verger::streams {

/// The last point of the committed log, as the server looks for it when a scavenge starts: it reads
/// one event, the last that readers see of $scavengePoints. nullopt: there is none. Errors:
/// kDeleted (the stream is deleted for good), kUnsupported (the event is no point), kIo. Without
/// these errors, for what is only shown: scavenge_points().
Result<std::optional<ScavengePoint>> latest_scavenge_point(const Database& database);

/// The point that a committed record of the log is; nullopt: it is something else. For reading on
/// in a log whose former points are known.
std::optional<ScavengePoint> scavenge_point_in(const log::Prepare& prepare);

}  // namespace verger::streams
