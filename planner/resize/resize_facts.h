#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/restore/restore_facts.h"

namespace verger::planner {

/// What a node's agent says of its server's configuration file.
struct SizeNode {
  std::string name;
  std::string agent_problem;  ///< why it does not tell; empty: it does
  std::string file;           ///< empty: the agent does not know it
  std::string file_problem;   ///< why the size cannot be changed there; empty: it can
  std::int64_t size = 0;      ///< in the file; 0: not known
  std::string seeds_from;  ///< where else gossip seeds come from; empty: nothing is known of that
  std::int64_t seeds = 0;  ///< how many the file lists
  bool service_control = false;
  friend bool operator==(const SizeNode&, const SizeNode&) = default;
};

/// The facts of planner::Preflight: written by the controller, read by plan_resize.
struct ResizeFacts {
  std::vector<SizeNode> nodes;
  std::optional<RestoreFacts> restore;  ///< of the new nodes
  [[nodiscard]] const SizeNode* find(std::string_view name) const;
  friend bool operator==(const ResizeFacts&, const ResizeFacts&) = default;
};

Json to_json(const ResizeFacts& facts);
/// Error: kInvalidArgument.
Result<ResizeFacts> parse_resize_facts(const Json& value);

}  // namespace verger::planner
