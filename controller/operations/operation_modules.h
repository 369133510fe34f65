#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "controller/operations/operation_module.h"

/// The table of what this controller can do.
namespace verger::controller {

class Executor;

/// One for each of planner::operations().
std::span<const OperationModule* const> operation_modules();
/// nullptr: there is none of that name.
const OperationModule* find_operation_module(std::string_view name);

/// The kinds that are no operation's own, those of all operations, and their preflights.
StepKinds standard_step_kinds(const std::shared_ptr<const OperationSettings>& settings =
                                  std::make_shared<OperationSettings>());

/// For OperationSettings::kept_by_runs.
std::vector<std::map<std::string, std::string>> kept_by_runs_of(const Executor& executor,
                                                                std::string_view cluster);

}  // namespace verger::controller
