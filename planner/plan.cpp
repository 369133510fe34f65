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
      {"ifPutOff", stage.if_deferred},
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
