#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/confirmation.h"
#include "controller/cli/json_text.h"
#include "controller/cli/plan_request.h"
#include "controller/cli/plan_text.h"
#include "planner/operations.h"

// `verger cluster grow`: a plan of a new node, and its run.
namespace verger::cli {
namespace {

using nlohmann::json;

struct GrowOptions {
  PlanOptions plan{};
  bool add_replica = false;
  std::string replaces{};
  bool as_replica = false;
  bool gone = false;
  std::string node{};  ///< "NAME=URL", or the URL
  std::string agent{};
  bool plan_only = false;
  bool yes = false;
  ApplyOptions apply{};
};

const planner::Operation& growth_operation() {
  static const auto& kOperation = *planner::find_operation("growth");
  return kOperation;
}

/// The others are options of this command under other names.
bool is_option_of_grow(std::string_view parameter) {
  constexpr std::array<std::string_view, 6> kOwn{"name", "node",     "agent",
                                                 "role", "replaces", "replaced_is_gone"};
  return std::ranges::find(kOwn, parameter) == kOwn.end();
}

/// "n4=http://n4:2113" or the URL alone, of which the controller makes a name.
void set_node(GrowOptions& options) {
  const auto equals = options.node.find('=');
  const auto scheme = options.node.find("://");
  const bool has_name =
      equals != std::string::npos && (scheme == std::string::npos || equals < scheme);
  parameter_of(options.plan, "name") = has_name ? options.node.substr(0, equals) : std::string();
  parameter_of(options.plan, "node") = has_name ? options.node.substr(equals + 1) : options.node;
  parameter_of(options.plan, "agent") = options.agent;
}

int grow(const CliContext& context, GrowOptions options) {
  if (options.add_replica != options.replaces.empty()) {
    context.err << "verger: say what the new node is: --add-replica, or --replace NODE\n";
    return kUsage;
  }
  set_node(options);
  parameter_of(options.plan, "role") =
      options.add_replica || options.as_replica ? "read-only-replica" : "voter";
  parameter_of(options.plan, "replaces") = options.replaces;
  parameter_of(options.plan, "replaced_is_gone") = options.gone ? "true" : "";
  const auto plan = request_plan(context, growth_operation(), options.plan);
  if (!plan) {
    return context.fail(plan.error());
  }
  print_plan(context, *plan);
  if (options.plan_only) {
    print_next(context, *plan);
    return kDone;
  }
  const auto question = fmt::format(
      "This replaces the files of {} and adds it to {}. Type yes to begin: ", options.node,
      options.plan.cluster);
  if (!options.yes && !confirmed(context, question, {"yes"})) {
    return kRefused;
  }
  options.apply.hash = text_of(*plan, "hash");
  return apply_plan(context, options.apply);
}

}  // namespace

void add_cluster_growth(CLI::App& cluster, Command& chosen) {
  auto options = std::make_shared<GrowOptions>();
  auto* command = cluster.add_subcommand(
      "grow", "Add a node, seeded from a backup: a read-only replica, or in a dead node's place");
  command->footer(
      "Example: verger cluster grow orders --add-replica --node n4=https://n4.example.com:2113 \\\n"
      "           --agent https://n4.example.com:2114 --repository main --wait\n"
      "         verger cluster grow orders --replace n3 --node n4=https://n4.example.com:2113 \\\n"
      "           --agent https://n4.example.com:2114 --repository main --wait\n"
      "docs/operations/growing.md says what the new machine needs, and how three voters become "
      "five");
  add_plan_options(*command, growth_operation(), options->plan, is_option_of_grow);
  command->add_flag("--add-replica", options->add_replica, "The new node is a read-only replica");
  command->add_option("--replace", options->replaces,
                      "The dead node whose place the new one takes, as a voter");
  command->add_flag("--as-replica", options->as_replica,
                    "With --replace: both are read-only replicas");
  command->add_flag("--replaced-is-gone", options->gone,
                    "The dead node will never start again: you have seen to it, since its agent "
                    "cannot");
  command->add_option("--node", options->node, "URL of the new node, or NAME=URL")->required();
  command->add_option("--agent", options->agent, "URL of its agent")->required();
  command->add_flag("--plan-only", options->plan_only, "Make the plan, and apply nothing");
  command->add_flag("--yes", options->yes, "Without asking");
  add_wait_options(*command, options->apply);
  command->callback([options, &chosen] {
    chosen = [options](const CliContext& context) { return grow(context, *options); };
  });
}

}  // namespace verger::cli
