#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>

#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/api.h"
#include "controller/api/members.h"
#include "controller/api/views.h"
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
      return {};
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
  members.refuse_others();
  if (members.wrong()) {
    return *members.wrong();
  }
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

}  // namespace

net::awaitable<http::Response> Api::make_plan(std::string cluster, std::string body,
                                              std::string by) {
  const auto parsed = parse_body(body);
  if (!parsed) {
    co_return problem_of(parsed.error());
  }
  auto base = parts_.policy;
  if (const auto name = Members(*parsed).text("policy"); !name.empty()) {
    const auto stored = parts_.book.find(name);
    const auto config = parts_.registry.find(cluster);
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
  const auto policy = policy_of(*parsed, std::move(base));
  if (!policy) {
    co_return problem_of(policy.error());
  }
  const auto made = co_await parts_.executor.make_plan(cluster, *policy, std::move(by));
  if (!made) {
    co_return problem_of(made.error());
  }
  if (!made->has_value()) {
    auto refusals = json::array();
    std::string detail = fmt::format("no plan for cluster {}:", cluster);
    for (const auto& refusal : made->error().refusals) {
      refusals.push_back(views::refusal(refusal));
      detail += fmt::format("\n  {}{}{}{}", refusal.node, refusal.node.empty() ? "" : ": ",
                            refusal.message, refusal.hint.empty() ? "" : "; " + refusal.hint);
    }
    co_return problem(422, "plan_refused", detail, {{"refusals", std::move(refusals)}});
  }
  co_return json_answer(201, plan_view(**made));
}

json Api::plan_view(const StoredPlan& stored) {
  auto out = views::plan(stored);
  out["expected_from"] = "sizes";
  out["last_success"] = nullptr;
  for (const auto& run : parts_.executor.runs(stored.plan->cluster)) {
    if (run->status != RunStatus::kDone || !run->ended_at) {
      continue;
    }
    // The estimates of a plan are those of the time when it was made.
    if (*run->ended_at <= stored.plan->made_at && !run->durations.empty()) {
      out["expected_from"] = "history";
    }
    if (out["last_success"].is_null()) {
      const auto state = parts_.executor.find_run(run->id);
      const auto freed = state ? views::freed_bytes(**state) : std::nullopt;
      out["last_success"] = {{"run", run->id},
                             {"finished_at", format_ticks(*run->ended_at)},
                             {"space_saved", freed ? json(*freed) : json()}};
    }
  }
  out["freed_before"] = freed_before(*stored.plan);
  out["cluster_pause"] = nullptr;
  if (const auto config = parts_.registry.find(stored.plan->cluster); config && config->paused) {
    out["cluster_pause"] = {
        {"reason", config->pause_reason},
        {"until", config->pause_until ? json(format_ticks(*config->pause_until)) : json()}};
  }
  out["awaits_approval_of"] = awaiting_policy(stored.plan->cluster, stored.plan->hash);
  return out;
}

json Api::freed_before(const planner::Plan& plan) const {
  constexpr std::size_t kRunsReadBack = 5;  // each is read from the journal
  std::map<std::string, json> found;
  std::size_t read = 0;
  for (const auto& run : parts_.executor.runs(plan.cluster)) {
    if (!run->ended_at || run->operation != planner::operation_name(plan.policy)) {
      continue;
    }
    if (found.size() == plan.basis.nodes.size() || ++read > kRunsReadBack) {
      break;
    }
    const auto state = parts_.executor.find_run(run->id);
    for (const auto& [node, saved] :
         state ? views::freed_by_node(**state) : std::map<std::string, std::int64_t>()) {
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

json Api::awaiting_policy(const std::string& cluster, const std::string& plan) const {
  for (const auto& stored : parts_.book.list()) {
    const auto state = parts_.scheduler.state(stored.policy.name, cluster);
    if (state.outcome == "needs-approval" && state.plan == plan) {
      return stored.policy.name;
    }
  }
  return nullptr;
}

net::awaitable<http::Response> Api::plans(http::Request request, http::Target target,
                                          std::string by) {
  const auto& path = target.segments;
  if (path.size() == 4) {
    if (request.method != "GET") {
      co_return wrong_method(request, "GET");
    }
    const auto plan = parts_.executor.find_plan(path[3]);
    co_return plan ? json_answer(200, plan_view(*plan)) : problem_of(plan.error());
  }
  if (path.size() == 5 && path[4] == "apply") {
    if (request.method != "POST") {
      co_return wrong_method(request, "POST");
    }
    const auto body = parse_body(request.body);
    if (!body) {
      co_return problem_of(body.error());
    }
    Members members(*body);
    members.text("reason");
    members.refuse_others();
    if (members.wrong()) {
      co_return problem_of(*members.wrong());
    }
    const auto run = co_await parts_.executor.apply(path[3], std::move(by));
    if (!run) {
      const auto& refused = run.error();
      if (refused.error.code == Errc::kConflict) {
        co_return problem(409, "stale_plan", refused.error.message,
                          {{"differences", refused.differences}});
      }
      const auto plan = parts_.executor.find_plan(path[3]);
      co_return refusal_of(refused.error, plan ? plan->plan->cluster : std::string());
    }
    const auto state = parts_.executor.find_run(*run);
    co_return state ? json_answer(202, views::run(**state)) : problem_of(state.error());
  }
  co_return no_route(request);
}

}  // namespace verger::controller
