#pragma once

#include <cstdint>

#include "engine/base/uuid.h"

namespace verger {

/// The only source of chance. Comes in through constructors. Not safe from several threads unless
/// the implementation says so.
class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t next() = 0;
  /// Evenly from [0, bound); bound > 0.
  std::uint64_t below(std::uint64_t bound);
  /// A random (version 4) GUID.
  Uuid uuid();
};

/// The operating system's randomness; safe from any thread.
Random& system_random();

/// xoshiro256**: the same seed gives the same numbers on every machine.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed);
  std::uint64_t next() override;

 private:
  std::uint64_t state_[4];
};

}  // namespace verger
