#include <memory>

#include <CLI/CLI.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/operations/planned_run.h"
#include "planner/operations.h"

namespace verger::cli {

void add_verify_command(CLI::App& app, Command& chosen) {
  const auto* operation = planner::find_operation("verify");
  auto options = std::make_shared<PlannedRun>();
  auto* command = app.add_subcommand(
      "verify", "Look for damage in the files of a cluster's running nodes, through their agents");
  command->footer("Example: verger verify orders --throttle-percent 30 --wait");
  add_plan_options(*command, *operation, options->plan);
  add_run_options(*command, *options);
  command->callback([options, operation, &chosen] {
    chosen = [options, operation](const CliContext& context) {
      return plan_and_apply(context, *operation, *options, "");
    };
  });
}

}  // namespace verger::cli
