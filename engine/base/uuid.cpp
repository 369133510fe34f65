#include "engine/base/uuid.h"

#include <algorithm>
#include <utility>

namespace verger {
namespace {

// Index into Uuid::bytes of each byte of the text, left to right: .NET's Guid.ToByteArray order.
constexpr std::array<std::size_t, 16> kTextOrder{3, 2, 1,  0,  5,  4,  7,  6,
                                                 8, 9, 10, 11, 12, 13, 14, 15};

constexpr bool dash_before(std::size_t byte) {
  return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  if (c >= 'A' && c <= 'F') {
    return c - 'A' + 10;
  }
  return -1;
}

}  // namespace

Uuid Uuid::from_disk(std::span<const std::byte, 16> disk) {
  Uuid uuid;
  std::ranges::copy(disk, uuid.bytes.begin());
  return uuid;
}

Result<Uuid> Uuid::parse(std::string_view text) {
  const auto refuse = [&]() -> Error {
    return {Errc::kInvalidArgument,
            "\"" + std::string(text.substr(0, 64)) +
                "\" is not a GUID (expected 8-4-4-4-12 hexadecimal digits)"};
  };
  if (text.size() != 36) {
    return refuse();
  }
  Uuid uuid;
  std::size_t at = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    if (dash_before(i) && text[at++] != '-') {
      return refuse();
    }
    const int high = hex_value(text[at++]);
    const int low = hex_value(text[at++]);
    if (high < 0 || low < 0) {
      return refuse();
    }
    uuid.bytes[kTextOrder[i]] = static_cast<std::byte>(high * 16 + low);
  }
  return uuid;
}

std::string Uuid::to_string() const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(36);
  for (std::size_t i = 0; i < 16; ++i) {
    if (dash_before(i)) {
      text += '-';
    }
    const auto byte = std::to_integer<unsigned>(bytes[kTextOrder[i]]);
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

}  // namespace verger
