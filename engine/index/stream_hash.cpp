#include "engine/index/stream_hash.h"

#include <array>
#include <bit>

namespace verger::index {
namespace {

constexpr std::uint32_t kPrimeA = 2654435761U;
constexpr std::uint32_t kPrimeB = 2246822519U;
constexpr std::uint32_t kPrimeC = 3266489917U;
constexpr std::uint32_t kPrimeD = 668265263U;
constexpr std::uint32_t kPrimeE = 374761393U;
constexpr std::uint32_t kStreamSeed = 0xC58F1A7BU;
constexpr std::uint32_t kReplacement = 0xFFFD;

using Lanes = std::array<std::uint32_t, 4>;

std::uint32_t word_at(ByteView bytes, std::size_t at) {
  return load_le<std::uint32_t>(bytes.data() + at);
}

std::uint32_t xx_short(ByteView bytes, std::uint32_t seed) {
  const auto n = bytes.size();
  std::uint32_t sum = kPrimeE;
  std::uint32_t index = seed + kPrimeA;
  std::size_t at = 0;
  // Strictly below: the last one to four bytes are always taken one by one.
  while (at + 4 < n) {
    sum += word_at(bytes, at) + index;
    ++index;
    sum += std::rotl(sum, 17) * kPrimeD;
    sum *= kPrimeA;
    at += 4;
  }
  while (at < n) {
    sum += std::to_integer<std::uint32_t>(bytes[at]) + index;
    ++index;
    sum *= kPrimeA;
    ++at;
  }
  sum += static_cast<std::uint32_t>(n);
  sum ^= sum >> 15U;
  sum *= kPrimeB;
  sum ^= sum >> 13U;
  sum *= kPrimeC;
  sum ^= sum >> 16U;
  return sum;
}

void add_rotated(Lanes& lanes, const std::array<int, 4>& rotations) {
  for (std::size_t k = 0; k < 4; ++k) {
    lanes[k] += std::rotl(lanes[k], rotations[k]);
  }
}

void multiply(Lanes& lanes, std::uint32_t factor) {
  for (auto& lane : lanes) {
    lane *= factor;
  }
}

std::uint32_t xx_long(ByteView bytes, std::uint32_t seed) {
  const auto n = static_cast<std::uint32_t>(bytes.size());
  Lanes v{};
  v[0] = seed + kPrimeA;
  v[1] = v[0] * kPrimeB + n;
  v[2] = v[1] * kPrimeC;
  v[3] = v[2] * kPrimeD;
  const auto limit = bytes.size() - 16;
  constexpr std::array<int, 4> kLoop{13, 11, 17, 19};
  for (std::size_t at = 0; at < limit; at += 16) {
    for (std::size_t k = 0; k < 4; ++k) {
      v[k] += std::rotl(v[k], kLoop[k]);
      v[k] *= kPrimeA;
      v[k] += word_at(bytes, at + 4 * k);
    }
  }
  // The last 16 bytes once more, whether or not the loop has met them.
  add_rotated(v, {17, 19, 13, 11});
  multiply(v, kPrimeA);
  for (std::size_t k = 0; k < 4; ++k) {
    v[k] += word_at(bytes, limit + 4 * k);
  }
  multiply(v, kPrimeB);
  add_rotated(v, {11, 17, 19, 13});
  multiply(v, kPrimeC);
  auto h = v[0] + std::rotl(v[1], 3) + std::rotl(v[2], 6) + std::rotl(v[3], 9);
  h ^= h >> 11U;
  h += (kPrimeD + n) * kPrimeA;
  h ^= h >> 15U;
  h *= kPrimeB;
  h ^= h >> 13U;
  return h;
}

/// Decodes one code point at `at` and moves on; what is not UTF-8 becomes U+FFFD.
std::uint32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto lead = static_cast<unsigned char>(text[at++]);
  if (lead < 0x80) {
    return lead;
  }
  int more = 0;
  std::uint32_t code = 0;
  std::uint32_t smallest = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    more = 1, code = lead & 0x1FU, smallest = 0x80;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    more = 2, code = lead & 0x0FU, smallest = 0x800;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    more = 3, code = lead & 0x07U, smallest = 0x10000;
  } else {
    return kReplacement;
  }
  for (; more > 0; --more) {
    if (at >= text.size() || (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U) {
      return kReplacement;
    }
    code = (code << 6U) | (static_cast<unsigned char>(text[at++]) & 0x3FU);
  }
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < smallest || code > 0x10FFFF || surrogate ? kReplacement : code;
}

/// UTF-16LE of `name`, which is at most twice as long, written to `out`; returns the size.
std::size_t to_utf16(std::string_view name, std::byte* out) {
  // Names are nearly always ASCII, which only widens: loops the compiler makes wide.
  unsigned char all = 0;
  for (const char c : name) {
    all |= static_cast<unsigned char>(c);
  }
  if (all < 0x80) {
    for (std::size_t i = 0; i < name.size(); ++i) {
      store_le(out + 2 * i, static_cast<std::uint16_t>(name[i]));
    }
    return 2 * name.size();
  }
  std::size_t size = 0;
  const auto put = [&](std::uint32_t unit) {
    store_le(out + size, static_cast<std::uint16_t>(unit));
    size += 2;
  };
  for (std::size_t at = 0; at < name.size();) {
    const auto code = next_code_point(name, at);
    if (code < 0x10000) {
      put(code);
    } else {
      put(0xD800U + ((code - 0x10000U) >> 10U));
      put(0xDC00U + ((code - 0x10000U) & 0x3FFU));
    }
  }
  return size;
}

StreamHash hash_utf16(ByteView bytes) {
  return StreamHash((std::uint64_t{xx_draft(bytes, kStreamSeed)} << 32U) |
                    murmur3(bytes, kStreamSeed));
}

}  // namespace

std::uint32_t xx_draft(ByteView bytes, std::uint32_t seed) {
  return bytes.size() < 16 ? xx_short(bytes, seed) : xx_long(bytes, seed);
}

std::uint32_t murmur3(ByteView bytes, std::uint32_t seed) {
  constexpr std::uint32_t kC1 = 0xCC9E2D51U;
  constexpr std::uint32_t kC2 = 0x1B873593U;
  auto h = seed;
  const auto mix = [](std::uint32_t k) { return std::rotl(k * kC1, 15) * kC2; };
  std::size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) {
    h ^= mix(word_at(bytes, at));
    h = std::rotl(h, 13) * 5 + 0xE6546B64U;
  }
  if (at < bytes.size()) {
    std::uint32_t tail = 0;
    for (auto i = bytes.size(); i > at; --i) {
      tail = (tail << 8U) | std::to_integer<std::uint32_t>(bytes[i - 1]);
    }
    h ^= mix(tail);
  }
  h ^= static_cast<std::uint32_t>(bytes.size());
  h ^= h >> 16U;
  h *= 0x85EBCA6BU;
  h ^= h >> 13U;
  h *= 0xC2B2AE35U;
  h ^= h >> 16U;
  return h;
}

StreamHash hash_stream(std::string_view name) {
  std::array<std::byte, 1024> buffer;
  if (name.size() * 2 <= buffer.size()) {
    return hash_utf16({buffer.data(), to_utf16(name, buffer.data())});
  }
  Bytes long_name(name.size() * 2);
  return hash_utf16({long_name.data(), to_utf16(name, long_name.data())});
}

}  // namespace verger::index
