#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "planner/json.h"

namespace verger::planner {

/// What the preflight of a backup found at a node's agent. Numbers are -1 and texts empty where
/// they are not known.
struct BackupAgentFacts {
  std::string node;
  /// Why its agent cannot use the repository: a code of a refusal, and for people. Empty: it can.
  std::string problem_code;
  std::string problem;
  std::string hint;
  std::string location;
  std::string repository_id;  ///< empty: nothing was stored there yet
  std::string compression;
  std::int64_t free_bytes = -1;    ///< of a directory's file system
  std::string drill_problem;       ///< why no drill can be made there; empty: one can
  std::string snapshot_problem{};  ///< why no disk snapshot can be made there; empty: one can
  friend bool operator==(const BackupAgentFacts&, const BackupAgentFacts&) = default;
};

/// A backup in the repository.
struct BackupGenerationFacts {
  std::string id;
  std::string parent;  ///< empty: everything was read for it
  std::string node;
  std::string cluster;
  std::string started_at;  ///< ISO-8601, as all times here
  std::string finished_at;
  std::string epoch_id;  ///< of the newest epoch in it
  std::int64_t epoch_number = -1;
  std::int64_t end_position = -1;
  std::int64_t writer_position = -1;
  std::int64_t restored_bytes = -1;
  std::string damage;      ///< of its manifest
  std::string drilled_at;  ///< of the last drill; empty: never
  bool drill_passed = false;
  friend bool operator==(const BackupGenerationFacts&, const BackupGenerationFacts&) = default;
};

/// The facts of planner::Preflight for backups: written by the controller, read by plan_backup.
struct BackupFacts {
  std::vector<BackupAgentFacts> agents;            ///< by node
  std::vector<BackupGenerationFacts> generations;  ///< by time, oldest first
  [[nodiscard]] const BackupAgentFacts* find_agent(std::string_view node) const;
  [[nodiscard]] const BackupGenerationFacts* find_generation(std::string_view id) const;
  /// The newest whose manifest can be read; nullptr: there is none.
  [[nodiscard]] const BackupGenerationFacts* latest_of(std::string_view node) const;
  friend bool operator==(const BackupFacts&, const BackupFacts&) = default;
};

Json to_json(const BackupFacts& facts);
/// Members that are missing have their defaults, others are ignored. Error: kInvalidArgument,
/// naming the member that is of another type.
Result<BackupFacts> parse_backup_facts(const Json& value);

}  // namespace verger::planner
