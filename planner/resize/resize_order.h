#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/make_plan.h"
#include "planner/resize/resize_facts.h"
#include "planner/resize/resize_policy.h"

namespace verger::planner::detail {

/// Which voters stay, join and leave. The pointers are into `snapshot`, whose nodes are sorted by
/// name; it and `policy` outlive this.
struct ResizeOrder {
  ResizeOrder(const ClusterSnapshot& seen, const Policy& of, std::optional<ResizeFacts> found);

  const ClusterSnapshot& snapshot;
  const Policy& policy;
  const ResizePolicy& wanted;
  std::optional<ResizeFacts> facts;        ///< nullopt: the preflight could not tell
  std::int64_t from = 0;                   ///< registered voters
  std::vector<std::string> named;          ///< that leave, as the policy names them
  std::vector<const NodeSnapshot*> stays;  ///< in the order of their restarts: the leader last
  std::vector<const NodeSnapshot*> joins;
  std::vector<const NodeSnapshot*> leaves;

  [[nodiscard]] bool grows() const { return wanted.to > from; }
  [[nodiscard]] const SizeNode* facts_of(const NodeSnapshot& node) const {
    return facts ? facts->find(node.name) : nullptr;
  }
  [[nodiscard]] const RestoreFacts* restore() const {
    return facts && facts->restore ? &*facts->restore : nullptr;
  }
  /// An operator answers for it: its agent is silent.
  [[nodiscard]] bool is_gone(const NodeSnapshot& node) const {
    return wanted.leaving_are_gone && !node.answered && !node.agent_answered;
  }
  /// Before anything is touched.
  [[nodiscard]] std::vector<Gate> gates() const;
};

/// Every reason at once why there is no plan; empty: nothing stands against it.
std::vector<Refusal> resize_refusals(const ResizeOrder& order);
/// The quorum before, meanwhile and afterwards, and what an operator has to know.
std::vector<std::string> resize_notes(const ResizeOrder& order);

/// "host:port" of a node's URL, as gossip seeds have it.
std::string seed_of(const NodeSnapshot& node);

}  // namespace verger::planner::detail
