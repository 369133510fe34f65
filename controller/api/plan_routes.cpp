#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>

#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/api_parts.h"
#include "controller/api/members.h"
#include "controller/api/routes.h"
#include "controller/api/views.h"
#include "controller/executor/freed_bytes.h"
#include "engine/base/clock.h"
#include "planner/operations.h"

// /clusters/{name}/plans, /plans and their application.
namespace verger::controller {
namespace {

using nlohmann::json;

planner::Json planner_value(const json& value) {
  return value.is_string()           ? planner::Json(value.get<std::string>())
         : value.is_boolean()        ? planner::Json(value.get<bool>())
         : value.is_number_integer() ? planner::Json(value.get<std::int64_t>())
                                     : planner::Json();
}

Result<void> set_parameter(const planner::Operation& operation, const std::string& name,
                           const json& value, planner::Policy& policy) {
  std::vector<std::string> known;
  for (const auto* field : planner::fields_of(operation)) {
    if (field->request != planner::Field::Request::kAccepted) {
      continue;
    }
    known.push_back(planner::api_name(*field));
    if (known.back() != name) {
      continue;
    }
    if (field->set(policy, planner_value(value))) {
      const bool is_number = field->type == planner::Field::Type::kInteger;
      const auto number = is_number ? value.get<std::int64_t>() : 0;
      if (!is_number || (number >= field->low && number <= field->high)) {
        return {};
      }
      return Error{Errc::kInvalidArgument, fmt::format("parameter {} is {}; it takes {}", name,
                                                       number, planner::values_of(*field))};
    }
    return Error{Errc::kInvalidArgument,
                 field->type == planner::Field::Type::kInteger
                     ? fmt::format("parameter {} must be an integer of 32 bits", name)
                     : fmt::format("parameter {} is {}; it takes {}", name, value.dump(),
                                   planner::values_of(*field))};
  }
  return Error{Errc::kInvalidArgument, fmt::format("parameter {} is not known; known are: {}", name,
                                                   fmt::join(known, ", "))};
}

/// What the request says, over what `policy` says.
Result<planner::Policy> policy_of(const json& body, planner::Policy policy) {
  Members members(body);
  const auto name = members.text("operation");
  const auto stored = members.text("policy");  // where `policy` is from
  members.text("reason");                      // for the audit
  const auto* given = members.object("parameters");
  VERGER_RETURN_IF_ERROR(members.finish());
  const auto* operation = planner::find_operation(name);
  if (operation == nullptr) {
    return Error{Errc::kInvalidArgument, fmt::format("operation \"{}\" is not known; {}", name,
                                                     planner::known_operations())};
  }
  if (name != planner::operation_name(policy)) {
    if (!stored.empty()) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("policy {} is about the operation {}, not {}", stored,
                               planner::operation_name(policy), name)};
    }
    policy.operation = operation->defaults();
  }
  const auto parameters = given == nullptr ? json::object() : *given;
  for (const auto& [parameter, value] : parameters.items()) {
    VERGER_RETURN_IF_ERROR(set_parameter(*operation, parameter, value, policy));
  }
  return policy;
}

/// Of each node of the plan the newest work of that sort that reported what it freed, however its
/// run ended.
json freed_before(const ApiParts& parts, const planner::Plan& plan) {
  constexpr std::size_t kRunsReadBack = 5;  // each is read from the journal
  std::map<std::string, json> found;
  std::size_t read = 0;
  for (const auto& run : parts.executor.runs(plan.cluster)) {
    if (!run->ended_at || run->operation != planner::operation_name(plan.policy)) {
      continue;
    }
    if (found.size() == plan.basis.nodes.size() || ++read > kRunsReadBack) {
      break;
    }
    const auto state = parts.executor.find_run(run->id);
    for (const auto& [node, saved] :
         state ? freed_by_node(**state) : std::map<std::string, std::int64_t>()) {
      found.try_emplace(node, json{{"node", node},
                                   {"space_saved", saved},
                                   {"run", run->id},
                                   {"finished_at", format_ticks(*run->ended_at)}});
    }
  }
  auto out = json::array();
  for (const auto& node : plan.basis.nodes) {
    if (const auto each = found.find(node.name); each != found.end()) {
      out.push_back(std::move(each->second));
    }
  }
  return out;
}

/// The policy that waits for an operator to apply this plan; null: none does.
json awaiting_policy(const ApiParts& parts, const std::string& cluster, const std::string& plan) {
  for (const auto& stored : parts.book.list()) {
    const auto state = parts.scheduler.state(stored.policy.name, cluster);
    if (state.outcome == "needs-approval" && state.plan == plan) {
      return stored.policy.name;
    }
  }
  return nullptr;
}

/// With what is known beside the plan: where its estimates are from, the cluster's last run, and
/// what stands between the plan and its run.
json plan_view(const ApiParts& parts, const StoredPlan& stored) {
  auto out = views::plan(stored);
  out["expected_from"] = "sizes";
  out["last_success"] = nullptr;
  for (const auto& run : parts.executor.runs(stored.plan->cluster)) {
    if (run->status != RunStatus::kDone || !run->ended_at) {
      continue;
    }
    // The estimates of a plan are those of the time when it was made.
    if (*run->ended_at <= stored.plan->made_at && !run->durations.empty()) {
      out["expected_from"] = "history";
    }
    if (out["last_success"].is_null()) {
      const auto state = parts.executor.find_run(run->id);
      const auto freed = state ? freed_bytes(**state) : std::nullopt;
      out["last_success"] = {{"run", run->id},
                             {"finished_at", format_ticks(*run->ended_at)},
                             {"space_saved", freed ? json(*freed) : json()}};
    }
  }
  out["freed_before"] = freed_before(parts, *stored.plan);
  out["cluster_pause"] = nullptr;
  if (const auto config = parts.registry.find(stored.plan->cluster); config && config->paused) {
    out["cluster_pause"] = {
        {"reason", config->pause_reason},
        {"until", config->pause_until ? json(format_ticks(*config->pause_until)) : json()}};
  }
  out["awaits_approval_of"] = awaiting_policy(parts, stored.plan->cluster, stored.plan->hash);
  return out;
}

net::awaitable<Result<http::Response>> make_plan(const ApiParts& parts, Call call) {
  const auto cluster = call.named("name");
  VERGER_CO_TRY(const auto parsed, parse_body(call.body()));
  auto base = parts.policy;
  if (const auto name = Members(parsed).text("policy"); !name.empty()) {
    const auto stored = parts.book.find(name);
    const auto config = parts.registry.find(cluster);
    if (!stored || !config) {
      co_return problem_of(stored ? config.error() : stored.error());
    }
    if (!stored->policy.selects(*config)) {
      co_return problem(409, "wrong_state",
                        fmt::format("policy {} does not select cluster {}; `verger policy show {}` "
                                    "shows what it selects",
                                    name, cluster, name));
    }
    base = stored->policy.plan;
  }
  VERGER_CO_TRY(const auto policy, policy_of(parsed, std::move(base)));
  VERGER_CO_TRY(const auto made, co_await parts.executor.make_plan(cluster, policy, call.by()));
  if (!made.has_value()) {
    auto refusals = json::array();
    std::string detail = fmt::format("no plan for cluster {}:", cluster);
    for (const auto& refusal : made.error().refusals) {
      refusals.push_back(views::refusal(refusal));
      detail += fmt::format("\n  {}{}{}{}", refusal.node, refusal.node.empty() ? "" : ": ",
                            refusal.message, refusal.hint.empty() ? "" : "; " + refusal.hint);
    }
    co_return problem(422, "plan_refused", detail, {{"refusals", std::move(refusals)}});
  }
  co_return json_answer(201, plan_view(parts, *made));
}

Result<http::Response> list_plans(const ApiParts& parts, const Call& call) {
  const auto name = call.named("name");
  VERGER_RETURN_IF_ERROR(parts.registry.find(name));
  const auto list = parts.executor.plans(name);
  std::vector<std::string> keys;
  keys.reserve(list.size());
  for (const auto& stored : list) {
    keys.push_back(stored.hash);
  }
  return paged_answer("plans", keys, call.target, [&](std::size_t i) -> Result<json> {
    VERGER_TRY(const auto plan, parts.executor.find_plan(keys[i]));
    auto out = views::plan(plan);
    out["awaits_approval_of"] = awaiting_policy(parts, name, plan.plan->hash);
    return out;
  });
}

http::Response get_plan(const ApiParts& parts, const Call& call) {
  const auto plan = parts.executor.find_plan(call.named("hash"));
  return plan ? json_answer(200, plan_view(parts, *plan)) : problem_of(plan.error());
}

net::awaitable<Result<http::Response>> apply_plan(const ApiParts& parts, Call call) {
  VERGER_CO_TRY(const auto body, parse_body(call.body()));
  Members members(body);
  members.text("reason");
  VERGER_CO_RETURN_IF_ERROR(members.finish());
  const auto hash = call.named("hash");
  const auto run = co_await parts.executor.apply(hash, call.by());
  if (!run) {
    const auto& refused = run.error();
    if (refused.error.code == Errc::kConflict) {
      co_return problem(409, "stale_plan", refused.error.message,
                        {{"differences", refused.differences}});
    }
    const auto plan = parts.executor.find_plan(hash);
    co_return refusal_of(parts, refused.error, plan ? plan->plan->cluster : std::string());
  }
  const auto state = parts.executor.find_run(*run);
  co_return state ? json_answer(202, views::run(**state)) : problem_of(state.error());
}

}  // namespace

std::span<const Route> plan_routes() {
  using enum ApiRole;
  static constexpr Route kRoutes[] = {
      {"GET", "/clusters/{name}/plans", kViewer, "listPlans", "Plans made for a cluster", 200, "",
       "Plans", "limit cursor", list_plans},
      {"POST", "/clusters/{name}/plans", kOperator, "makePlan", "Plan; nothing is touched", 201,
       "NewPlan", "Plan", "", make_plan},
      {"GET", "/plans/{hash}", kViewer, "getPlan", "One plan", 200, "", "Plan", "", get_plan},
      {"POST", "/plans/{hash}/apply", kOperator, "applyPlan", "Carry a plan out", 202, "Empty",
       "Run", "", apply_plan},
  };
  return kRoutes;
}

}  // namespace verger::controller
