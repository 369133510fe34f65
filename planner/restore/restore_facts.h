#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "planner/json.h"

namespace verger::planner {

/// The backup that a restore is made from. Times are ISO-8601, empty where they are not known;
/// numbers -1.
struct RestoreGeneration {
  std::string id;  ///< empty: there is none
  std::string node;
  std::string cluster;
  std::string server_version;
  std::string taken_at;            ///< its point in time
  std::string verified;            ///< when every byte of it was last found right; empty: never
  std::string drilled;             ///< when it was last restored as a trial with success
  std::string failed_check;        ///< its newest check found damage: what
  std::int64_t end_position = -1;  ///< where a restored log ends
  std::int64_t restored_bytes = 0;
  friend bool operator==(const RestoreGeneration&, const RestoreGeneration&) = default;
};

/// What a node's agent says of a restore onto its node.
struct RestoreNode {
  std::string name;
  std::string agent_problem;       ///< why it does not tell; empty: it does
  std::string repository_problem;  ///< why it cannot use the repository
  bool has_repository = false;     ///< it has one of that name
  std::string repository_id;
  bool has_generation = false;  ///< and finds the backup there
  std::string damage;           ///< why the backup's manifest cannot be read there
  std::string service_problem;  ///< why it cannot stop and start the server
  /// It keeps the files from before an earlier restore of the same backup.
  bool keeps_former = false;
  std::int64_t room = -1;  ///< bytes free on the disks of database and index together
  friend bool operator==(const RestoreNode&, const RestoreNode&) = default;
};

/// The facts of planner::Preflight for a restore: written by the controller, read by plan_restore.
struct RestoreFacts {
  RestoreGeneration generation;
  /// Why there is no generation; empty: there is one, or no agent could be asked.
  std::string generation_problem;
  std::vector<RestoreNode> nodes;  ///< by name; the nodes that would be restored
  /// So many runs of the cluster have redacted events: a backup may have their data.
  std::int64_t redactions = 0;
  [[nodiscard]] const RestoreNode* find(std::string_view name) const;
  friend bool operator==(const RestoreFacts&, const RestoreFacts&) = default;
};

Json to_json(const RestoreFacts& facts);
/// Members that are missing have their defaults, others are ignored. Error: kInvalidArgument,
/// naming the member that is of another type.
Result<RestoreFacts> parse_restore_facts(const Json& value);

}  // namespace verger::planner
