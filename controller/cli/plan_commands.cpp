#include <algorithm>
#include <fmt/format.h>
#include <ostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/json_text.h"
#include "controller/cli/plan_request.h"
#include "controller/cli/plan_text.h"
#include "controller/cli/table.h"
#include "controller/cli/times.h"
#include "planner/operations.h"

namespace verger::cli {
namespace {

using nlohmann::json;

int make_plan(const CliContext& context, const planner::Operation& operation,
              const PlanOptions& options) {
  const auto plan = request_plan(context, operation, options);
  if (!plan) {
    return context.fail(plan.error());
  }
  print_plan(context, *plan);
  print_next(context, *plan);
  return kDone;
}

int show_plan(const CliContext& context, const std::string& hash) {
  const auto plan = context.api.get("/plans/" + http::percent_encode(hash));
  if (!plan) {
    return context.fail(plan.error());
  }
  print_plan(context, *plan);
  return kDone;
}

int list_plans(const CliContext& context, const std::string& cluster) {
  const auto answer =
      context.api.get_all("/clusters/" + http::percent_encode(cluster) + "/plans", "plans");
  if (!answer) {
    return context.fail(answer.error());
  }
  Table table({{"plan", Table::Align::kId},
               {"operation"},
               {"policy"},
               {"made"},
               {"by"},
               {"steps", Table::Align::kRight},
               {"state", Table::Align::kWrap}});
  for (const auto& plan : list_of(*answer, "plans")) {
    if (context.json) {
      context.out << plan.dump() << '\n';
      continue;
    }
    std::size_t steps = 0;
    for (const auto& stage : list_of(plan, "stages")) {
      steps += list_of(stage, "steps").size();
    }
    const auto policy = text_of(plan, "awaits_approval_of");
    table.add({text_of(plan, "hash"), text_of(plan, "operation"), text_of(plan, "policy"),
               time_of(plan, "created_at"), text_of(plan, "created_by"), std::to_string(steps),
               policy.empty()
                   ? "-"
                   : "awaits approval: verger apply " + text_of(plan, "hash").substr(0, 12)});
  }
  if (!context.json) {
    context.print(table);
  }
  return kDone;
}

/// `verger plan OPERATION`, with what the operation's fields let a request say.
void add_operation(CLI::App& plan, const planner::Operation& operation, Command& chosen) {
  auto options = std::make_shared<PlanOptions>();
  auto* command = plan.add_subcommand(std::string(operation.name), std::string(operation.summary));
  command->footer(
      fmt::format("Example: verger plan {} orders {}", operation.name, operation.example));
  add_plan_options(*command, operation, *options);
  command->callback([options, &operation, &chosen] {
    chosen = [options, &operation](const CliContext& context) {
      return make_plan(context, operation, *options);
    };
  });
}

}  // namespace

void add_plan_commands(CLI::App& app, Command& chosen) {
  auto* plan = app.add_subcommand("plan", "Plans: what would be done, in which order, and why");
  plan->require_subcommand(1);

  for (const auto* operation : planner::operations()) {
    add_operation(*plan, *operation, chosen);
  }

  auto hash = std::make_shared<std::string>();
  auto* show = plan->add_subcommand("show", "One plan");
  show->add_option("HASH", *hash, "The plan's hash, or its first digits")->required();
  show->callback([hash, &chosen] {
    chosen = [hash](const CliContext& context) { return show_plan(context, *hash); };
  });
  auto* list = plan->add_subcommand("list", "The plans made for a cluster");
  list->add_option("CLUSTER", *hash)->required();
  list->callback([hash, &chosen] {
    chosen = [hash](const CliContext& context) { return list_plans(context, *hash); };
  });

  auto applying = std::make_shared<ApplyOptions>();
  auto* apply = app.add_subcommand("apply", "Carry a plan out");
  apply->footer("Example: verger apply 3f2a90cc41d7 --wait");
  apply->add_option("HASH", applying->hash, "The plan's hash, or its first digits")->required();
  add_wait_options(*apply, *applying);
  apply->callback([applying, &chosen] {
    chosen = [applying](const CliContext& context) { return apply_plan(context, *applying); };
  });
}

}  // namespace verger::cli
