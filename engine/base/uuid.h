#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace verger {

/// A GUID. On disk it has the mixed-endian byte order of the server (`bytes`); as text it is
/// lower-case 8-4-4-4-12.
struct Uuid {
  /// Disk order: the first three groups of the text are little-endian.
  std::array<std::byte, 16> bytes{};

  static Uuid from_disk(std::span<const std::byte, 16> disk);
  /// Accepts either case. Error: kInvalidArgument.
  static Result<Uuid> parse(std::string_view text);
  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] bool is_zero() const { return *this == Uuid{}; }
  friend auto operator<=>(const Uuid&, const Uuid&) = default;
};

}  // namespace verger
