#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <ostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/json_text.h"
#include "controller/cli/plan_text.h"
#include "controller/cli/run_watch.h"
#include "controller/cli/table.h"
#include "controller/cli/times.h"
#include "engine/base/number_from_text.h"
#include "planner/operations.h"

namespace verger::cli {
namespace {

using nlohmann::json;

/// What is not given is as the policy says, or the controller.
struct PlanOptions {
  std::string cluster;
  std::string policy;
  /// By field of the operation that a request may name; empty: not given.
  std::map<const planner::Field*, std::string> parameters;
};

/// What stands between the plan and its run, or how to start it.
void print_next(const CliContext& context, const json& plan) {
  const auto pause = plan.value("cluster_pause", json());
  const auto cluster = text_of(plan, "cluster");
  if (pause.is_object()) {
    const auto until = text_of(pause, "until");
    const auto reason = text_of(pause, "reason");
    context.out << fmt::format(
        "nothing has been touched; cluster {0} is paused {1}{2}, and no run starts on it before. "
        "End the pause with: verger cluster resume {0}\n",
        cluster, until.empty() ? "until it is resumed" : "until " + to_the_second(until),
        reason.empty() ? "" : fmt::format(" ({})", reason));
    return;
  }
  context.out << fmt::format(
      "nothing has been touched; carry it out with: verger apply {} --wait\n",
      text_of(plan, "hash").substr(0, 12));
}

int make_plan(const CliContext& context, const planner::Operation& operation,
              const PlanOptions& options) {
  auto parameters = json::object();
  for (const auto& [field, text] : options.parameters) {
    if (text.empty()) {
      continue;
    }
    auto& value = parameters[planner::api_name(*field)];
    if (field->type == planner::Field::Type::kChoice ||
        field->type == planner::Field::Type::kText) {
      value = text;
    } else if (field->type == planner::Field::Type::kBoolean) {
      value = text == "true";
    } else {
      value = number_from_text<std::int64_t>(text).value_or(0);  // CLI11 has looked at it
    }
  }
  json body{{"operation", operation.name}, {"parameters", std::move(parameters)}};
  if (!options.policy.empty()) {
    body["policy"] = options.policy;
  }
  const auto plan =
      context.api.post("/clusters/" + http::percent_encode(options.cluster) + "/plans", body);
  if (!plan) {
    return context.fail(plan.error());
  }
  if (context.json) {
    context.out << plan->dump() << '\n';
  } else {
    print_plan(context, *plan);
    print_next(context, *plan);
  }
  return kDone;
}

int show_plan(const CliContext& context, const std::string& hash) {
  const auto plan = context.api.get("/plans/" + http::percent_encode(hash));
  if (!plan) {
    return context.fail(plan.error());
  }
  if (context.json) {
    context.out << plan->dump() << '\n';
  } else {
    print_plan(context, *plan);
  }
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

struct ApplyOptions {
  std::string hash;
  bool wait = false;
  int wait_seconds = 24 * 3600;
};

int apply_plan(const CliContext& context, const ApplyOptions& options) {
  const auto run =
      context.api.post("/plans/" + http::percent_encode(options.hash) + "/apply", json::object());
  if (!run) {
    return context.fail(run.error());
  }
  const auto id = text_of(*run, "id");
  if (options.wait) {
    return watch_run(context, id, std::chrono::seconds(options.wait_seconds));
  }
  if (context.json) {
    context.out << run->dump() << '\n';
  } else {
    context.out << fmt::format("run {} has started; follow it with: verger run watch {}\n", id,
                               id.substr(0, 12));
  }
  return kDone;
}

/// "throttle_percent" -> "--throttle-percent"
std::string option_name(const planner::Field& field) {
  auto out = "--" + planner::api_name(field);
  std::ranges::replace(out, '_', '-');
  return out;
}

/// `verger plan OPERATION`, with what the operation's fields let a request say.
void add_operation(CLI::App& plan, const planner::Operation& operation, Command& chosen) {
  auto options = std::make_shared<PlanOptions>();
  auto* command = plan.add_subcommand(std::string(operation.name), std::string(operation.summary));
  command->footer(
      fmt::format("Example: verger plan {} orders {}", operation.name, operation.example));
  command->add_option("CLUSTER", options->cluster)->required();
  command->add_option("--policy", options->policy,
                      "As this policy would plan it: its parameters, gates, deadlines, windows");
  for (const auto* field : planner::fields_of(operation)) {
    if (field->request != planner::Field::Request::kAccepted) {
      continue;
    }
    auto* option = command->add_option(option_name(*field), options->parameters[field],
                                       std::string(field->help));
    switch (field->type) {
      case planner::Field::Type::kChoice:
        option->check(
            CLI::IsMember(std::vector<std::string>(field->choices.begin(), field->choices.end())));
        break;
      case planner::Field::Type::kText:
        break;
      case planner::Field::Type::kBoolean:
        option->check(CLI::IsMember(std::vector<std::string>{"true", "false"}));
        break;
      case planner::Field::Type::kInteger:
        option->check(CLI::Range(field->low, field->high))->type_name("INT");
        break;
      case planner::Field::Type::kMilliseconds:
      case planner::Field::Type::kBytes:
      case planner::Field::Type::kQueries:
        option->check(CLI::NonNegativeNumber);
        break;
    }
  }
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
  apply->add_flag("--wait", applying->wait, "Follow the run until it ends");
  apply->add_option("--wait-seconds", applying->wait_seconds, "Give up following after this long");
  apply->callback([applying, &chosen] {
    chosen = [applying](const CliContext& context) { return apply_plan(context, *applying); };
  });
}

}  // namespace verger::cli
