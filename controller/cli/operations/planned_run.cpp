#include "controller/cli/operations/planned_run.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/confirmation.h"
#include "controller/cli/json_text.h"
#include "controller/cli/plan_text.h"

namespace verger::cli {

void add_run_options(CLI::App& command, PlannedRun& options) {
  command.add_flag("--plan", options.plan_only, "Make the plan alone, and do nothing");
  add_wait_options(command, options.apply);
}

int plan_and_apply(const CliContext& context, const planner::Operation& operation,
                   PlannedRun options, const std::string& question) {
  const auto plan = request_plan(context, operation, options.plan);
  if (!plan) {
    return context.fail(plan.error());
  }
  if (options.plan_only || (!question.empty() && !context.json)) {
    print_plan(context, *plan);
  }
  if (options.plan_only) {
    print_next(context, *plan);
    return kDone;
  }
  if (!question.empty() && !options.yes &&
      !confirmed(context, question + " [y/N] ", {"y", "Y", "yes"})) {
    return kRefused;
  }
  options.apply.hash = text_of(*plan, "hash");
  return apply_plan(context, options.apply);
}

}  // namespace verger::cli
