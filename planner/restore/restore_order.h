#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/make_plan.h"
#include "planner/restore/restore_facts.h"
#include "planner/restore/restore_policy.h"

namespace verger::planner::detail {

/// How long a step of a restore takes where nothing is known of earlier ones.
DurationRange expected_of_restore(std::string_view kind, std::int64_t bytes,
                                  std::int64_t bytes_per_second);

/// Which nodes a restore, or what is left of one, is about. The pointers are into `snapshot`, whose
/// nodes are sorted by name; it, `policy` and `history` outlive this.
struct RestoreOrder {
  RestoreOrder(const ClusterSnapshot& seen, const Policy& wanted, const History& past,
               std::optional<RestoreFacts> found);

  const ClusterSnapshot& snapshot;
  const Policy& policy;
  const RestorePolicy& wanted;
  const History& history;
  std::optional<RestoreFacts> facts;  ///< nullopt: the preflight could not tell
  std::vector<std::string> named;     ///< as the policy names them
  std::vector<const NodeSnapshot*> nodes;

  [[nodiscard]] bool whole_cluster() const { return wanted.scope == RestoreScope::kCluster; }
  [[nodiscard]] const RestoreNode* facts_of(const NodeSnapshot& node) const {
    return facts ? facts->find(node.name) : nullptr;
  }
  /// From this node's own history of such steps, or from the backup's size.
  [[nodiscard]] DurationRange expected(std::string_view kind, std::string_view node) const;
  /// What must hold before the server of one node of a healthy cluster is stopped, ...
  [[nodiscard]] std::vector<Gate> first_gates() const;
  /// ... and before the files of the stopped one are replaced.
  [[nodiscard]] std::vector<Gate> later_gates() const;
  [[nodiscard]] std::int32_t margin(const NodeSnapshot& node) const;
};

}  // namespace verger::planner::detail
