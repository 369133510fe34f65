#pragma once

#include <string_view>

namespace verger::streams::detail {

/// Records are parsed and written again by followers and scavenges: text that is not valid UTF-8
/// would change its length there.
bool is_valid_utf8(std::string_view text);

}  // namespace verger::streams::detail
