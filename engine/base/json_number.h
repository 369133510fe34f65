#pragma once

#include <concepts>
#include <cstdint>
#include <stdexcept>
#include <utility>

namespace verger {

/// The whole number in a parsed JSON value (nlohmann's). Its own conversion to an integer does not
/// look whether a number fits: 1e300 is undefined behaviour, 2^32 + 1 becomes 1. Throws
/// std::out_of_range for what is not a whole number within T.
template <std::integral T, class Json>
T json_integer(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.template get<std::uint64_t>();
    if (std::in_range<T>(number)) {
      return static_cast<T>(number);
    }
  } else if (value.is_number_integer()) {
    const auto number = value.template get<std::int64_t>();
    if (std::in_range<T>(number)) {
      return static_cast<T>(number);
    }
  }
  throw std::out_of_range("not a whole number, or out of range");
}

/// The same for a member of an object, `otherwise` when it is not there.
template <std::integral T, class Json>
T json_integer_or(const Json& object, const char* key, T otherwise) {
  const auto found = object.find(key);
  return found == object.end() ? otherwise : json_integer<T>(*found);
}

}  // namespace verger
