#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/types.h"

/// What the agent interface says of backups (docs/formats/agent-interface.md, "Backups"):
///   GET /agent/v1/backups/repositories             {"repositories": [BackupRepository]}
///   GET /agent/v1/backups?repository=R[&node=N]    {"generations": [BackupGeneration]}, by time
/// Numbers are -1, times zero and texts empty where they are not known; times are ISO-8601 UTC on
/// the wire. The operations are in backup_operations.h.
namespace verger::api {

/// Where an agent keeps backups, under a name that its configuration gave it.
struct BackupRepository {
  std::string name{};
  std::string location{};  ///< a directory or s3://BUCKET/PREFIX; no secrets
  /// The same at all agents that mean the same repository; empty: not known, or nothing was stored
  /// there yet.
  std::string id{};
  std::string error{};  ///< why it cannot be used now; empty: it can
  bool encrypted = false;
  std::string compression{};       ///< "none" or "zstd"
  std::int64_t free_bytes = -1;    ///< of the file system of a directory
  std::int64_t generations = -1;   ///< how many are there
  bool drills = false;             ///< the agent can restore to a scratch directory
  std::string drill_problem{};     ///< why it cannot
  bool snapshots = false;          ///< the agent can make disk snapshots
  std::string snapshot_problem{};  ///< why it cannot
  friend bool operator==(const BackupRepository&, const BackupRepository&) = default;
};

/// The newest check of a kind of one generation.
struct BackupCheckSummary {
  Ticks at{};
  bool passed = false;
  std::string summary{};  ///< for people
  std::int64_t duration_ms = 0;
  friend bool operator==(const BackupCheckSummary&, const BackupCheckSummary&) = default;
};

/// One backup, as its manifest says; with `damage` only `id` is known.
struct BackupGeneration {
  std::string id{};
  std::string parent{};  ///< the generation whose files were not read again; empty: a full backup
  std::string node{};
  std::string cluster{};
  std::string host{};
  std::string server_version{};
  std::string state{};  ///< of the source: "live", "stopped", "frozen"
  Ticks started_at{};
  Ticks checkpoints_at{};  ///< its point in time
  Ticks finished_at{};
  std::int64_t end_position = -1;     ///< where a restored log ends
  std::int64_t writer_position = -1;  ///< the source's writer at `checkpoints_at`
  std::int64_t epoch_number = -1;     ///< the newest below `end_position`
  std::string epoch_id{};             ///< of that epoch
  std::int64_t chunk_size = 0;
  std::int64_t stored_bytes = 0;
  std::int64_t restored_bytes = 0;  ///< disk space of a restore
  std::int64_t reused_bytes = 0;    ///< of `stored_bytes`: not read again
  std::uint64_t files = 0;
  std::string logical_digest{};  ///< hex SHA-256 (docs/operations/digests.md); empty: not wanted
  std::string readable_digest{};
  std::vector<std::string> warnings{};
  std::string damage{};  ///< why its manifest cannot be read
  std::optional<BackupCheckSummary> last_verify{};
  std::optional<BackupCheckSummary> last_drill{};
  friend bool operator==(const BackupGeneration&, const BackupGeneration&) = default;
};

// JSON, as the interface has it. Readers' error: kCorruption, saying where.
std::string to_text(const BackupGeneration& generation);
std::string to_text(const std::vector<BackupRepository>& repositories);
std::string to_text(const std::vector<BackupGeneration>& generations);
Result<BackupGeneration> parse_backup_generation(std::string_view body);
Result<std::vector<BackupRepository>> parse_backup_repositories(std::string_view body);
Result<std::vector<BackupGeneration>> parse_backup_generations(std::string_view body);

}  // namespace verger::api
