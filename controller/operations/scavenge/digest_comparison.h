#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "nodeagent/api/agent.h"
#include "planner/snapshot.h"

namespace verger::controller::scavenge {

/// Name of the run's value that holds a node's digest, and the value: {"point", "logical",
/// "readable" (null: not computed), "records", "readable_events"}; the chunks' digests are many, so
/// the agents keep them.
std::string digest_value_name(std::string_view node);
nlohmann::json digest_value(const api::Digest& digest, std::int64_t point);
/// nullopt: of another point, or unreadable.
std::optional<api::Digest> digest_of_value(const std::string& text, std::int64_t point);

/// One node's digests up to the shared point, and how far its scavenges had come then.
struct ComparedNode {
  std::string name;
  api::Digest digest;
  std::optional<planner::Point> last_finished;
};

/// The digest of one node before anything was removed there; empty: it was not recorded.
struct DigestBefore {
  std::string node{};
  std::string readable{};
};

/// Result of the step that compares digests: {"compared": true, "point", "equal", "readable_equal",
/// "readable_unchanged" (null: not recorded before), "same_point", "nodes": {name: {"logical",
/// "readable", "records", "readable_events", "last_finished"}}, "first_difference": {"chunk",
/// "nodes"} or null, "differences": [text]}. Only what must be equal is a difference: what clients
/// can read from nodes that were not scavenged beyond the point, or all to one later point, and the
/// points that the nodes ended at. Logical digests may rightly differ. Nodes whose records are the
/// same read the same: a readable digest that was not computed is that of another node with the
/// same logical one. "readable_equal" is null where only such nodes differ as are not compared,
/// "readable_unchanged" also where all are beyond the point and differ.
nlohmann::json comparison_of(std::int64_t point, std::vector<ComparedNode> nodes,
                             const DigestBefore& before);

}  // namespace verger::controller::scavenge
