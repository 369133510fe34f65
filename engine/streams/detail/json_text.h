#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What the characters of lenient JSON mean: code points, white space, letters, numbers, as the
/// server's reader takes them. The grammar is LenientJsonReader's.
namespace verger::streams::detail::json_text {

bool is_digit(char c);
/// 0 to 15; 99 for what is no hexadecimal digit.
int digit_value(char c);

/// One code point of UTF-8 and its length; length 1 and U+FFFD for a broken sequence.
struct CodePoint {
  std::uint32_t value = 0xFFFD;
  std::size_t length = 1;
};
/// The first one of `text`, which is not empty.
CodePoint decode(std::string_view text);

/// White space beyond ASCII.
bool is_wide_space(std::uint32_t code_point);
/// A letter or digit beyond ASCII, by blocks: symbols, punctuation, and what .NET sees as surrogate
/// halves are none.
bool is_wide_letter(std::uint32_t code_point);

/// As Convert.ToInt64(text, base): 64 bits that wrap into the sign.
std::optional<std::int64_t> parse_based(std::string_view digits, unsigned base);

struct Number {
  enum class Kind : std::uint8_t {
    kNone,     ///< no number: the whole text is refused
    kInteger,  ///< fits an i64
    kBigInteger,
    kFloat,
  };
  Kind kind = Kind::kNone;
  std::int64_t integer = 0;  ///< of kInteger
};
/// The characters that a number may consist of, up to one that ends it: decimal, 0x and 0X
/// hexadecimal, octal behind a leading zero.
Number read_number(std::string_view characters);

}  // namespace verger::streams::detail::json_text
