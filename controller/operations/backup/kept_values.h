#pragma once

#include <string_view>

namespace verger::controller::backups {

/// Kept of a run (kKeptValues of run_state.h), beside kResultValue {"at", "generation", "node",
/// "bytes"}: the last drill that passed, {"at", "generation", "seconds"}.
inline constexpr std::string_view kDrillKept = "kept/drill";

}  // namespace verger::controller::backups
