#include "engine/base/quantities.h"

#include <array>
#include <cmath>
#include <fmt/format.h>

namespace verger {

std::string with_separators(std::int64_t number) {
  auto digits = fmt::format("{}", number < 0 ? -number : number);
  for (auto at = static_cast<std::int64_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return number < 0 ? "-" + digits : digits;
}

std::string human_bytes(std::int64_t bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  auto text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) {
    text.resize(text.size() - 2);
  }
  return fmt::format("{} {}", text, kUnits[unit]);
}

std::string counted(std::int64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", with_separators(number), noun, number == 1 ? "" : "s");
}

}  // namespace verger
