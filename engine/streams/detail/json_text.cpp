#include "engine/streams/detail/json_text.h"

#include <limits>

namespace verger::streams::detail::json_text {
namespace {

/// [-]digits[.digits][e[±]digits] with a digit somewhere before the exponent.
bool is_float(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&] {
    const auto from = at;
    while (at < text.size() && is_digit(text[at])) {
      ++at;
    }
    return at - from;
  };
  if (at < text.size() && text[at] == '-') {
    ++at;
  }
  auto count = digits();
  if (at < text.size() && text[at] == '.') {
    ++at;
    count += digits();
  }
  if (count == 0) {
    return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) {
      ++at;
    }
    if (digits() == 0) {
      return false;
    }
  }
  return at == text.size();
}

Number decimal(std::string_view characters) {
  const bool negative = characters.starts_with('-');
  const auto digits = characters.substr(negative ? 1 : 0);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
    return {is_float(characters) ? Number::Kind::kFloat : Number::Kind::kNone};
  }
  if (digits.size() > 19) {  // leading zeros cannot bring it here without a minus sign
    return {Number::Kind::kBigInteger};
  }
  std::uint64_t value = 0;
  for (const char c : digits) {
    value = value * 10 + static_cast<std::uint64_t>(digit_value(c));
  }
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value > kMax + (negative ? 1 : 0)) {
    return {Number::Kind::kBigInteger};
  }
  return {Number::Kind::kInteger,
          negative ? static_cast<std::int64_t>(~value + 1) : static_cast<std::int64_t>(value)};
}

}  // namespace

bool is_digit(char c) { return c >= '0' && c <= '9'; }

int digit_value(char c) {
  if (is_digit(c)) {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  if (c >= 'A' && c <= 'F') {
    return c - 'A' + 10;
  }
  return 99;
}

CodePoint decode(std::string_view text) {
  const auto byte = [&](std::size_t n) { return static_cast<std::uint8_t>(text[n]); };
  const auto first = byte(0);
  if (first < 0x80) {
    return {first, 1};
  }
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (length == 0 || first > 0xF4 || text.size() < length) {
    return {};
  }
  std::uint32_t value = first & (0x7FU >> length);
  for (std::size_t n = 1; n < length; ++n) {
    if ((byte(n) & 0xC0U) != 0x80U) {
      return {};
    }
    value = (value << 6U) | (byte(n) & 0x3FU);
  }
  return {value, length};
}

bool is_wide_space(std::uint32_t c) {
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_wide_letter(std::uint32_t c) {
  if (c < 0xC0) {
    return c == 0xAA || c == 0xB5 || c == 0xBA;
  }
  return c != 0xD7 && c != 0xF7 && !is_wide_space(c) && !(c >= 0x2000 && c <= 0x2BFF) &&
         !(c >= 0x3000 && c <= 0x3004) && c < 0xFE00;
}

std::optional<std::int64_t> parse_based(std::string_view digits, unsigned base) {
  std::uint64_t value = 0;
  for (const char c : digits) {
    const auto digit = static_cast<unsigned>(digit_value(c));
    if (digit >= base || value > (std::numeric_limits<std::uint64_t>::max() - digit) / base) {
      return std::nullopt;
    }
    value = value * base + digit;
  }
  return digits.empty() ? std::nullopt : std::optional(static_cast<std::int64_t>(value));
}

Number read_number(std::string_view characters) {
  const bool based = characters.size() > 1 && characters[0] == '0' && characters[1] != '.' &&
                     characters[1] != 'e' && characters[1] != 'E';
  if (!based) {
    return decimal(characters);
  }
  const bool hexadecimal = characters[1] == 'x' || characters[1] == 'X';
  const auto value =
      hexadecimal ? parse_based(characters.substr(2), 16) : parse_based(characters, 8);
  return value ? Number{Number::Kind::kInteger, *value} : Number{};
}

}  // namespace verger::streams::detail::json_text
