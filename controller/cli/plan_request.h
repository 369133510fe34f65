#pragma once

#include <expected>
#include <map>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "controller/cli/api_client.h"
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

/// CLUSTER, --policy and an option for each parameter that a request may name.
void add_plan_options(CLI::App& command, const planner::Operation& operation, PlanOptions& options);
std::expected<nlohmann::json, CallFailure> request_plan(const CliContext& context,
                                                        const planner::Operation& operation,
                                                        const PlanOptions& options);
/// What stands between the plan and its run, or how to start it.
void print_next(const CliContext& context, const nlohmann::json& plan);

struct ApplyOptions {
  std::string hash{};
  bool wait = false;
  int wait_seconds = 24 * 3600;
};
/// Carries a plan out; gives the exit code.
int apply_plan(const CliContext& context, const ApplyOptions& options);

}  // namespace verger::cli
