#pragma once

#include "engine/base/bytes.h"
#include "engine/base/types.h"

namespace verger::streams::detail {

/// The metadata of a soft-deleted stream with "$tb" set to `first`; other keys and their order
/// stay.
Bytes undelete_json(ByteView metadata, EventNumber first);

}  // namespace verger::streams::detail
