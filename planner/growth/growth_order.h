#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/growth/growth_policy.h"
#include "planner/make_plan.h"
#include "planner/restore/restore_facts.h"

namespace verger::planner::detail {

/// Which node joins, and in whose place. The pointers are into `snapshot`; it and `policy` outlive
/// this.
struct GrowthOrder {
  GrowthOrder(const ClusterSnapshot& seen, const Policy& of, std::optional<RestoreFacts> found);

  const ClusterSnapshot& snapshot;
  const Policy& policy;
  const GrowthPolicy& wanted;
  std::optional<RestoreFacts> facts;  ///< nullopt: the preflight could not tell
  const NodeSnapshot* joins = nullptr;
  const NodeSnapshot* replaced = nullptr;

  [[nodiscard]] bool votes() const { return wanted.role == GrowthRole::kVoter; }
  [[nodiscard]] const RestoreNode* own_facts() const {
    return facts && joins != nullptr ? facts->find(joins->name) : nullptr;
  }
  /// Before anything is touched, and again right before it is.
  [[nodiscard]] std::vector<Gate> gates() const;
};

/// Every reason at once why there is no plan; empty: nothing stands against it.
std::vector<Refusal> growth_refusals(const GrowthOrder& order);
/// The quorum before, meanwhile and afterwards, and what an operator has to know.
std::vector<std::string> growth_notes(const GrowthOrder& order);

}  // namespace verger::planner::detail
