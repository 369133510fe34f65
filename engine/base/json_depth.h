#pragma once

#include <cstddef>
#include <string_view>

namespace verger {

/// Deepest nesting that is accepted in JSON from outside; the server's limit, too.
inline constexpr std::size_t kMaxJsonDepth = 64;

/// The deepest nesting of brackets outside strings: right for valid JSON, and never less than what
/// a parser meets before it finds other text invalid. Writing, copying and walking a parsed value
/// costs stack for each level, so look before parsing.
std::size_t json_depth(std::string_view text);

}  // namespace verger
