#include "controller/executor/other_steps.h"

#include <optional>

namespace verger::controller::steps {
namespace {

std::optional<StepState> state_of_other(const StepContext& context, std::string_view step) {
  return context.state_of ? context.state_of(step) : std::nullopt;
}

}  // namespace

bool stands(const StepContext& context, std::string_view step) {
  const auto state = state_of_other(context, step);
  const bool undone =
      state && (state->undo_end ? state->undo_end->undone : state->status == StepStatus::kUndone);
  return state && state->attempt > 0 && !undone;
}

bool was_given_up(const StepContext& context, std::string_view step) {
  const auto state = state_of_other(context, step);
  return state && state->undo_end && !state->undo_end->undone;
}

}  // namespace verger::controller::steps
