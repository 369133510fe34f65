#pragma once

#include <chrono>
#include <cstdint>

#include "engine/base/result.h"

namespace verger {

/// How much one step may do: `units` is about one record or one index entry each. A step does at
/// least one unit, and may go a little over.
struct Budget {
  std::uint32_t units = 4096;
};

struct StepOutcome {
  enum class Kind : std::uint8_t {
    kMore,  ///< call step() again
    kRest,  ///< call step() again after `rest` (throttling)
    kDone,
  };
  Kind kind = Kind::kMore;
  std::chrono::milliseconds rest{0};
};

/// A long piece of engine work without a thread, a sleep or a loop of its own: production drives it
/// from a pool, the simulation from its own loop. One thread at a time. After an error or kDone it
/// must not be stepped again. Destroying it early abandons it cleanly: what is on disk can be
/// resumed by a new job.
class Job {
 public:
  virtual ~Job() = default;
  virtual Result<StepOutcome> step(Budget budget) = 0;
};

}  // namespace verger
