#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "planner/gates.h"
#include "planner/operation.h"
#include "planner/preflight.h"

namespace verger::planner::detail {

/// Every reason why there is no plan, gathered one by one.
class RefusalList {
 public:
  /// What each is for: Refusal.
  void refuse(std::string code, std::string node, std::string message, std::string hint);
  void add(Refusal refusal) { refusals_.push_back(std::move(refusal)); }
  /// What the operation's own check says of the policy: "policy-invalid".
  void refuse_policy(const Operation& operation, const Policy& policy);
  /// Those of the gates that refuse plans and are not open. `node`: the step's; nullptr: a step on
  /// the cluster.
  void refuse_closed(std::span<const Gate> gates, const ClusterSnapshot& snapshot,
                     const NodeSnapshot* node = nullptr);

  [[nodiscard]] bool empty() const { return refusals_.empty(); }
  /// In order of node, code and message, each once; leaves the list empty.
  std::vector<Refusal> take();

 private:
  std::vector<Refusal> refusals_;
};

}  // namespace verger::planner::detail
