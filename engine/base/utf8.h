#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace verger {

/// Length of the well-formed UTF-8 sequence at the start of `text`, 1 to 4: no overlong form, no
/// surrogate, nothing above U+10FFFF. 0: there is none.
std::size_t utf8_length(std::string_view text);

/// Whether a text comes back unchanged from a reader and writer of UTF-8. Records are parsed and
/// written again by followers and scavenges: another text would change its length there.
bool is_utf8(std::string_view text);

/// `code_point` is at most 0x10FFFF.
void append_utf8(std::string& out, std::uint32_t code_point);

}  // namespace verger
