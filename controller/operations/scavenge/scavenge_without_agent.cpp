#include "controller/operations/scavenge/scavenge_without_agent.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "controller/operations/scavenge/points_without_agent.h"
#include "controller/operations/scavenge/scavenge_support.h"
#include "nodeagent/client/judge.h"

namespace verger::controller::scavenge {
namespace {

using nlohmann::json;
using steps::bool_parameter;
using steps::done;
using steps::impossible;
using steps::int_parameter;
using steps::parsed_or_empty;
using steps::ready;
using steps::running;
using steps::text_parameter;
using steps::to_answer;
using steps::verdict;
using steps::wait;

/// Entries of $scavenges are written without waiting and may be late, or missing for ever.
constexpr std::chrono::seconds kLogGrace{30};
constexpr const char* kNoStart = "no trace of a start yet";
constexpr const char* kNoEnd = "it no longer runs, its log has no end yet";

/// A node's gossip shows its own log as it was when it gossiped last.
constexpr std::chrono::seconds kGossipAge{5};
constexpr const char* kEndedAwaitsLeader =
    "it has ended; where the leader's log ends, which the others have to reach, is read from newer "
    "gossip";

/// The node has been seen like this for as long as entries may take. Not measured from the start of
/// the step: a scavenge of hours leaves its last entry as late as any other.
bool was_patient(const StepContext& context, std::string_view reason) {
  return context.state.status == StepStatus::kUnknown && context.state.reason == reason &&
         context.in_reason >= kLogGrace;
}

/// The newest scavenges of the cluster, as far as they may be this node's.
struct RecentScavenges {
  std::set<std::string> own;  ///< signed by an address of this node
  /// Signed by an address that no registered node is known by: id -> address. Up to 24.2 a node
  /// signs with the address that it is bound to, which gossip need not show.
  std::map<std::string, std::string> unattributed;

  [[nodiscard]] std::set<std::string> all() const {
    auto out = own;
    for (const auto& [id, address] : unattributed) {
      out.insert(id);
    }
    return out;
  }
};

net::awaitable<Result<RecentScavenges>> recent_scavenges_of(const StepContext& context) {
  const auto peers = context.peers;
  const auto name = context.step.node;
  const auto members = context.cluster.nodes;
  const auto names = co_await peers->own_names(name);
  if (!names) {
    co_return names.error();
  }
  RecentScavenges out;
  const auto recent = co_await peers->recent_scavenges(name);
  if (!recent) {
    if (recent.error().code == Errc::kNotFound) {
      co_return out;  // no scavenge ever ran
    }
    co_return recent.error();
  }
  for (const auto& event : *recent) {
    if (client::is_named(*names, event.node_endpoint)) {
      out.own.insert(event.scavenge_id);
    } else if (!event.node_endpoint.empty()) {
      out.unattributed.emplace(event.scavenge_id, event.node_endpoint);
    }
  }
  for (const auto& member : members) {
    if (member.name == name || out.unattributed.empty()) {
      continue;
    }
    const auto others = co_await peers->own_names(member.name);
    std::erase_if(out.unattributed, [&others](const auto& each) {
      return others && client::is_named(*others, each.second);
    });
  }
  co_return out;
}

/// Of a memo: the run's point was in the node's log when the attempt began. A run there that then
/// finds nothing to do has had it done.
constexpr const char* kHasPoint = "has_point";
constexpr const char* kNothingToDo = "nothing-to-do";
/// The start may have been carried out although no trace of it was found.
constexpr const char* kNoTrace = "no-trace";

/// How the attempt before this one ended.
std::string last_outcome(const StepContext& context) {
  const auto outcomes = json::parse(context.state.outcomes, nullptr, false);
  return outcomes.is_array() && !outcomes.empty() ? outcomes.back().value("outcome", std::string())
                                                  : std::string();
}

/// A run that reached a point reported chunks, merges or index tables; one that found no point at
/// all only of its start and its end.
bool did_work(const std::vector<api::ScavengeEvent>& log) {
  return std::ranges::any_of(log, [](const api::ScavengeEvent& event) {
    return event.type != "$scavengeStarted" && event.type != "$scavengeCompleted";
  });
}

/// A run that resumes may end with no entries of its own: the one before it had reached the point.
net::awaitable<bool> earlier_did_work(const StepContext& context) {
  const json memo = *context.state.memo;
  const auto peers = context.peers;
  const auto name = context.step.node;
  if (memo.contains("earlier")) {
    for (const auto& id : memo["earlier"]) {
      const auto log = co_await peers->scavenge_log(name, id.get<std::string>());
      if (log && did_work(*log)) {
        co_return true;
      }
    }
  }
  co_return false;
}

/// Where the leader's log ends: a node that has all of it has every point written before.
json end_of_log(const planner::NodeSnapshot& leader) {
  return {{"writer", leader.writer_checkpoint}, {"commit", leader.last_commit_position}};
}

/// Why the run's point may be missing in this node's log; empty: the node has it, received,
/// processed and indexed. A `syncOnly` start without the point ends in Success at once and has
/// scavenged nothing.
std::string why_point_may_be_missing(const StepContext& context) {
  const auto* node = context.node();
  if (node == nullptr || !node->answered) {
    return node == nullptr ? "it is not registered" : node->problem;
  }
  const auto found = context.values.find("shared_point");
  const auto shared =
      found == context.values.end() ? json::object() : parsed_or_empty(found->second);
  std::int64_t writer = -1;
  std::int64_t commit = -1;
  if (shared.contains("end_of_log")) {
    writer = shared["end_of_log"].value("writer", -1LL);
    commit = shared["end_of_log"].value("commit", -1LL);
  } else if (const auto position = shared.value("position", -1LL); position >= 0) {
    writer = position + 1;
    commit = position;
  } else {
    // It is not known where the point is: the node needs what its leader has, or had a moment ago.
    const auto* leader = context.snapshot.leader();
    if (leader == nullptr) {
      return "there is no leader to compare its log with";
    }
    const auto lag = context.snapshot.lag(*node);
    if (lag == 0 || (node->leader_before >= 0 && node->chaser_checkpoint >= node->leader_before)) {
      return {};
    }
    writer = leader->writer_checkpoint;
    commit = leader->last_commit_position;
  }
  const auto has = [](std::int64_t own, std::int64_t wanted) {
    return own < 0 || wanted < 0 || own >= wanted;  // below 0: not reported
  };
  if (node->writer_checkpoint >= writer && has(node->chaser_checkpoint, writer) &&
      has(node->last_commit_position, commit)) {
    return {};
  }
  return fmt::format(
      "the scavenge point may not be in its log yet: it has {} of {} bytes, processed {}, indexed "
      "to {} of {}",
      node->writer_checkpoint, writer, node->chaser_checkpoint, node->last_commit_position, commit);
}

/// What a run without work of its own means. A start that is to finish what is open needs no point.
const char* text_without_work(const StepContext& context) {
  return text_parameter(context.step, "target") == "open"
             ? "the run's log ended in Success without any work: nothing was left to finish"
             : "the run's log ended in Success without any work: the node, whose log has the "
               "point, had nothing left to do for it";
}

/// `space_saved`: null where it is not known. `worked`: the run reported work of its own.
Verdict claim_done(const StepContext& context, const std::string& id, const json& space_saved,
                   std::optional<bool> worked) {
  json result{
      {"point", json()},
      {"scavenge_id", id},
      {"space_saved", space_saved},
      {"seen", worked.value_or(true) ? "the run's log ended in Success; the point cannot be seen"
                                     : text_without_work(context)}};
  if (worked) {
    result["untouched"] = !*worked;
  }
  auto out = done(result);
  if (makes_point(context)) {
    const auto* leader = context.snapshot.leader();
    const bool fresh =
        context.state.reason == kEndedAwaitsLeader && context.in_reason >= kGossipAge;
    if (leader == nullptr || !fresh) {
      return verdict(Verdict::Kind::kUnknown, kEndedAwaitsLeader);
    }
    out.values["shared_point"] =
        json{{"number", -1}, {"position", -1}, {"end_of_log", end_of_log(*leader)}}.dump();
  }
  return out;
}

/// A run was found whose id was never reported.
Verdict adopted(const std::string& id) {
  auto out = running({{"scavenge_id", id}});
  out.memo = json{{"scavenge_id", id}};
  return out;
}

Verdict stopped_by_someone() {
  return verdict(Verdict::Kind::kNotHappened, "stopped-by-someone",
                 "it was stopped from outside Verger");
}

/// No id was reported: a run that is new here since the start was requested is ours.
net::awaitable<Verdict> look_for_start(StepContext context, std::set<std::string> known) {
  auto recent = co_await recent_scavenges_of(context);
  if (!recent) {
    co_return verdict(Verdict::Kind::kUnknown, recent.error().message);
  }
  const auto fresh = std::ranges::find_if(
      recent->own, [&known](const std::string& each) { return !known.contains(each); });
  if (fresh != recent->own.end()) {
    co_return adopted(*fresh);
  }
  const auto* node = context.node();
  const auto peers = context.peers;
  const auto name = context.step.node;
  const auto version = node->version;
  const auto last = co_await peers->last_scavenge(name, version);  // from 24.10
  if (last && !last->id.empty() && !known.contains(last->id)) {
    co_return adopted(last->id);
  }
  if (!was_patient(context, kNoStart)) {
    co_return verdict(Verdict::Kind::kUnknown, kNoStart);
  }
  std::erase_if(recent->unattributed,
                [&known](const auto& each) { return known.contains(each.first); });
  auto out = verdict(Verdict::Kind::kNotHappened, kNoTrace,
                     "the start left no trace; the next attempt asks for no new point");
  for (const auto& [id, address] : recent->unattributed) {
    out.reason += fmt::format("; scavenge {} of {}, an address of no registered node, may be its",
                              id, address);
  }
  co_return out;
}

/// What the last entry of the run's log, `end`, says of it.
net::awaitable<Verdict> judge_end(StepContext context, std::string id,
                                  std::vector<api::ScavengeEvent> log, api::ScavengeEvent end) {
  if (end.result == "Success" && end.error.empty()) {
    const json memo = *context.state.memo;
    const bool worked = did_work(log) || co_await earlier_did_work(context);
    if (memo.value("sync_only", false) && makes_point(context) && !worked &&
        !memo.value(kHasPoint, false)) {
      co_return verdict(Verdict::Kind::kNotHappened, kNothingToDo,
                        "there is no new point: the attempt before ended without making one");
    }
    co_return claim_done(context, id, end.space_saved, worked);
  }
  if (end.result == "Stopped") {
    co_return context.state.interrupting
        ? verdict(Verdict::Kind::kStopped, "stopped-by-us", "stopped on request")
        : stopped_by_someone();
  }
  // Up to 24.6 an error is called Interrupted (or Failed) like a restart: the text shows which.
  const bool restarted = end.error.empty() || end.error == "The node was restarted.";
  co_return verdict(Verdict::Kind::kNotHappened, restarted ? "interrupted" : "errored",
                    fmt::format("it ended {}: {}", end.result, end.error));
}

/// The log has no end, and may never have one; from 24.10 the node itself remembers its last
/// scavenge, until it is restarted.
net::awaitable<Verdict> ask_for_last(StepContext context, std::string id) {
  const auto* node = context.node();
  const auto peers = context.peers;
  const auto name = context.step.node;
  const auto version = node->version;
  const auto last = co_await peers->last_scavenge(name, version);
  if (last && last->id == id) {
    switch (last->result) {
      case client::LastResult::kSuccess:
        co_return claim_done(context, id, json(), std::nullopt);
      case client::LastResult::kStopped:
        co_return stopped_by_someone();
      case client::LastResult::kErrored:
        co_return verdict(Verdict::Kind::kNotHappened, "errored",
                          "the node says that its last scavenge was this one, and Errored");
      case client::LastResult::kInProgress:
        co_return running({{"scavenge_id", id}});
      case client::LastResult::kUnknown:
        break;
    }
  }
  co_return was_patient(context, kNoEnd)
      ? verdict(Verdict::Kind::kNotHappened, "no-end", "it no longer runs, its log has no end")
      : verdict(Verdict::Kind::kUnknown, kNoEnd);
}

}  // namespace

net::awaitable<Readiness> prepare_without_agent(StepContext context) {
  json memo = *context.state.memo;
  const auto recent = co_await recent_scavenges_of(context);
  if (!recent) {
    co_return wait(fmt::format("its scavenge log cannot be read: {}", recent.error().message));
  }
  const auto target = text_parameter(context.step, "target");
  const bool makes = makes_point(context);
  if (target == "shared" && !makes && !context.values.contains("shared_point")) {
    co_return impossible("there is no shared point: the node that was to create it did not");
  }
  if (target == "shared" && !makes) {
    if (auto missing = why_point_may_be_missing(context); !missing.empty()) {
      co_return wait(std::move(missing));
    }
  }
  memo["makes_point"] = makes;
  PointsLook points;
  if (makes) {
    auto seen = co_await look_at_points(context);
    if (!seen) {
      co_return wait(fmt::format("its scavenge points cannot be read: {}", seen.error().message));
    }
    points = *std::move(seen);
    memo[kHasPoint] = points.has_new;
  }
  if (target == "new" || target == "shared") {
    // Where an earlier attempt began, the point may be there, and a second one must not be. Unless
    // the last attempt has looked for it, and found nothing to do; or the log shows it.
    const bool may_be_there = memo.contains("scavenge_id") || memo.contains("earlier") ||
                              last_outcome(context) == kNoTrace;
    memo["sync_only"] =
        !makes || points.has_new || (may_be_there && last_outcome(context) != kNothingToDo);
  }
  if (memo.contains("scavenge_id")) {
    memo["earlier"].push_back(memo["scavenge_id"]);
    memo.erase("scavenge_id");
  }
  if (last_outcome(context) == kNoTrace) {
    // What began since that start and may be this node's counts as its earlier work.
    const auto known = memo.value("known", std::set<std::string>());
    for (const auto& [id, address] : recent->unattributed) {
      if (!known.contains(id)) {
        memo["earlier"].push_back(id);
      }
    }
  }
  auto known = recent->all();
  if (const auto* node = context.node(); node != nullptr) {
    const auto version = node->version;
    const auto peers = context.peers;
    const auto name = context.step.node;
    if (const auto last = co_await peers->last_scavenge(name, version); last) {
      known.insert(last->id);  // it may be older than the newest entries
    }
  }
  memo["known"] = known;
  auto out = ready(memo);
  out.values = std::move(points.values);
  co_return out;
}

net::awaitable<ActAnswer> start_without_agent(StepContext context) {
  const json memo = *context.state.memo;
  ScavengeParameters parameters;
  parameters.threads = static_cast<std::int32_t>(int_parameter(context.step, "threads", 1));
  parameters.threshold = static_cast<std::int32_t>(int_parameter(context.step, "threshold", 0));
  parameters.throttle_percent =
      static_cast<std::int32_t>(int_parameter(context.step, "throttlePercent", 100));
  parameters.sync_only = memo.value("sync_only", bool_parameter(context.step, "syncOnly", true));
  const auto peers = context.peers;
  const auto node = context.step.node;
  const auto id = co_await peers->start_scavenge(node, parameters);
  auto answer = to_answer(id);
  if (id) {
    answer.memo = json{{"scavenge_id", *id}};
  }
  co_return answer;
}

net::awaitable<Verdict> observe_without_agent(StepContext context) {
  const auto* node = context.node();
  if (node == nullptr || !node->answered || !node->scavenge_running) {
    co_return verdict(Verdict::Kind::kUnknown,
                      node == nullptr ? "it is no longer registered" : node->problem);
  }
  const json memo = *context.state.memo;
  const auto id = memo.value("scavenge_id", std::string());
  std::set<std::string> known;
  if (memo.contains("known")) {
    known = memo["known"].get<std::set<std::string>>();
  }
  const auto& current = node->running.scavenge_id;
  if (*node->scavenge_running) {
    if (current == id) {
      co_return running({{"scavenge_id", id}});
    }
    if (id.empty() && !known.contains(current)) {
      co_return adopted(current);
    }
    co_return verdict(Verdict::Kind::kUnknown,
                      fmt::format("scavenge {} runs, which is not ours", current));
  }
  if (id.empty()) {
    co_return co_await look_for_start(std::move(context), std::move(known));
  }
  const auto peers = context.peers;
  const auto name = context.step.node;
  const auto log = co_await peers->scavenge_log(name, id);
  if (!log && log.error().code != Errc::kNotFound) {
    co_return verdict(Verdict::Kind::kUnknown, log.error().message);
  }
  if (log) {
    const auto end =
        std::ranges::find(*log, std::string("$scavengeCompleted"), &api::ScavengeEvent::type);
    if (end != log->end()) {
      co_return co_await judge_end(std::move(context), id, *log, *end);
    }
  }
  if (context.state.interrupting) {
    co_return verdict(Verdict::Kind::kStopped, "it no longer runs, its log has no end");
  }
  co_return co_await ask_for_last(std::move(context), id);
}

net::awaitable<void> stop_without_agent(StepContext context) {
  const json memo = *context.state.memo;
  const auto id = memo.value("scavenge_id", std::string());
  if (id.empty()) {
    co_return;  // whose scavenge it is, is not known yet
  }
  const auto peers = context.peers;
  const auto node = context.step.node;
  // 404 and no answer alike: whether it has stopped is observed.
  static_cast<void>(co_await peers->stop_scavenge(node, id));
}

}  // namespace verger::controller::scavenge
