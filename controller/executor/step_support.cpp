#include "controller/executor/step_support.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "controller/journal/member_names.h"
#include "planner/gate_table.h"

namespace verger::controller::steps {

using nlohmann::json;

json parsed_or_empty(const std::string& text) {
  if (text == "{}") {
    return json::object();
  }
  auto value = json::parse(text, nullptr, false);
  return value.is_object() ? value : json::object();
}

std::int64_t int_parameter(const planner::Step& step, std::string_view name,
                           std::int64_t fallback) {
  const auto found = step.parameters.find(name);
  const auto* value = found == step.parameters.end() ? nullptr : found->second.as_int();
  return value == nullptr ? fallback : *value;
}

bool bool_parameter(const planner::Step& step, std::string_view name, bool fallback) {
  const auto found = step.parameters.find(name);
  const auto* value = found == step.parameters.end() ? nullptr : found->second.as_bool();
  return value == nullptr ? fallback : *value;
}

std::string text_parameter(const planner::Step& step, std::string_view name) {
  const auto found = step.parameters.find(name);
  const auto* value = found == step.parameters.end() ? nullptr : found->second.as_string();
  return value == nullptr ? std::string() : *value;
}

std::vector<std::string> list_parameter(const planner::Step& step, std::string_view name) {
  std::vector<std::string> out;
  const auto found = step.parameters.find(name);
  const auto* list = found == step.parameters.end() ? nullptr : found->second.as_array();
  for (const auto& each : list == nullptr ? planner::Json::Array() : *list) {
    if (const auto* text = each.as_string()) {
      out.push_back(*text);
    }
  }
  return out;
}

std::string post_command(const std::string& url, std::string_view path, std::string_view options) {
  return fmt::format("curl -X POST -d '' {}-u USER '{}{}'", options, url, path);
}

bool policy_lets_stop(const planner::Step& step, Interrupt why) {
  switch (why) {
    case Interrupt::kPause:
      return text_parameter(step, "onPause") != "leave";
    case Interrupt::kHours:
      return text_parameter(step, "onClose") != "leave";
    case Interrupt::kCancel:
    case Interrupt::kSkip:
      break;
  }
  return true;
}

Readiness ready(const json& memo) { return {.kind = Readiness::Kind::kReady, .memo = memo}; }
Readiness wait(std::string reason) {
  return {.kind = Readiness::Kind::kWait, .reason = std::move(reason)};
}
Readiness not_needed(const json& result) {
  return {.kind = Readiness::Kind::kNotNeeded, .result = result};
}
Readiness impossible(std::string reason) {
  return {.kind = Readiness::Kind::kFail, .reason = std::move(reason)};
}

Verdict verdict(Verdict::Kind kind, std::string reason) {
  Verdict out;
  out.kind = kind;
  out.reason = std::move(reason);
  return out;
}
Verdict verdict(Verdict::Kind kind, std::string outcome, std::string reason) {
  auto out = verdict(kind, std::move(reason));
  out.outcome = std::move(outcome);
  return out;
}
Verdict running(const json& progress) {
  auto out = verdict(Verdict::Kind::kRunning, "");
  out.progress = progress;
  return out;
}
Verdict done(const json& result) {
  auto out = verdict(Verdict::Kind::kDone, "");
  out.result = result;
  return out;
}

Verdict judge_failed(const OperationNews& news) {
  if (news.code == "gate_closed" || news.code == "chunk_lock_held") {
    // Nothing was done: the step goes back to its gates, at no cost.
    return verdict(Verdict::Kind::kStopped, news.code, news.reason);
  }
  return verdict(Verdict::Kind::kNotHappened, news.code,
                 fmt::format("{}: {}", news.code, news.reason));
}

/// What the agent checks once more. It does not know who is registered, nor who is skipped: it
/// gets counts; which cluster it is, only the controller knows.
std::vector<api::GateLimit> gates_for_agent(const StepContext& context) {
  std::vector<api::GateLimit> out;
  const auto& snapshot = context.snapshot;
  const auto* node = context.node();
  const bool votes = node != nullptr && !node->read_only_replica;
  for (const auto& gate : context.step.gates) {
    auto limit = gate.limit;
    if (gate.name == "cluster-identity") {
      continue;
    }
    if (gate.name == "voters-alive") {
      limit = std::ranges::count_if(snapshot.nodes, [&](const auto& each) {
        return !each.read_only_replica && !context.skipped_nodes.contains(each.name);
      });
    } else if (gate.name == "quorum-margin") {
      const auto needed = votes && gate.limit == 0
                              ? std::min(snapshot.quorum(), snapshot.voters() - 1)
                              : snapshot.quorum();
      limit = static_cast<std::int64_t>(needed);
    } else if (gate.name == "lag-below" && !context.skipped_nodes.empty()) {
      continue;
    }
    // An agent of version 0.1 knows the former name only; one of this version reads both.
    const auto* entry = planner::find_gate(gate.name);
    const bool renamed = entry != nullptr && !entry->former_name.empty();
    out.push_back({renamed ? std::string(entry->former_name) : gate.name, limit});
  }
  return out;
}

net::awaitable<ActAnswer> act_through_agent(const StepContext& context, std::string kind,
                                            json parameters) {
  api::OperationRequest request;
  request.id = context.state.undoing ? context.state.undo_operation : context.state.operation;
  request.run = context.run;
  request.step = context.attempt_name();
  request.controller_epoch = context.epoch.value();
  request.kind = std::move(kind);
  if (!context.state.undoing) {
    parameters["gates"] = api::to_json(gates_for_agent(context));
  }
  request.parameters_json = parameters.dump();
  if (const auto* node = context.node()) {
    request.expected_instance_id = node->instance_id;
  }
  const auto node = context.step.node;
  const auto peers = context.peers;
  const auto status = co_await peers->start_operation(node, std::move(request));
  co_return to_answer(status);
}

namespace {

/// The members of the API's Progress; chunks also under their former names, for a version.
json progress_json(const api::OperationProgress& progress, std::int64_t chunk_size) {
  json out{{"phase", progress.phase}};
  const auto known = [&out](const char* name, std::int64_t number) {
    if (number >= 0) {
      out[name] = number;
    }
  };
  known("done", progress.done);
  known("total", progress.total);
  known("bytes", progress.bytes);
  known("rate", progress.rate);
  if (!progress.unit.empty()) {
    out["unit"] = progress.unit;
  }
  if (!progress.since.empty()) {
    out["since"] = progress.since;
  }
  const auto in_chunks = progress.unit == "chunks" ? 1 : progress.unit == "bytes" ? chunk_size : 0;
  if (in_chunks > 0 && progress.done >= 0 && progress.total > 0) {
    out["chunks_done"] = progress.done / in_chunks;
    out["chunks_total"] = (progress.total + in_chunks - 1) / in_chunks;
  }
  return out;
}

/// How gently the run's jobs are to work; nullopt: as the plan says.
std::optional<api::Throttle> wanted_throttle(const StepContext& context) {
  const auto found = context.values.find(kThrottleValue);
  if (found == context.values.end()) {
    return std::nullopt;
  }
  const auto value = parsed_or_empty(found->second);
  return api::Throttle{.percent = value.value("percent", 100),
                       .bytes_per_second = value.value("bytes_per_second", std::int64_t{0})};
}

}  // namespace

net::awaitable<OperationNews> ask_agent(const StepContext& context, std::string operation) {
  return ask_agent(context, context.step.node, std::move(operation));
}

net::awaitable<OperationNews> ask_agent(const StepContext& context, std::string node,
                                        std::string operation) {
  OperationNews news;
  const auto peers = context.peers;
  const auto status = co_await peers->operation(node, operation);
  if (!status) {
    news.kind = status.error().code == Errc::kNotFound ? OperationNews::Kind::kNotArrived
                                                       : OperationNews::Kind::kUnknown;
    news.reason = status.error().message;
    co_return news;
  }
  news.code = status->error_code;
  news.reason = status->error;
  news.result_text = status->result_json;
  news.result = in_snake_case(parsed_or_empty(status->result_json));
  if (status->progress) {
    const auto* seen = context.snapshot.find(node);
    news.progress = progress_json(*status->progress,
                                  seen != nullptr && seen->agent ? seen->agent->chunk_size : 0);
  }
  // An answer that is lost is no matter: the next look finds the former throttle, and sets it
  // again.
  if (const auto wanted = wanted_throttle(context);
      wanted && status->throttle && *status->throttle != *wanted) {
    static_cast<void>(co_await peers->throttle_operation(node, operation, *wanted));
  }
  switch (status->state) {
    case api::OperationState::kAccepted:
    case api::OperationState::kActing:
      news.kind = OperationNews::Kind::kUnderWay;
      break;
    case api::OperationState::kUnknown:
      news.kind = OperationNews::Kind::kUnknown;
      // Its own reason says what to do: "the server is stopped and does not start: ...".
      if (news.reason.empty()) {
        news.reason = "the agent does not know yet what its node did";
      }
      break;
    case api::OperationState::kDone:
      news.kind = OperationNews::Kind::kDone;
      break;
    case api::OperationState::kFailed:
    case api::OperationState::kCancelled:
      news.kind = OperationNews::Kind::kFailed;
      break;
  }
  co_return news;
}

}  // namespace verger::controller::steps
