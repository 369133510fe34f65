#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace verger::http {

enum class ContentEncoding : std::uint8_t {
  kGzip,     ///< RFC 1952
  kDeflate,  ///< RFC 1951, without a wrapper, as .NET understands the word
};
/// An empty text stays empty.
std::string compressed(std::string_view text, ContentEncoding encoding);

}  // namespace verger::http
