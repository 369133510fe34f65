#include "tests/bench/cluster/ended_run.h"

#include <stdexcept>

#include <nlohmann/json.hpp>

#include "engine/base/clock.h"

namespace verger::bench {

nlohmann::json ended_run(test::RealCluster& cluster, const std::string& id) {
  auto run = cluster.wait_for_run(id, kRunLimit);
  if (!run.is_object() || run.at("state") != "done") {
    throw std::runtime_error("the run is not done: " + run.dump(1) + cluster.logs());
  }
  return run;
}

double seconds_of(const nlohmann::json& part) {
  const auto begin = parse_ticks(part.at("started_at").get<std::string>());
  const auto end = parse_ticks(part.at("finished_at").get<std::string>());
  if (!begin || !end) {
    throw std::runtime_error("no times: " + part.dump());
  }
  return static_cast<double>(end->value() - begin->value()) / 1e7;
}

}  // namespace verger::bench
