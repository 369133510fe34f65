#include <fmt/format.h>
#include <memory>
#include <optional>
#include <ostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/confirmation.h"
#include "controller/cli/json_text.h"
#include "controller/cli/plan_request.h"
#include "controller/cli/plan_text.h"

// What `verger plan` and `verger apply` do, under the noun that one looks for in a disaster, and
// with a look at the cluster's name before anything is replaced.
namespace verger::cli {
namespace {

using nlohmann::json;

const planner::Operation& restore_operation() {
  static const auto& kOperation = *planner::find_operation("restore");
  return kOperation;
}

struct RestoreOptions {
  PlanOptions plan{};
  ApplyOptions apply{};
  bool yes = false;
};

int plan_restore(const CliContext& context, const RestoreOptions& options) {
  const auto plan = request_plan(context, restore_operation(), options.plan);
  if (!plan) {
    return context.fail(plan.error());
  }
  print_plan(context, *plan);
  if (!context.json) {
    context.out << fmt::format(
        "nothing has been touched; carry it out with: verger restore apply "
        "{} {} --wait\n",
        options.plan.cluster, text_of(*plan, "hash").substr(0, 12));
  }
  return kDone;
}

/// The plan of the hash, of this cluster and this operation; nullopt: `status` says why not.
std::optional<json> find_plan(const CliContext& context, const RestoreOptions& options,
                              int& status) {
  auto plan = context.api.get("/plans/" + http::percent_encode(options.apply.hash));
  if (!plan) {
    status = context.fail(plan.error());
    return std::nullopt;
  }
  if (text_of(*plan, "operation") != restore_operation().name ||
      text_of(*plan, "cluster") != options.plan.cluster) {
    context.err << fmt::format(
        "verger: plan {} is of the operation {} on cluster {}, not of a restore of {}; nothing was "
        "touched\n",
        text_of(*plan, "hash").substr(0, 12), text_of(*plan, "operation"),
        text_of(*plan, "cluster"), options.plan.cluster);
    status = kRefused;
    return std::nullopt;
  }
  return *std::move(plan);
}

int apply_restore(const CliContext& context, const RestoreOptions& options) {
  int status = kDone;
  const auto plan = find_plan(context, options, status);
  if (!plan) {
    return status;
  }
  const auto scope = text_of(plan->value("parameters", json::object()), "scope");
  if (!context.json) {
    for (const auto& node : list_of(*plan, "forecast")) {
      context.out << fmt::format("{}: {}\n", text_of(node, "node"), text_of(node, "row"));
    }
    for (const auto& note : list_of(*plan, "notes")) {
      if (note.is_string()) {
        context.out << "note: " << note.get<std::string>() << '\n';
      }
    }
  }
  const auto question =
      scope == "cluster"
          ? fmt::format("This replaces the database of ALL nodes of {0}. Type {0} to begin: ",
                        options.plan.cluster)
          : fmt::format("This replaces files of nodes of {0}. Type {0} to begin: ",
                        options.plan.cluster);
  if (!options.yes && !confirmed(context, question, {options.plan.cluster})) {
    return kRefused;
  }
  return apply_plan(context, options.apply);
}

int discard_old(const CliContext& context, RestoreOptions options) {
  parameter_of(options.plan, "task") = "discard-old";
  const auto plan = request_plan(context, restore_operation(), options.plan);
  if (!plan) {
    return context.fail(plan.error());
  }
  print_plan(context, *plan);
  const auto& nodes = parameter_of(options.plan, "nodes");
  const auto question =
      fmt::format("This removes what the restore of {} kept on {}. Type yes to begin: ",
                  parameter_of(options.plan, "generation"), nodes.empty() ? "all nodes" : nodes);
  if (!options.yes && !confirmed(context, question, {"yes"})) {
    return kRefused;
  }
  options.apply.hash = text_of(*plan, "hash");
  return apply_plan(context, options.apply);
}

void add_applying(CLI::App& command, RestoreOptions& options) {
  command.add_flag("--yes", options.yes, "Without asking");
  add_wait_options(command, options.apply);
}

}  // namespace

void add_restore_commands(CLI::App& app, Command& chosen) {
  auto* restore =
      app.add_subcommand("restore", "Nodes, or a whole cluster, from a backup of the agents");
  restore->footer("docs/operations/restore.md says which of them, step by step");
  restore->require_subcommand(1);

  auto planned = std::make_shared<RestoreOptions>();
  auto* plan = restore->add_subcommand("plan", "What would be replaced, and what is lost");
  plan->footer(
      "Example: verger restore plan orders --repository main --scope node --nodes n3\n"
      "         verger restore plan orders --repository main --scope cluster");
  add_plan_options(*plan, restore_operation(), planned->plan);
  plan->callback([planned, &chosen] {
    chosen = [planned](const CliContext& context) { return plan_restore(context, *planned); };
  });

  auto applied = std::make_shared<RestoreOptions>();
  auto* apply = restore->add_subcommand("apply", "Carry a plan out");
  apply->footer("Example: verger restore apply orders 3f2a90cc41d7 --wait");
  apply->add_option("CLUSTER", applied->plan.cluster)->required();
  apply->add_option("HASH", applied->apply.hash, "The plan's hash, or its first digits")
      ->required();
  add_applying(*apply, *applied);
  apply->callback([applied, &chosen] {
    chosen = [applied](const CliContext& context) { return apply_restore(context, *applied); };
  });

  auto discarded = std::make_shared<RestoreOptions>();
  auto* discard = restore->add_subcommand(
      "discard-old", "Remove the former files that a restore kept on the nodes");
  discard->footer("Example: verger restore discard-old orders --generation 20240602T101500Z-7f3a");
  add_plan_options(*discard, restore_operation(), discarded->plan, [](std::string_view parameter) {
    return parameter == "generation" || parameter == "nodes";
  });
  discard->get_option("--generation")->required();
  add_applying(*discard, *discarded);
  discard->callback([discarded, &chosen] {
    chosen = [discarded](const CliContext& context) { return discard_old(context, *discarded); };
  });
}

}  // namespace verger::cli
