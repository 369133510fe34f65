#pragma once

#include <string>
#include <vector>

#include "planner/certificates/certificate_facts.h"
#include "tests/unit/planner/clusters.h"

namespace verger::planner::testing {

/// What a preflight finds where nothing stands against new leaves of the same root.
inline CertificateFacts facts_of(const ClusterSnapshot& snapshot) {
  CertificateFacts out;
  for (const auto& node : snapshot.nodes) {
    out.nodes.push_back({.name = node.name,
                         .serial = "0a:" + node.name,
                         .common_name = "eventstoredb-node",
                         .not_after = "2024-09-01T00:00:00Z",
                         .next_serial = "0b:" + node.name,
                         .next_common_name = "eventstoredb-node",
                         .next_not_after = "2025-09-01T00:00:00Z",
                         .change_problem = {},
                         .dns_names = {node.name + ".example.com"},
                         .ip_addresses = {}});
  }
  return out;
}

/// Three nodes with TLS, n1 leads; a set of files that fits.
struct CertificateChange {
  explicit CertificateChange(int voters = 3) : snapshot(cluster(voters)) {
    for (auto& node : snapshot.nodes) {
      secure(node);
    }
    policy.operation = CertificatesPolicy{};
    auto& wanted = certificates_of(policy);
    wanted.source = CertificateSource::kFiles;
    wanted.set = std::string(64, 'a');
    facts = facts_of(snapshot);
  }
  static void secure(NodeSnapshot& node) {
    node.url = "https://" + node.name + ":2113";
    node.agent_url = "https://" + node.name + ":2114";
  }
  NodeSnapshot& add_replica() {
    auto& node = snapshot.nodes.emplace_back(
        testing::node(static_cast<int>(snapshot.nodes.size()) + 1, Role::kReadOnlyReplica));
    secure(node);
    facts = facts_of(snapshot);
    return node;
  }
  std::expected<Plan, std::vector<Refusal>> plan() {
    snapshot.preflight = Preflight{.refusals = {}, .notes = {}, .facts = to_json(facts)};
    return make_plan(snapshot, policy);
  }
  std::vector<std::string> refused() {
    const auto made = plan();
    return made ? std::vector<std::string>() : codes(made.error());
  }

  ClusterSnapshot snapshot;
  Policy policy;
  CertificateFacts facts;
};

}  // namespace verger::planner::testing
