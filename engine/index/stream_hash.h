#pragma once

#include <cstdint>
#include <string_view>

#include "engine/base/bytes.h"
#include "engine/base/types.h"

namespace verger::index {

/// The 64-bit hash of a stream's UTF-8 name as the index uses it: an early XX variant over UTF-16LE
/// in the high half, Murmur3 in the low half (docs/formats/index.md, with vectors).
StreamHash hash_stream(std::string_view name);

/// Tests replace it to provoke collisions.
using HashFunction = StreamHash (*)(std::string_view name);

std::uint32_t xx_draft(ByteView bytes, std::uint32_t seed);
std::uint32_t murmur3(ByteView bytes, std::uint32_t seed);

}  // namespace verger::index
