#pragma once

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <vector>

#include "planner/backup/backup_facts.h"
#include "planner/backup/backup_policy.h"
#include "tests/unit/planner/clusters.h"

namespace verger::planner::testing {

/// Three nodes whose agents share the repository "main"; n1 leads, and there is no backup yet.
struct BackupPlans {
  explicit BackupPlans(int voters = 3) : snapshot(cluster(voters)) {
    policy.operation = BackupPolicy{};
    wanted().repository = "main";
    for (const auto& node : snapshot.nodes) {
      add_agent(node.name);
    }
  }
  BackupPolicy& wanted() { return backup_of(policy); }
  BackupAgentFacts& add_agent(const std::string& node) {
    return facts.agents.emplace_back(BackupAgentFacts{.node = node,
                                                      .problem_code = {},
                                                      .problem = {},
                                                      .hint = {},
                                                      .location = "/backup/prod",
                                                      .repository_id = "repository-1",
                                                      .compression = "none",
                                                      .free_bytes = std::int64_t{1} << 40U,
                                                      .drill_problem = {}});
  }
  BackupAgentFacts& agent(const std::string& node) {
    return *std::ranges::find(facts.agents, node, &BackupAgentFacts::node);
  }
  NodeSnapshot& node(const std::string& name) {
    return *std::ranges::find(snapshot.nodes, name, &NodeSnapshot::name);
  }
  NodeSnapshot& add_replica() {
    auto& added = snapshot.nodes.emplace_back(
        testing::node(static_cast<int>(snapshot.nodes.size()) + 1, Role::kReadOnlyReplica));
    add_agent(added.name);
    return added;
  }
  /// A differential one, unless `full`; newer than all before it.
  BackupGenerationFacts& add_backup(const std::string& of, bool full = false) {
    const auto number = facts.generations.size() + 1;
    return facts.generations.emplace_back(
        BackupGenerationFacts{.id = fmt::format("g{}", number),
                              .parent = full ? "" : "its-parent",
                              .node = of,
                              .cluster = "prod",
                              .started_at = fmt::format("2024-06-01T{:02}:00:00Z", number),
                              .finished_at = fmt::format("2024-06-01T{:02}:10:00Z", number),
                              .epoch_id = {},
                              .epoch_number = 3,
                              .end_position = 900'000,
                              .writer_position = 900'000,
                              .restored_bytes = std::int64_t{4} << 30U,
                              .damage = {},
                              .drilled_at = {},
                              .drill_passed = false});
  }
  std::expected<Plan, std::vector<Refusal>> plan() {
    snapshot.preflight = Preflight{.refusals = {}, .notes = {}, .facts = to_json(facts)};
    return make_plan(snapshot, policy);
  }
  std::vector<std::string> refused() {
    const auto made = plan();
    return made ? std::vector<std::string>() : codes(made.error());
  }
  /// "backup-n2 | verify-n2"; the refusals where there is no plan.
  std::string outlined() {
    const auto made = plan();
    return made ? outline(*made) : fmt::format("{}", fmt::join(codes(made.error()), ", "));
  }

  ClusterSnapshot snapshot;
  Policy policy;
  BackupFacts facts;
};

}  // namespace verger::planner::testing
