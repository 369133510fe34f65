#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/bytes.h"

namespace verger::streams::detail {

/// The threshold in a scavenge point's data: 0 when it is missing; nullopt when the data is not the
/// JSON object of a scavenge point. Format: docs/formats/scavenge.md, "Points".
std::optional<std::int32_t> parse_point_threshold(ByteView data);

}  // namespace verger::streams::detail
