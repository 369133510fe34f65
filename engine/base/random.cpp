#include "engine/base/random.h"

#include <array>
#include <bit>
#include <cerrno>
#include <sys/random.h>
#include <utility>

#include "engine/base/assert.h"
#include "engine/base/bytes.h"

namespace verger {
namespace {

/// Fetches 256 bytes at a time for each thread: a node needs a GUID for each event it writes.
class SystemRandom final : public Random {
 public:
  std::uint64_t next() override {
    thread_local Supply supply;
    if (supply.used == supply.values.size()) {
      ssize_t got = -1;
      do {
        // Up to 256 bytes come whole once the kernel's pool is ready; before that it blocks.
        got = ::getrandom(supply.values.data(), sizeof supply.values, 0);
      } while (got < 0 && errno == EINTR);
      VERGER_ASSERT(got == sizeof supply.values);
      supply.used = 0;
    }
    // What was given is not kept: a value may become a key.
    return std::exchange(supply.values[supply.used++], 0);
  }

 private:
  struct Supply {
    std::array<std::uint64_t, 32> values{};
    std::size_t used = values.size();
  };
};

std::uint64_t split_mix(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

}  // namespace

std::uint64_t Random::below(std::uint64_t bound) {
  VERGER_ASSERT(bound > 0);
  // Values under 2^64 mod bound would make the small remainders likelier.
  const std::uint64_t uneven = (0 - bound) % bound;
  std::uint64_t value = next();
  while (value < uneven) {
    value = next();
  }
  return value % bound;
}

Uuid Random::uuid() {
  Uuid uuid;
  store_le(uuid.bytes.data(), next());
  store_le(uuid.bytes.data() + 8, next());
  // The version is the first digit of the third group, the variant the first of the fourth.
  uuid.bytes[7] = (uuid.bytes[7] & std::byte{0x0f}) | std::byte{0x40};
  uuid.bytes[8] = (uuid.bytes[8] & std::byte{0x3f}) | std::byte{0x80};
  return uuid;
}

Random& system_random() {
  static SystemRandom random;
  return random;
}

SeededRandom::SeededRandom(std::uint64_t seed) : state_{} {
  for (auto& word : state_) {
    word = split_mix(seed);
  }
}

// xoshiro256** 1.0 by David Blackman and Sebastiano Vigna (public domain).
std::uint64_t SeededRandom::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17U;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

}  // namespace verger
