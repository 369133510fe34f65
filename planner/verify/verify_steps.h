#pragma once

#include <string_view>

/// Names that plans of a verification share with the code that carries them out. They are parts of
/// plans, hashes and journals.
namespace verger::planner::verify_steps {

/// On a node, whose agent looks for damage in its files beside the running server. What it finds is
/// what the run ends with differences for. Parameters: `bytesPerSecond`, `onClose`, `onPause`,
/// `throttlePercent`.
inline constexpr std::string_view kVerify = "verify";

}  // namespace verger::planner::verify_steps
