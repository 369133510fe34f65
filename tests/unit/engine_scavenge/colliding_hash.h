#pragma once

#include <string_view>

#include "engine/index/stream_hash.h"

namespace verger::scavenge {

/// Streams whose names agree up to the first '|' share a hash.
inline StreamHash colliding_hash(std::string_view name) {
  return index::hash_stream(name.substr(0, name.find('|')));
}

}  // namespace verger::scavenge
