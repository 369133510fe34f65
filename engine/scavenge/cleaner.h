#pragma once

#include "engine/scavenge/context.h"

namespace verger::scavenge {

/// Deletes the state of finished streams, if no chunk has any weight left.
class Cleaner final : public StageTask {
 public:
  explicit Cleaner(RunContext& context);
  Result<StepOutcome> step(Budget budget) override;

 private:
  RunContext& context_;
};

}  // namespace verger::scavenge
