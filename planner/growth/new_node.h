#pragma once

#include <cstdint>
#include <string>

#include "planner/detail/refusal_list.h"
#include "planner/restore/restore_facts.h"
#include "planner/snapshot.h"

namespace verger::planner::detail {

/// Why a machine with an agent and a stopped server cannot become a member yet.
class RefusingNewNode {
 public:
  /// `facts`: nullptr: its agent was not asked. All outlive this.
  RefusingNewNode(const ClusterSnapshot& snapshot, const RestoreFacts* facts,
                  const std::string& repository, std::int64_t disk_reserve)
      : snapshot_(snapshot), facts_(facts), repository_(repository), disk_reserve_(disk_reserve) {}

  void check_node(const NodeSnapshot& node, RefusalList& out) const;
  /// Of the backup, as this node's agent finds it.
  void check_backup(const NodeSnapshot& node, RefusalList& out) const;

 private:
  void check_agent(const NodeSnapshot& node, RefusalList& out) const;
  [[nodiscard]] const RestoreNode* own_facts(const NodeSnapshot& node) const {
    return facts_ == nullptr ? nullptr : facts_->find(node.name);
  }

  const ClusterSnapshot& snapshot_;
  const RestoreFacts* facts_;
  const std::string& repository_;
  std::int64_t disk_reserve_;
};

}  // namespace verger::planner::detail
