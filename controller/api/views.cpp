#include "controller/api/views.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/executor/plan_json.h"
#include "controller/executor/step_support.h"
#include "controller/executor/undo_report.h"
#include "controller/journal/member_names.h"
#include "controller/operations/operation_modules.h"
#include "engine/base/clock.h"
#include "planner/gates.h"
#include "planner/operations.h"

namespace verger::controller::views {
namespace {

using nlohmann::json;

/// -1 means "not known" in a snapshot; the API says null.
json known(std::int64_t value) { return value < 0 ? json() : json(value); }

json point(const planner::Point& point) {
  return {{"number", point.number},
          {"position", point.position},
          {"effective_now", point.effective_now},
          {"threshold", point.threshold}};
}

json node(const planner::ClusterSnapshot& cluster, const planner::NodeSnapshot& node) {
  json out = {{"name", node.name},
              {"url", node.url},
              {"agent_url", node.agent_url},
              {"reachable", node.answered},
              {"agent_reachable", node.has_agent() ? json(node.agent_answered) : json()},
              {"agent_version",
               node.agent && !node.agent->version.empty() ? json(node.agent->version) : json()},
              {"instance_id", node.instance_id},
              {"version", node.version},
              {"state", node.answered ? node.state : "not reached"},
              {"is_alive", node.alive},
              {"is_read_only_replica", node.read_only_replica},
              {"writer_checkpoint", known(node.writer_checkpoint)},
              {"last_commit_position", known(node.last_commit_position)},
              {"epoch_number", known(node.epoch_number)},
              {"node_priority", node.priority},
              {"lag_bytes", node.answered ? known(cluster.lag(node)) : json()},
              {"clock_ahead_ms", node.clock ? json(node.clock->ahead_ms) : json()},
              {"clock_error_ms", node.clock ? json(node.clock->error_ms) : json()},
              {"database_bytes", nullptr},
              {"event_count", nullptr},
              {"disk_free_bytes", nullptr},
              {"chunk_files", nullptr},
              {"lost_streams", nullptr},
              {"running_scavenge", nullptr},
              {"last_finished_point", nullptr},
              {"unfinished_point", nullptr},
              {"problem", nullptr}};
  if (node.scavenge_running.value_or(false)) {
    out["running_scavenge"] = {{"id", node.running.scavenge_id}, {"phase", node.running.phase}};
  }
  if (node.agent) {
    out["database_bytes"] = known(node.agent->database_bytes);
    out["event_count"] = known(node.agent->event_count);
    out["disk_free_bytes"] = known(node.agent->disk_free);
    out["chunk_files"] = known(node.agent->chunk_files);
    out["lost_streams"] = known(node.agent->lost_streams);
    if (node.agent->last_finished) {
      out["last_finished_point"] = point(*node.agent->last_finished);
    }
    if (node.agent->unfinished) {
      out["unfinished_point"] = point(node.agent->unfinished->point);
    }
  }
  if (node.wrong_identity) {
    out["problem"] = node.problem.empty()
                         ? std::string("not the node that was registered")
                         : fmt::format("not the node that was registered: {}", node.problem);
  } else if (!node.agent_problem.empty() && (node.stopped || node.problem.empty())) {
    out["problem"] = node.agent_problem;  // of a stopped node: why it does not answer
  } else if (!node.problem.empty()) {
    out["problem"] = node.problem;
  } else if (node.agent && !node.agent->node_problem.empty()) {
    out["problem"] = "its agent cannot operate the node: " + node.agent->node_problem;
  } else if (node.agent && !node.agent->files_problem.empty()) {
    out["problem"] = "its agent cannot read the node's files: " + node.agent->files_problem;
  }
  return out;
}

json time_or_null(const std::optional<Ticks>& time) {
  return time ? json(format_ticks(*time)) : json();
}

json object_or_null(const std::string& text) {
  auto parsed = json::parse(text, nullptr, false);
  return parsed.is_object() && !parsed.empty() ? parsed : json();
}

/// How gently the run's jobs work, where that was changed for this run.
json throttle_of(const RunState& run) {
  const auto found = run.values.find(steps::kThrottleValue);
  if (found == run.values.end()) {
    return {};
  }
  const auto value = object_or_null(found->second);
  return {{"percent", value.value("percent", 100)},
          {"bytes_per_second", value.value("bytes_per_second", std::int64_t{0})}};
}

json step_of_plan(const planner::Step& step, std::size_t group) {
  auto gates = json::array();
  for (const auto& gate : step.gates) {
    gates.push_back(planner::gate_text(gate));
  }
  json expected;
  if (step.expected.high_ms > 0) {
    expected = {{"min", step.expected.low_ms / 1000},
                {"max", (step.expected.high_ms + 999) / 1000}};
  }
  std::string cost;
  if (step.cost.leader_move) {
    cost = "moves the leader";
  }
  return {{"id", step.id},
          {"group", group},
          {"kind", step.kind},
          {"node", step.node},
          {"parameters", in_snake_case(to_nlohmann(planner::Json(step.parameters)))},
          {"gates", std::move(gates)},
          {"act", step.act},
          {"observe", step.observe},
          {"undo", step.undo},
          {"reason", step.reason},
          {"attempts", step.attempts},
          {"expected_seconds", std::move(expected)},
          {"quorum_margin", step.cost.quorum_margin},
          {"cost", cost}};
}

/// Parameters as the request has them, and those a policy alone can give where it gives them.
json parameters_of(const planner::Policy& policy) {
  json out = json::object();
  const auto* operation = planner::operation_of(policy);
  if (operation == nullptr) {
    return out;
  }
  planner::Policy defaults;
  defaults.operation = operation->defaults();
  for (const auto* field : planner::fields_of(*operation)) {
    const auto value = field->get(policy);
    if (field->request == planner::Field::Request::kAccepted ||
        (field->request == planner::Field::Request::kShown && value != field->get(defaults))) {
      out[planner::api_name(*field)] = to_nlohmann(value);
    }
  }
  return out;
}

json step_of_run(const planner::Step& step, const StepState& state, const RunState& run,
                 std::optional<Ticks> now) {
  if (run.paused_since || run.ended_at) {
    now.reset();
  }
  auto time = state.time;
  if (now && time.counted && !state.ended) {
    count_time(time, part_of(state), *now);
  }
  return {{"id", step.id},
          {"kind", step.kind},
          {"node", step.node},
          {"state", to_string(state.status)},
          {"reason", state.reason},
          {"waiting_for", waiting_for(state, run)},
          {"not_seen", json::parse(state.not_seen, nullptr, false)},
          {"outcomes", json::parse(state.outcomes, nullptr, false)},
          {"since", time_or_null(state.since)},
          {"started_at", time_or_null(state.started)},
          {"finished_at", time_or_null(state.ended)},
          {"attempts", state.attempt},
          {"timeline", timeline(time)},
          {"progress", state.status == StepStatus::kActing ? step_progress(state) : json()},
          {"result", state.result->empty() ? json() : *state.result}};
}

}  // namespace

json step_progress(const StepState& state) {
  const auto& stored = *state.progress;
  if (stored.empty()) {
    return {};
  }
  const auto chunks_done = stored.value("chunks_done", std::int64_t{-1});
  const auto chunks_total = stored.value("chunks_total", std::int64_t{-1});
  // Journals of former versions have chunks alone.
  const bool former = !stored.contains("done") && chunks_total >= 0;
  const auto unit = stored.value("unit", std::string(former ? "chunks" : ""));
  const auto total = stored.value("total", former ? chunks_total : std::int64_t{-1});
  const auto known = [](std::int64_t number) { return number >= 0 ? json(number) : json(); };
  const auto seen = state.phase.units_per_hour();
  const auto rate = stored.contains("rate") ? std::optional(stored["rate"].get<double>()) : seen;
  std::optional<double> chunk_rate;
  if (rate && unit == "chunks") {
    chunk_rate = rate;
  } else if (rate && total > 0 && chunks_total > 0) {
    chunk_rate = *rate * static_cast<double>(chunks_total) / static_cast<double>(total);
  }
  const auto since = stored.value(
      "since", state.phase.phase.empty() ? std::string() : format_ticks(state.phase.since));
  return {{"phase", stored.value("phase", std::string())},
          {"done", known(stored.value("done", former ? chunks_done : std::int64_t{-1}))},
          {"total", known(total)},
          {"unit", unit.empty() ? json() : json(unit)},
          {"bytes", known(stored.value("bytes", std::int64_t{-1}))},
          {"rate", rate ? json(*rate) : json()},
          {"since", since.empty() ? json() : json(since)},
          {"bytes_saved", stored.value("bytes_saved", std::int64_t{0})},
          // For a version, under their former names.
          {"chunks_done", chunks_done},
          {"chunks_total", chunks_total},
          {"chunks_per_hour", chunk_rate ? json(*chunk_rate) : json()}};
}

json cluster(const ClusterConfig& config) {
  auto nodes = json::array();
  for (const auto& node : config.nodes) {
    json entry = {{"name", node.name}, {"node", node.url}};
    if (!node.agent_url.empty()) {
      entry["agent"] = node.agent_url;
    }
    nodes.push_back(std::move(entry));
  }
  return {{"name", config.name},
          {"nodes", std::move(nodes)},
          {"credentials", config.credentials},
          {"trusted_roots", config.trusted_roots},
          {"labels", config.labels},
          {"paused", config.paused},
          {"pause_reason", config.paused ? json(config.pause_reason) : json()},
          {"pause_until", config.pause_until ? json(format_ticks(*config.pause_until)) : json()}};
}

json snapshot(const planner::ClusterSnapshot& snapshot) {
  auto nodes = json::array();
  for (const auto& member : snapshot.nodes) {
    nodes.push_back(node(snapshot, member));
  }
  auto warnings = snapshot.warnings;
  for (const auto& member : snapshot.nodes) {
    if (member.agent && !member.agent->warning.empty()) {
      warnings.push_back(fmt::format("the agent of {}: {}", member.name, member.agent->warning));
    }
    if (member.agent && member.agent->lost_streams > 0) {
      warnings.push_back(
          fmt::format("{}: {} streams are not in its existence filter: it does not find them after "
                      "its next start (docs/operations/lost-streams.md)",
                      member.name, member.agent->lost_streams));
    }
  }
  const auto* leader = snapshot.leader();
  return {{"taken_at", format_ticks(snapshot.taken_at)},
          {"leader", leader == nullptr ? json() : json(leader->name)},
          {"strangers", snapshot.unregistered},
          {"warnings", std::move(warnings)},
          {"nodes", std::move(nodes)}};
}

json plan(const StoredPlan& stored) {
  const auto& plan = *stored.plan;
  auto stages = json::array();
  for (const auto& stage : plan.stages) {
    auto steps = json::array();
    for (std::size_t group = 0; group < stage.groups.size(); ++group) {
      for (const auto& step : stage.groups[group]) {
        steps.push_back(step_of_plan(step, group));
      }
    }
    stages.push_back({{"id", stage.id},
                      {"name", stage.title},
                      {"deadline_seconds", stage.deadline_ms / 1000},
                      {"failure_rule", to_string(stage.on_failure)},
                      {"if_put_off", stage.if_deferred},
                      {"atomic", stage.atomic},
                      {"steps", std::move(steps)}});
  }
  auto forecast = json::array();
  for (const auto& entry : plan.forecast) {
    forecast.push_back({{"node", entry.node},
                        {"row", entry.row},
                        {"database_bytes", known(entry.database_bytes)},
                        {"disk_free_bytes", known(entry.disk_free)},
                        {"disk_needed_bytes", known(entry.disk_needed)}});
  }
  auto basis = json::array();
  for (const auto& entry : plan.basis.nodes) {
    basis.push_back({{"name", entry.name},
                     {"role", entry.role},
                     {"version", entry.version},
                     {"instance_id", entry.instance_id}});
  }
  return {{"hash", plan.hash},
          {"cluster", plan.cluster},
          {"operation", planner::operation_name(plan.policy)},
          {"policy", plan.policy.name},
          {"parameters", parameters_of(plan.policy)},
          {"created_at", format_ticks(stored.made_at)},
          {"created_by", stored.made_by},
          {"expected_seconds", expected_seconds(plan)},
          {"stages", std::move(stages)},
          {"forecast", std::move(forecast)},
          {"basis", std::move(basis)},
          {"notes", plan.notes}};
}

json run(const RunState& run, std::optional<Ticks> now) {
  auto stages = json::array();
  for (const auto& stage : run.plan->stages) {
    auto steps = json::array();
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        const auto found = run.steps.find(step.id);
        steps.push_back(
            step_of_run(step, found == run.steps.end() ? StepState{} : found->second, run, now));
      }
    }
    const auto state = run.stages.find(stage.id);
    stages.push_back({{"id", stage.id},
                      {"name", stage.title},
                      {"if_put_off", stage.if_deferred},
                      {"atomic", stage.atomic},
                      {"state", to_string(state == run.stages.end() ? StageStatus::kPending
                                                                    : state->second.status)},
                      {"steps", std::move(steps)}});
  }
  auto moves = json::array();
  for (const auto& move : run.moves) {
    moves.push_back({{"from", move.from},
                     {"to", move.to},
                     {"planned", move.planned},
                     {"at", format_ticks(move.at)}});
  }
  auto alerts = json::array();
  for (const auto& alert : run.alerts) {
    alerts.push_back({{"step", alert.step},
                      {"reason", alert.reason},
                      {"at", format_ticks(alert.at)},
                      {"cleared_at", time_or_null(alert.cleared_at)}});
  }
  auto undo = json::array();
  for (const auto& each : undo_report(run)) {
    undo.push_back({{"node", each.node},
                    {"state", to_string(each.outcome)},
                    {"at", time_or_null(each.at)},
                    {"reason", each.reason},
                    {"commands", each.commands}});
  }
  return {{"id", run.id},
          {"cluster", run.cluster},
          {"plan", run.plan->hash},
          {"operation", planner::operation_name(run.plan->policy)},
          {"state", to_string(run.status)},
          {"reason", run.reason},
          {"ignores_hours", run.ignores_hours},
          {"throttle", throttle_of(run)},
          {"started_by", run.started_by},
          {"started_at", format_ticks(run.started_at)},
          {"finished_at", time_or_null(run.ended_at)},
          {"stages", std::move(stages)},
          {"leader_moves", std::move(moves)},
          {"alerts", std::move(alerts)},
          {"undo", std::move(undo)},
          {"report", report(run)}};
}

json report(const RunState& run) {
  const auto* module = find_operation_module(planner::operation_name(run.plan->policy));
  return module == nullptr || !has_ended(run.status) ? json() : module->report(run, timeline(run));
}

json refusal(const planner::Refusal& refusal) {
  return {{"code", refusal.code},
          {"node", refusal.node},
          {"message", refusal.message},
          {"hint", refusal.hint}};
}

}  // namespace verger::controller::views
