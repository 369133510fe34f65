#pragma once

#include <expected>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "controller/cli/cli_context.h"
#include "planner/operations.h"

namespace CLI {
class App;
}  // namespace CLI

namespace verger::cli {

/// What a command asks a plan for. What is not given is as the policy says, or the controller.
struct PlanOptions {
  std::string cluster{};
  std::string policy{};
  /// By field of the operation that a request may name; empty: not given.
  std::map<const planner::Field*, std::string> parameters{};
};

/// Which of an operation's parameters a command has as options; `name` as in the API.
using OptionChoice = std::function<bool(std::string_view name)>;

/// CLUSTER, --policy and an option for each parameter that a request may name and `chosen` takes;
/// an empty one takes all.
void add_plan_options(CLI::App& command, const planner::Operation& operation, PlanOptions& options,
                      const OptionChoice& chosen = {});
/// A parameter of add_plan_options(), by its name in the API, whether it is an option or not.
std::string& parameter_of(PlanOptions& options, std::string_view name);
std::expected<nlohmann::json, CallFailure> request_plan(const CliContext& context,
                                                        const planner::Operation& operation,
                                                        const PlanOptions& options);
/// What stands between the plan and its run, or how to start it; nothing with --json.
void print_next(const CliContext& context, const nlohmann::json& plan);

struct ApplyOptions {
  std::string hash{};
  bool wait = false;
  int wait_seconds = 24 * 3600;
};
/// --wait and --wait-seconds
void add_wait_options(CLI::App& command, ApplyOptions& options);
/// Carries a plan out; gives the exit code.
int apply_plan(const CliContext& context, const ApplyOptions& options);

}  // namespace verger::cli
