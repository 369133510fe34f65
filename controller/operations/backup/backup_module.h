#pragma once

#include <span>
#include <vector>

#include <nlohmann/json.hpp>

#include "controller/operations/operation_module.h"

/// Backups of a cluster's nodes in repositories of their agents (planner/backup).
namespace verger::controller::backups {

const OperationModule& backup_module();

nlohmann::json report(const RunState& run, nlohmann::json timeline);
std::vector<OperationMetric> metrics(std::span<const std::shared_ptr<const RunSummary>> runs);

}  // namespace verger::controller::backups
