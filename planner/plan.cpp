#include "planner/plan.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace verger::planner {

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
