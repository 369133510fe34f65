#pragma once

#include <string_view>

#include "controller/executor/step_kind.h"

/// What became of another step of the same run, by its id.
namespace verger::controller::steps {

/// A step whose work is there, or may be: it has acted, and is not seen undone.
[[nodiscard]] bool stands(const StepContext& context, std::string_view step);
/// A step that could not be undone.
[[nodiscard]] bool was_given_up(const StepContext& context, std::string_view step);

}  // namespace verger::controller::steps
