#include "engine/scavenge/cleaner.h"

#include "engine/base/failpoint.h"

namespace verger::scavenge {

Cleaner::Cleaner(RunContext& context) : context_(context) {}

Result<StepOutcome> Cleaner::step(Budget /*budget*/) {
  auto& state = context_.state;
  VERGER_RETURN_IF_ERROR(context_.check_stop());
  VERGER_RETURN_IF_ERROR(state.begin());
  VERGER_TRY(const bool weight_left, state.any_weight());
  if (weight_left) {
    if (context_.options.unsafe_ignore_hard_delete) {
      return Error{Errc::kCorruption,
                   "weight is left in a chunk although every chunk was executed: tombstones may "
                   "have gone before their streams' events"};
    }
    context_.parts.out.info(
        "SCAVENGING: chunks below the threshold hold records to remove: stream data is kept");
  } else {
    VERGER_RETURN_IF_ERROR(state.delete_metastreams());
    VERGER_RETURN_IF_ERROR(context_.check_stop());
    VERGER_RETURN_IF_ERROR(state.delete_originals(context_.options.unsafe_ignore_hard_delete));
  }
  VERGER_RETURN_IF_ERROR(
      state.set_checkpoint({.point = context_.point, .stage = Stage::kCleaning, .done_chunk = {}}));
  VERGER_FAILPOINT("scavenge.clean.before-commit");
  VERGER_RETURN_IF_ERROR(state.commit());
  return StepOutcome{StepOutcome::Kind::kDone, {}};
}

}  // namespace verger::scavenge
