#pragma once

#include <chrono>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "tests/support/processes/real_cluster.h"

namespace verger::bench {

/// How long one run, or a cluster for it, may take.
inline constexpr std::chrono::seconds kRunLimit{900};

/// Throws where it does not end done within that.
nlohmann::json ended_run(test::RealCluster& cluster, const std::string& id);

/// Of a run, or of a step, that has ended.
double seconds_of(const nlohmann::json& part);

}  // namespace verger::bench
