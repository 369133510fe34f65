#pragma once

#include <cstdint>
#include <string_view>

#include "engine/log/record.h"

namespace verger::log::detail {

/// UTF-16 code units of a valid UTF-8 text: the server limits sizes by them.
std::int64_t utf16_length(std::string_view utf8);
/// What the server compares with the limit of 16 MiB, on writing and on reading.
std::int64_t prepare_weight(const Prepare& prepare);

}  // namespace verger::log::detail
