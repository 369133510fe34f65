#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace verger {

/// The number that is all of `text`: decimal, without "+" and blanks, a "-" only where T has a
/// sign. nullopt: it is none, or one that T does not hold.
template <class T>
std::optional<T> number_from_text(std::string_view text) {
  T value{};
  const auto* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

}  // namespace verger
