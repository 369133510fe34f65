#include "controller/executor/plan_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/clock.h"
#include "planner/gate_table.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using planner::Json;

Json from_json(const json& value) {
  if (value.is_object()) {
    Json::Object out;
    for (const auto& [name, member] : value.items()) {
      out[name] = from_json(member);
    }
    return out;
  }
  if (value.is_array()) {
    Json::Array out;
    for (const auto& member : value) {
      out.push_back(from_json(member));
    }
    return out;
  }
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (value.is_boolean()) {
    return value.get<bool>();
  }
  if (value.is_number_integer()) {
    return value.get<std::int64_t>();
  }
  return {};
}

template <class T>
T one_of(const json& value, std::string_view member, std::initializer_list<T> choices, T fallback) {
  if (!value.contains(member)) {
    return fallback;
  }
  const auto text = value.at(std::string(member)).get<std::string>();
  std::string names;
  for (const auto choice : choices) {
    if (text == planner::to_string(choice)) {
      return choice;
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", planner::to_string(choice));
  }
  throw std::invalid_argument(fmt::format("{} is \"{}\"; it may be: {}", member, text, names));
}

template <class T>
void read(const json& value, const char* member, T& into) {
  if (value.contains(member)) {
    into = value.at(member).get<T>();
  }
}

planner::Step step_of(const json& value) {
  planner::Step out;
  out.id = value.at("id").get<std::string>();
  out.kind = value.at("kind").get<std::string>();
  out.node = value.at("node").get<std::string>();
  out.parameters = *from_json(value.at("parameters")).as_object();
  for (const auto& gate : value.at("gates")) {
    auto planned_as = gate.at("name").get<std::string>();
    auto& read = out.gates.emplace_back();
    read.name = planner::current_gate_name(planned_as);
    read.limit = gate.at("limit").get<std::int64_t>();
    if (read.name != planned_as) {
      read.planned_as = std::move(planned_as);
    }
  }
  out.act = value.at("act").get<std::string>();
  out.observe = value.at("observe").get<std::string>();
  out.undo = value.at("undo").get<std::string>();
  out.reason = value.at("reason").get<std::string>();
  out.attempts = value.at("attempts").get<std::int32_t>();
  if (value.contains("expected")) {
    out.expected = {value.at("expected").at("lowMs").get<std::int64_t>(),
                    value.at("expected").at("highMs").get<std::int64_t>()};
  }
  out.cost = {value.at("cost").at("leaderMove").get<bool>(),
              value.at("cost").at("quorumMargin").get<std::int32_t>()};
  return out;
}

planner::Stage stage_of(const json& value) {
  planner::Stage out;
  out.id = value.at("id").get<std::string>();
  out.title = value.at("title").get<std::string>();
  for (const auto& group : value.at("groups")) {
    planner::Group steps;
    for (const auto& step : group) {
      steps.push_back(step_of(step));
    }
    out.groups.push_back(std::move(steps));
  }
  out.deadline_ms = value.at("deadlineMs").get<std::int64_t>();
  out.undo_deadline_ms = value.at("undoDeadlineMs").get<std::int64_t>();
  out.on_failure = one_of(value, "onFailure",
                          {planner::FailureRule::kStop, planner::FailureRule::kSkipNode,
                           planner::FailureRule::kUndoAll},
                          planner::FailureRule::kStop);
  out.if_deferred = value.at("ifPutOff").get<std::string>();
  read(value, "closing", out.closing);
  read(value, "atomic", out.atomic);
  return out;
}

}  // namespace

Result<planner::Plan> parse_plan(const json& value) {
  try {
    planner::Plan out;
    out.cluster = value.at("cluster").get<std::string>();
    VERGER_TRY(out.policy, planner::parse_policy(from_json(value.at("policy"))));
    for (const auto& node : value.at("basis")) {
      out.basis.nodes.push_back(
          {node.at("name").get<std::string>(), node.at("url").get<std::string>(),
           node.at("agentUrl").get<std::string>(), node.at("role").get<std::string>(),
           node.at("version").get<std::string>(), node.at("instanceId").get<std::string>(),
           node.at("certificates").get<std::vector<std::string>>()});
    }
    for (const auto& stage : value.at("stages")) {
      out.stages.push_back(stage_of(stage));
    }
    for (const auto& node : value.at("forecast")) {
      planner::NodeForecast entry;
      entry.node = node.at("node").get<std::string>();
      entry.row = node.at("row").get<std::string>();
      read(node, "databaseBytes", entry.database_bytes);
      read(node, "diskFree", entry.disk_free);
      read(node, "diskNeeded", entry.disk_needed);
      out.forecast.push_back(std::move(entry));
    }
    out.notes = value.at("notes").get<std::vector<std::string>>();
    out.hash = value.at("hash").get<std::string>();
    VERGER_TRY(out.made_at, parse_ticks(value.at("madeAt").get<std::string>()));
    if (planner::hash_of(out) != out.hash) {
      return Error{Errc::kCorruption, fmt::format("plan {}: its content has the hash {}", out.hash,
                                                  planner::hash_of(out))};
    }
    return out;
  } catch (const std::exception& error) {
    return Error{Errc::kCorruption, fmt::format("plan: {}", error.what())};
  }
}

json to_nlohmann(const planner::Json& value) { return json::parse(value.text()); }

}  // namespace verger::controller
