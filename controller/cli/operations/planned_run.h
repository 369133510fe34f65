#pragma once

#include <string>

#include "controller/cli/plan_request.h"

/// A command that makes a plan and carries it out.
namespace verger::cli {

struct PlannedRun {
  PlanOptions plan{};
  ApplyOptions apply{};
  bool plan_only = false;
  bool yes = false;
};

/// --plan, and those of a run.
void add_run_options(CLI::App& command, PlannedRun& options);
/// Makes the plan, shows it where a question is asked, and carries it out unless only the plan is
/// wanted or the operator says no to `question` (empty: none is asked). Gives the exit code.
int plan_and_apply(const CliContext& context, const planner::Operation& operation,
                   PlannedRun options, const std::string& question);

}  // namespace verger::cli
