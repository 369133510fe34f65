#include <fmt/format.h>
#include <memory>

#include <CLI/CLI.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/operations/planned_run.h"
#include "planner/operations.h"

namespace verger::cli {
namespace {

struct HealOptions : PlannedRun {
  bool existence_filter = false;  ///< the one thing that is healed, said by the operator
};

}  // namespace

void add_heal_command(CLI::App& app, Command& chosen) {
  const auto* operation = planner::find_operation("heal");
  auto options = std::make_shared<HealOptions>();
  auto* command =
      app.add_subcommand("heal", "Restart nodes so that they find streams again that they lost");
  command->footer("Example: verger heal orders --existence-filter --wait");
  add_plan_options(*command, *operation, options->plan,
                   [](std::string_view parameter) { return parameter != "part"; });
  command
      ->add_flag("--existence-filter", options->existence_filter,
                 "What is healed: the nodes whose existence filter lacks streams make it anew")
      ->required();
  command->add_flag("--yes", options->yes, "Do not ask before the plan is carried out");
  add_run_options(*command, *options);
  command->callback([options, operation, &chosen] {
    chosen = [options, operation](const CliContext& context) {
      return plan_and_apply(
          context, *operation, *options,
          fmt::format("restart nodes of {}, one after the other?", options->plan.cluster));
    };
  });
}

}  // namespace verger::cli
