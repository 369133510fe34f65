#pragma once

#include "engine/base/digest.h"
#include "engine/base/result.h"
#include "engine/log/chunk.h"

namespace verger::log::detail {

/// A completed chunk's bytes have another MD5 than its footer says.
Error wrong_checksum(const Chunk& chunk, const Md5Digest& computed);

}  // namespace verger::log::detail
