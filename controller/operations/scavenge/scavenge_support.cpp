#include "controller/operations/scavenge/scavenge_support.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>
#include <variant>

namespace verger::controller::scavenge {

using nlohmann::json;
using steps::parsed_or_empty;
using steps::text_parameter;

bool makes_point(const StepContext& context) { return makes_point(context, *context.state.memo); }

bool makes_point(const StepContext& context, const json& memo) {
  const auto target = text_parameter(context.step, "target");
  if (memo.contains("makes_point")) {
    return memo["makes_point"].get<bool>();
  }
  // Side by side, two would make two.
  const auto* own = std::get_if<planner::ScavengePolicy>(&context.policy.operation);
  const bool one_by_one = own == nullptr || own->strategy != planner::Strategy::kConcurrent;
  return !context.values.contains("shared_point") &&
         (target == "new" || (target == "shared" && one_by_one));
}

std::int64_t shared_point(const StepContext& context) {
  const auto found = context.values.find("shared_point");
  return found == context.values.end() ? -1 : parsed_or_empty(found->second).value("number", -1LL);
}

std::string point_not_seen(const planner::AgentFacts& facts, std::int64_t number) {
  return facts.log_as_of.empty()
             ? fmt::format("scavenge point {} has not reached it yet", number)
             : fmt::format("scavenge point {} is not in its log as of {}", number, facts.log_as_of);
}
std::string silent_agent(const planner::NodeSnapshot* node) {
  const std::string text = "its agent does not tell the state of its scavenge";
  return node == nullptr || node->agent_problem.empty() ? text : text + ": " + node->agent_problem;
}

std::string size_before_name(std::string_view node) { return fmt::format("size_before/{}", node); }

void note_size_before(const StepContext& context, const planner::AgentFacts& facts, json& memo) {
  if (memo.contains("chunks_below")) {
    return;
  }
  if (const auto found = context.values.find(size_before_name(context.step.node));
      found != context.values.end()) {
    const auto value = parsed_or_empty(found->second);
    memo["chunks_below"] = value.value("chunks", -1LL);
    memo["bytes_before"] = value.value("bytes", -1LL);
    return;
  }
  memo["chunks_below"] = facts.newest_chunk;
  memo["bytes_before"] = facts.complete_chunk_bytes;
}

net::awaitable<void> note_size_up_to_point(const StepContext& context, json& memo) {
  const auto* node = context.node();
  const auto point = context.values.find("shared_point");
  if (node == nullptr || !node->agent || node->agent->chunk_size <= 0 ||
      point == context.values.end() || context.state.memo->contains("chunks_below") ||
      context.values.contains(size_before_name(context.step.node))) {
    co_return;
  }
  const auto position = parsed_or_empty(point->second).value("position", -1LL);
  const auto end = position < 0 ? -1 : position / node->agent->chunk_size + 1;
  if (end < 0 || end >= chunks_below(memo)) {
    co_return;
  }
  const auto name = context.step.node;
  const auto peers = context.peers;
  const auto facts = co_await peers->facts(name, end);
  if (facts && facts->bytes_below >= 0) {
    memo["chunks_below"] = end;
    memo["bytes_before"] = facts->bytes_below;
  }
}

std::int64_t chunks_below(const json& memo) { return memo.value("chunks_below", -1LL); }

void add_sizes(const json& memo, const api::NodeFacts& facts, json& result) {
  const auto chunks = chunks_below(memo);
  const auto before = chunks < 0 ? -1LL : memo.value("bytes_before", -1LL);
  const bool grown = facts.compared_chunk >= chunks;  // what was completed since is known as well
  const auto after = grown ? facts.compared_bytes : facts.bytes_below;
  const bool comparable = before >= 0 && after >= 0;
  result["bytes_before"] = comparable ? json(before + (grown ? facts.completed_bytes : 0)) : json();
  result["bytes_after"] = comparable ? json(after) : json();
  result["chunks_compared"] = comparable ? json(grown ? facts.compared_chunk : chunks) : json();
}

std::optional<json> sizes_to_come(const json& memo, const api::AgentFacts& facts) {
  const bool is_known =
      facts.last_finished_point && std::ranges::any_of(facts.points, [&facts](const auto& point) {
        return point.number == facts.last_finished_point->number;
      });
  if (chunks_below(memo) < 0 || is_known || facts.log_as_of.empty() ||
      !facts.files_problem.empty()) {
    return std::nullopt;
  }
  const auto seen = memo.value("finished_seen", facts.taken_at);
  return facts.log_as_of > seen ? std::nullopt : std::optional(json{{"finished_seen", seen}});
}

void keep_size_before(const StepContext& context, const json& memo, Verdict& verdict) {
  if (chunks_below(memo) >= 0) {
    verdict.values[size_before_name(context.step.node)] =
        json{{"chunks", chunks_below(memo)}, {"bytes", memo.value("bytes_before", -1LL)}}.dump();
  }
}

net::awaitable<Readiness> ready_for_shared_point(StepContext context) {
  const auto* node = context.node();
  if (node == nullptr || !node->agent) {
    co_return steps::wait(silent_agent(node));
  }
  const auto& facts = *node->agent;
  const auto number = shared_point(context);
  if (number < 0) {
    co_return steps::impossible("there is no shared point");
  }
  const auto found = std::ranges::find(facts.points, number, &planner::Point::number);
  const auto position = found == facts.points.end() ? -1 : found->position;
  if (facts.last_finished && facts.last_finished->number >= number && !facts.unfinished) {
    co_return steps::not_needed(
        {{"point", {{"number", number}, {"position", position}}}, {"already", true}});
  }
  if (position < 0) {
    co_return steps::wait(point_not_seen(facts, number));
  }
  // What is in the active chunk is not scavenged, and a stopped node cannot complete one.
  if (!facts.chunk_is_complete(position)) {
    co_return steps::wait(
        fmt::format("the chunk with scavenge point {} is not complete there yet", number));
  }
  json memo = *context.state.memo;
  memo["point"] = number;
  memo["position"] = position;
  if (!memo.contains("resumed")) {
    memo["resumed"] = facts.unfinished.has_value();  // what is left of another's
  }
  note_size_before(context, facts, memo);
  co_await note_size_up_to_point(context, memo);
  co_return steps::ready(memo);
}

net::awaitable<Verdict> seen_at_shared_point(StepContext context, json agent_result) {
  const auto node_name = context.step.node;
  const auto peers = context.peers;
  const json memo = *context.state.memo;
  const auto facts = co_await peers->facts(node_name, chunks_below(memo));
  if (!facts) {
    co_return steps::verdict(
        Verdict::Kind::kUnknown,
        fmt::format("the agent of {} does not answer: {}", node_name, facts.error().message));
  }
  const auto* node = context.node();
  if (!facts->node_running || node == nullptr || !node->answered ||
      node->role == planner::Role::kOther) {
    co_return steps::verdict(Verdict::Kind::kUnknown, "the node has not come back yet");
  }
  const auto number = memo.value("point", -1LL);
  const auto& finished = facts->last_finished_point;
  if (!finished || finished->number < number || facts->unfinished) {
    co_return steps::verdict(Verdict::Kind::kStopped, "other-point",
                             fmt::format("it finished point {}, point {} is still to come",
                                         finished ? finished->number : -1, number));
  }
  if (const auto note = sizes_to_come(memo, *facts)) {
    auto almost = steps::running({{"phase", "its agent reads its log"}});
    almost.memo = *note;
    co_return almost;
  }
  json result{{"point", {{"number", number}, {"position", memo.value("position", -1LL)}}},
              {"scavenge_id", agent_result.value("scavenge_id", json())},
              {"space_saved", agent_result.value("space_saved", json())},
              {"records_removed", agent_result.value("records_removed", json())}};
  for (const char* name : {"chunks_switched", "chunks_left"}) {
    if (agent_result.contains(name)) {
      result[name] = agent_result.at(name);
    }
  }
  add_sizes(memo, *facts, result);
  auto out = steps::done(result);
  keep_size_before(context, memo, out);
  co_return out;
}

}  // namespace verger::controller::scavenge
