#pragma once

#include "tests/simulation/full/simulation.h"

namespace verger::sim {

/// The options and results of the full simulation, for a cluster of models: real controllers, real
/// agents, models in place of nodes. Everything that happens follows from the options. One thread
/// at a time.
RunResult simulate_control(const RunOptions& options);

/// Names of the ways the programs can be broken on purpose.
std::vector<std::string_view> broken_control_builds();

}  // namespace verger::sim
