#include "planner/plan.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/clock.h"
#include "engine/base/digest.h"
#include "planner/detail/hashed_text.h"

namespace verger::planner {
namespace {

Json json_of(const Step& step, bool with_estimates) {
  Json::Array gates;
  for (const auto& gate : step.gates) {
    gates.push_back(Json::Object{{"limit", gate.limit}, {"name", gate.name}});
  }
  Json::Object out{
      {"act", step.act},
      {"attempts", step.attempts},
      {"cost", Json::Object{{"leaderMove", step.cost.leader_move},
                            {"quorumMargin", step.cost.quorum_margin}}},
      {"gates", std::move(gates)},
      {"id", step.id},
      {"kind", step.kind},
      {"node", step.node},
      {"observe", step.observe},
      {"parameters", step.parameters},
      {"reason", step.reason},
      {"undo", step.undo},
  };
  if (with_estimates) {
    out["expected"] =
        Json::Object{{"highMs", step.expected.high_ms}, {"lowMs", step.expected.low_ms}};
  }
  return out;
}

Json json_of(const Stage& stage, bool with_estimates) {
  Json::Array groups;
  for (const auto& group : stage.groups) {
    Json::Array steps;
    for (const auto& step : group) {
      steps.push_back(json_of(step, with_estimates));
    }
    groups.emplace_back(std::move(steps));
  }
  Json::Object out{
      {"deadlineMs", stage.deadline_ms},
      {"groups", std::move(groups)},
      {"id", stage.id},
      {"ifPutOff", stage.if_put_off},
      {"onFailure", to_string(stage.on_failure)},
      {"title", stage.title},
      {"undoDeadlineMs", stage.undo_deadline_ms},
  };
  if (stage.closing) {
    out["closing"] = true;
  }
  return out;
}

Json::Object common_json(const Plan& plan, bool with_estimates) {
  Json::Array basis;
  for (const auto& node : plan.basis.nodes) {
    Json::Array certificates(node.certificates.begin(), node.certificates.end());
    basis.push_back(Json::Object{{"agentUrl", node.agent_url},
                                 {"certificates", std::move(certificates)},
                                 {"instanceId", node.instance_id},
                                 {"name", node.name},
                                 {"role", node.role},
                                 {"url", node.url},
                                 {"version", node.version}});
  }
  Json::Array stages;
  for (const auto& stage : plan.stages) {
    stages.push_back(json_of(stage, with_estimates));
  }
  return {{"basis", std::move(basis)},
          {"cluster", plan.cluster},
          {"policy", to_json(plan.policy)},
          {"stages", std::move(stages)}};
}

}  // namespace

std::string_view to_string(FailureRule rule) {
  switch (rule) {
    case FailureRule::kStop:
      return "stop";
    case FailureRule::kSkipNode:
      return "skip-node";
    case FailureRule::kUndoAll:
      return "undo-all";
  }
  return "stop";
}

std::string_view to_string(Strategy strategy) {
  switch (strategy) {
    case Strategy::kRolling:
      return "rolling";
    case Strategy::kFollowersOnly:
      return "followers-only";
    case Strategy::kConcurrent:
      return "concurrent";
    case Strategy::kOffline:
      return "offline";
  }
  return "rolling";
}

std::string_view to_string(ReplicaRule rule) {
  return rule == ReplicaRule::kInclude ? "include" : "skip";
}
std::string_view to_string(PauseRule rule) { return rule == PauseRule::kStop ? "stop" : "leave"; }
std::string_view to_string(ForeignRule rule) {
  return rule == ForeignRule::kWait ? "wait" : "adopt";
}
std::string_view to_string(AutoScavengeRule rule) {
  return rule == AutoScavengeRule::kRefuse ? "refuse" : "pause";
}
std::string_view to_string(LeaderRule rule) {
  return rule == LeaderRule::kResign ? "resign" : "in-place";
}

const Step* Plan::find_step(std::string_view id) const {
  for (const auto& stage : stages) {
    for (const auto& group : stage.groups) {
      const auto found = std::ranges::find(group, id, &Step::id);
      if (found != group.end()) {
        return &*found;
      }
    }
  }
  return nullptr;
}

Json to_json(const Policy& policy) {
  const auto& s = policy.scavenge;
  Json::Object scavenge{{"compareDigests", s.compare_digests},
                        {"digestDeadlineMs", s.digest_deadline_ms},
                        {"diskReserveBytes", s.disk_reserve_bytes},
                        {"electionSettleMs", s.election_settle_ms},
                        {"gateDeadlineMs", s.gate_deadline_ms},
                        {"lagLimitBytes", s.lag_limit_bytes},
                        {"leader", to_string(s.leader)},
                        {"leaderHoldMs", s.leader_hold_ms},
                        {"moveDeadlineMs", s.move_deadline_ms},
                        {"onPause", to_string(s.on_pause)},
                        {"readOnlyReplicas", to_string(s.read_only_replicas)},
                        {"resignAttempts", s.resign_attempts},
                        {"scavengeAttempts", s.scavenge_attempts},
                        {"scavengeDeadlineMs", s.scavenge_deadline_ms},
                        {"strategy", to_string(s.strategy)},
                        {"threads", s.threads},
                        {"threshold", s.threshold},
                        {"throttlePercent", s.throttle_percent},
                        {"undoDeadlineMs", s.undo_deadline_ms}};
  // Members that came later are there only where they say something: older plans keep their hash.
  if (s.on_close != PauseRule::kStop) {
    scavenge["onClose"] = to_string(s.on_close);
  }
  if (s.foreign != ForeignRule::kWait) {
    scavenge["foreign"] = to_string(s.foreign);
  }
  if (s.auto_scavenge != AutoScavengeRule::kRefuse) {
    scavenge["autoScavenge"] = to_string(s.auto_scavenge);
  }
  const ScavengePolicy defaults;
  if (s.clock_skew_limit_ms != defaults.clock_skew_limit_ms) {
    scavenge["clockSkewLimitMs"] = s.clock_skew_limit_ms;
  }
  if (s.certificate_margin_ms != defaults.certificate_margin_ms) {
    scavenge["certificateMarginMs"] = s.certificate_margin_ms;
  }
  if (s.move_settle_ms != defaults.move_settle_ms) {
    scavenge["moveSettleMs"] = s.move_settle_ms;
  }
  if (s.check_server_work != defaults.check_server_work) {
    scavenge["checkServerWork"] = s.check_server_work;
  }
  if (s.server_work_back_ms != defaults.server_work_back_ms) {
    scavenge["serverWorkBackMs"] = s.server_work_back_ms;
  }
  if (s.server_work_wait_ms != defaults.server_work_wait_ms) {
    scavenge["serverWorkWaitMs"] = s.server_work_wait_ms;
  }
  if (s.restart_server_work != defaults.restart_server_work) {
    scavenge["restartServerWork"] = s.restart_server_work;
  }
  if (!s.queries.empty()) {
    Json::Array queries;
    for (const auto& each : s.queries) {
      queries.push_back(Json::Object{{"atLeast", each.at_least},
                                     {"atMost", each.at_most},
                                     {"name", each.name},
                                     {"query", each.query},
                                     {"url", each.url}});
    }
    scavenge["queries"] = std::move(queries);
  }
  const std::pair<const char*, std::int32_t> by_role[] = {
      {"leaderThreads", s.leader_threads},
      {"leaderThrottlePercent", s.leader_throttle_percent},
      {"replicaThreads", s.replica_threads},
      {"replicaThrottlePercent", s.replica_throttle_percent}};
  for (const auto& [name, value] : by_role) {
    if (value != 0) {
      scavenge[name] = value;
    }
  }
  return Json::Object{
      {"name", policy.name}, {"operation", policy.operation}, {"scavenge", std::move(scavenge)}};
}

Json to_json(const Refusal& refusal) {
  return Json::Object{{"code", refusal.code},
                      {"hint", refusal.hint},
                      {"message", refusal.message},
                      {"node", refusal.node}};
}

Json hashed_json(const Plan& plan) { return common_json(plan, false); }

Json to_json(const Plan& plan) {
  auto out = common_json(plan, true);
  Json::Array forecast;
  for (const auto& node : plan.forecast) {
    Json::Object entry{{"node", node.node}, {"row", node.row}};
    if (node.disk_free >= 0) {
      entry["databaseBytes"] = node.database_bytes;
      entry["diskFree"] = node.disk_free;
      entry["diskNeeded"] = node.disk_needed;
    }
    forecast.push_back(std::move(entry));
  }
  out["forecast"] = std::move(forecast);
  out["notes"] = Json::Array(plan.notes.begin(), plan.notes.end());
  out["hash"] = plan.hash;
  out["madeAt"] = format_ticks(plan.made_at);
  return out;
}

std::string hashed_text(const Plan& plan) { return detail::HashedText(nullptr).of(plan); }

std::string text_of(const Plan& plan) {
  return detail::HashedText(nullptr, /*whole=*/true).of(plan);
}

std::string hash_of(const Plan& plan) {
  Sha256 digest;
  const auto rest = detail::HashedText(&digest).of(plan);
  digest.update(as_bytes(rest));
  return to_hex(digest.finish());
}

Basis basis_of(const ClusterSnapshot& snapshot) {
  Basis basis;
  basis.nodes.reserve(snapshot.nodes.size());
  for (const auto& node : snapshot.nodes) {
    std::vector<std::string> serials;
    serials.reserve(node.certificates.size());
    for (const auto& certificate : node.certificates) {
      serials.push_back(certificate.of + ":" + certificate.serial);
    }
    basis.nodes.push_back(BasisNode{.name = node.name,
                                    .url = node.url,
                                    .agent_url = node.agent_url,
                                    .role = std::string(to_string(node.role)),
                                    .version = node.version,
                                    .instance_id = node.instance_id,
                                    .certificates = std::move(serials)});
  }
  if (!std::ranges::is_sorted(basis.nodes, {}, &BasisNode::name)) {
    std::ranges::sort(basis.nodes, {}, &BasisNode::name);
  }
  return basis;
}

std::vector<std::string> diff_basis(const Basis& planned, const Basis& now) {
  std::vector<std::string> out;
  const auto changed = [&out](const std::string& node, std::string_view what, const std::string& a,
                              const std::string& b) {
    if (a != b) {
      out.push_back(fmt::format("{}: {} was {}, is {}", node, what, a.empty() ? "unknown" : a,
                                b.empty() ? "unknown" : b));
    }
  };
  for (const auto& old : planned.nodes) {
    const auto found = std::ranges::find(now.nodes, old.name, &BasisNode::name);
    if (found == now.nodes.end()) {
      out.push_back(fmt::format("{}: was a member, is no longer registered", old.name));
      continue;
    }
    changed(old.name, "address", old.url, found->url);
    changed(old.name, "agent", old.agent_url, found->agent_url);
    changed(old.name, "role", old.role, found->role);
    changed(old.name, "version", old.version, found->version);
    changed(old.name, "instance (it restarted)", old.instance_id, found->instance_id);
    // A certificate that was not looked at, or not visible, has not changed.
    if (!old.certificates.empty() && !found->certificates.empty() &&
        old.certificates != found->certificates) {
      out.push_back(fmt::format("{}: the certificates were {}, are {}", old.name,
                                fmt::join(old.certificates, ", "),
                                fmt::join(found->certificates, ", ")));
    }
  }
  for (const auto& node : now.nodes) {
    if (std::ranges::find(planned.nodes, node.name, &BasisNode::name) == planned.nodes.end()) {
      out.push_back(fmt::format("{}: is a new member", node.name));
    }
  }
  return out;
}

}  // namespace verger::planner
