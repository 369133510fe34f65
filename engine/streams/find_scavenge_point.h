#pragma once

#include <span>

#include "engine/streams/event_store.h"

namespace verger::streams {

/// The one with this number among `points`, which are the log's (scavenge_points()). Error:
/// kNotFound, with the numbers that there are.
Result<ScavengePoint> find_scavenge_point(std::span<const ScavengePoint> points,
                                          std::int64_t number);

}  // namespace verger::streams
