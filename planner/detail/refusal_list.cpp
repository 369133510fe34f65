#include "planner/detail/refusal_list.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace verger::planner::detail {

void RefusalList::refuse(std::string code, std::string node, std::string message,
                         std::string hint) {
  refusals_.push_back({std::move(code), std::move(node), std::move(message), std::move(hint)});
}

void RefusalList::refuse_policy(const Operation& operation, const Policy& policy) {
  for (auto& problem : operation.check(policy)) {
    refuse("policy-invalid", "", std::move(problem.message), std::move(problem.hint));
  }
}

void RefusalList::refuse_closed(std::span<const Gate> gates, const ClusterSnapshot& snapshot,
                                const NodeSnapshot* node) {
  for (const auto& gate : gates) {
    const auto* entry = find_gate(gate.name);
    if (entry == nullptr || !entry->refuses_plans) {
      continue;
    }
    for (auto& state : evaluate_causes(gate, snapshot, node)) {
      if (state.verdict != GateVerdict::kOpen) {
        refuse(std::move(state.code), std::move(state.node), std::move(state.reason),
               std::move(state.hint));
      }
    }
  }
}

std::vector<Refusal> RefusalList::take() {
  std::ranges::sort(refusals_, {}, [](const Refusal& each) {
    return std::tie(each.node, each.code, each.message);
  });
  const auto repeated = std::ranges::unique(refusals_);
  refusals_.erase(repeated.begin(), repeated.end());
  return std::exchange(refusals_, {});
}

}  // namespace verger::planner::detail
