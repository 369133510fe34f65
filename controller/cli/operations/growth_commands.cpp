#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/confirmation.h"
#include "controller/cli/json_text.h"
#include "controller/cli/operations/resize_commands.h"
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
  std::vector<std::string> nodes{};  ///< "NAME=URL", or the URL
  std::vector<std::string> agents{};
  bool plan_only = false;
  bool yes = false;
  ApplyOptions apply{};
  /// Of `--to`.
  ResizeOptions resize{};
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
  const auto& node = options.nodes.front();
  const auto equals = node.find('=');
  const auto scheme = node.find("://");
  const bool has_name =
      equals != std::string::npos && (scheme == std::string::npos || equals < scheme);
  parameter_of(options.plan, "name") = has_name ? node.substr(0, equals) : std::string();
  parameter_of(options.plan, "node") = has_name ? node.substr(equals + 1) : node;
  parameter_of(options.plan, "agent") = options.agents.front();
}

/// The plan is shown, and carried out once that is agreed to.
int carry_out(const CliContext& context, const planner::Operation& operation,
              const GrowOptions& options, const std::string& what_it_does) {
  const auto plan = request_plan(context, operation, options.plan);
  if (!plan) {
    return context.fail(plan.error());
  }
  print_plan(context, *plan);
  if (options.plan_only) {
    print_next(context, *plan);
    return kDone;
  }
  if (!options.yes && !confirmed(context, what_it_does + " Type yes to begin: ", {"yes"})) {
    return kRefused;
  }
  auto apply = options.apply;
  apply.hash = text_of(*plan, "hash");
  return apply_plan(context, apply);
}

int grow(const CliContext& context, GrowOptions options) {
  const bool resizes = !options.resize.to.empty();
  if (static_cast<int>(resizes) + static_cast<int>(options.add_replica) +
          static_cast<int>(!options.replaces.empty()) !=
      1) {
    context.err << "verger: say what is to become of the cluster: --to VOTERS, --add-replica, or "
                   "--replace NODE\n";
    return kUsage;
  }
  if (options.nodes.size() != options.agents.size() || (!resizes && options.nodes.size() != 1)) {
    context.err << "verger: each new node is named by --node and --agent\n";
    return kUsage;
  }
  if (resizes) {
    auto plan = plan_of_resize(options.plan, options.resize, options.nodes, options.agents);
    options.plan = std::move(plan);
    return carry_out(
        context, resize_operation(), options,
        options.nodes.empty()
            ? fmt::format("This stops voters of {} for good and restarts the others "
                          "one after the other.",
                          options.plan.cluster)
            : fmt::format("This replaces the files of {} and restarts the voters of {} "
                          "one after the other, with a pause for writes.",
                          fmt::join(options.nodes, " and "), options.plan.cluster));
  }
  set_node(options);
  parameter_of(options.plan, "role") =
      options.add_replica || options.as_replica ? "read-only-replica" : "voter";
  parameter_of(options.plan, "replaces") = options.replaces;
  parameter_of(options.plan, "replaced_is_gone") = options.gone ? "true" : "";
  return carry_out(context, growth_operation(), options,
                   fmt::format("This replaces the files of {} and adds it to {}.",
                               options.nodes.front(), options.plan.cluster));
}

}  // namespace

void add_cluster_growth(CLI::App& cluster, Command& chosen) {
  auto options = std::make_shared<GrowOptions>();
  auto* command = cluster.add_subcommand(
      "grow",
      "Another number of voters, or one more node, seeded from a backup: a read-only "
      "replica, or in a dead node's place");
  command->footer(
      "Example: verger cluster grow orders --add-replica --node n4=https://n4.example.com:2113 \\\n"
      "           --agent https://n4.example.com:2114 --repository main --wait\n"
      "         verger cluster grow orders --replace n3 --node n4=https://n4.example.com:2113 \\\n"
      "           --agent https://n4.example.com:2114 --repository main --wait\n"
      "         verger cluster grow orders --to 5 --repository main --wait \\\n"
      "           --node n4=https://n4.example.com:2113 --agent https://n4.example.com:2114 \\\n"
      "           --node n5=https://n5.example.com:2113 --agent https://n5.example.com:2114\n"
      "         verger cluster grow orders --to 3 --wait\n"
      "docs/operations/growing.md says what new machines need, and what happens to writes");
  add_plan_options(*command, growth_operation(), options->plan, is_option_of_grow);
  command->add_flag("--add-replica", options->add_replica, "The new node is a read-only replica");
  auto* replace = command->add_option("--replace", options->replaces,
                                      "The dead node whose place the new one takes, as a voter");
  command
      ->add_flag("--as-replica", options->as_replica, "With --replace: both are read-only replicas")
      ->needs(replace);
  command
      ->add_flag("--replaced-is-gone", options->gone,
                 "With --replace: the dead node will never start again: you have seen to it, since "
                 "its agent cannot")
      ->needs(replace);
  auto* to = command
                 ->add_option("--to", options->resize.to,
                              "Number of voters afterwards: two more, each named by --node and "
                              "--agent, or two fewer")
                 ->check(CLI::Range(0, 99))
                 ->type_name("INT");
  command
      ->add_option("--leaving", options->resize.leaving,
                   "With --to, and fewer voters: those that leave, separated by commas (default: "
                   "such as do not lead)")
      ->needs(to);
  command
      ->add_flag("--leaving-are-gone", options->resize.gone,
                 "With --to: those that leave and whose agents are silent will never start again: "
                 "you have seen to it")
      ->needs(to);
  command->add_option("--node", options->nodes, "URL of a new node, or NAME=URL");
  command->add_option("--agent", options->agents, "URL of its agent");
  command->add_flag("--plan-only", options->plan_only, "Make the plan, and apply nothing");
  command->add_flag("--yes", options->yes, "Without asking");
  add_wait_options(*command, options->apply);
  command->callback([options, &chosen] {
    chosen = [options](const CliContext& context) { return grow(context, *options); };
  });
}

}  // namespace verger::cli
