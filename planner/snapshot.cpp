#include "planner/snapshot.h"

#include <algorithm>

#include "planner/detail/lag.h"

namespace verger::planner {

std::string_view to_string(Role role) {
  switch (role) {
    case Role::kLeader:
      return "leader";
    case Role::kFollower:
      return "follower";
    case Role::kReadOnlyReplica:
      return "read-only replica";
    case Role::kOther:
      return "other";
  }
  return "other";
}

std::string_view to_string(AutoScavenge state) {
  switch (state) {
    case AutoScavenge::kAbsent:
      return "absent";
    case AutoScavenge::kNotConfigured:
      return "not configured";
    case AutoScavenge::kWaiting:
      return "waiting";
    case AutoScavenge::kInProgress:
      return "in progress";
    case AutoScavenge::kPausing:
      return "pausing";
    case AutoScavenge::kPaused:
      return "paused";
    case AutoScavenge::kUnknown:
      return "unknown";
  }
  return "unknown";
}

std::string_view to_string(CertificateSeen::Kind kind) {
  switch (kind) {
    case CertificateSeen::Kind::kLeaf:
      return "leaf";
    case CertificateSeen::Kind::kIntermediate:
      return "intermediate";
    case CertificateSeen::Kind::kUser:
      return "user";
    case CertificateSeen::Kind::kRoot:
      return "root";
  }
  return "leaf";
}

const ServedCertificate* NodeSnapshot::served_certificate() const {
  const auto found = std::ranges::find(certificates, "node", &ServedCertificate::of);
  return found == certificates.end() ? nullptr : &*found;
}

std::optional<bool> NodeSnapshot::file_differs_from_served() const {
  const auto* served = served_certificate();
  if (served == nullptr || served->chain.empty() || !certificate_files ||
      certificate_files->chain.empty()) {
    return std::nullopt;
  }
  return served->chain.front().fingerprint != certificate_files->chain.front().fingerprint;
}

const NodeSnapshot* ClusterSnapshot::find(std::string_view name) const {
  for (const auto* list : {&nodes, &joining}) {
    if (const auto found = std::ranges::find(*list, name, &NodeSnapshot::name);
        found != list->end()) {
      return &*found;
    }
  }
  return nullptr;
}

const NodeSnapshot* ClusterSnapshot::leader() const {
  const NodeSnapshot* leader = nullptr;
  for (const auto& node : nodes) {
    // What is not the registered node leads no more than itself.
    if (node.answered && node.alive && node.role == Role::kLeader && !node.wrong_identity) {
      if (leader != nullptr) {
        return nullptr;
      }
      leader = &node;
    }
  }
  return leader;
}

std::size_t ClusterSnapshot::voters() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(nodes, [](const auto& node) { return !node.read_only_replica; }));
}

std::int64_t ClusterSnapshot::lag(const NodeSnapshot& node) const {
  return detail::lag_behind(leader(), node);
}

std::int64_t detail::lag_behind(const NodeSnapshot* head, const NodeSnapshot& node) {
  if (head == nullptr || head->writer_checkpoint < 0 || node.writer_checkpoint < 0) {
    return -1;
  }
  const auto behind = [](std::int64_t leads, std::int64_t follows) {
    return leads < 0 || follows < 0 ? std::int64_t{0} : std::max<std::int64_t>(0, leads - follows);
  };
  return std::max({behind(head->writer_checkpoint, node.writer_checkpoint),
                   behind(head->writer_checkpoint, node.chaser_checkpoint),
                   behind(head->last_commit_position, node.last_commit_position)});
}

std::optional<Point> ClusterSnapshot::latest_point() const {
  std::optional<Point> latest;
  for (const auto& node : nodes) {
    if (node.agent && !node.agent->points.empty() &&
        (!latest || node.agent->points.back().number > latest->number)) {
      latest = node.agent->points.back();
    }
  }
  return latest;
}

}  // namespace verger::planner
