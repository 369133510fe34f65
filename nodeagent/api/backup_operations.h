#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

/// The operation kinds of backups: names, parameters and results (docs/formats/agent-interface.md,
/// "Backups"). A parameter that has its default is not sent. The JSON names are the members' in
/// camelCase: `repository_id` is "repositoryId".
namespace verger::api {

// The result of these three: BackupGeneration (agent_backups.h).
inline constexpr std::string_view kBackupKind = "backup";
inline constexpr std::string_view kOfflineBackupKind = "offline_backup";
inline constexpr std::string_view kSnapshotBackupKind = "snapshot_backup";
inline constexpr std::string_view kBackupVerifyKind = "backup_verify";
inline constexpr std::string_view kBackupRetainKind = "backup_retain";
inline constexpr std::string_view kBackupDrillKind = "backup_drill";
/// {"serviceDeadlineMs", "resignFirst"} -> {"ran"}
inline constexpr std::string_view kStopServerKind = "stop_server";
inline constexpr std::string_view kRestoreKind = "restore";
/// RestoredGeneration -> {}
inline constexpr std::string_view kRestoreRevertKind = "restore_revert";
/// RestoredGeneration -> {"bytes"}
inline constexpr std::string_view kRestoreDiscardOldKind = "restore_discard_old";

// A failure's code is the engine's: "refused" where a retry does not help, "unavailable" where it
// may.
/// A scavenge works on the source, or worked on it during the copy: later it may succeed.
inline constexpr std::string_view kSourceBusyCode = "conflict";

/// What all of them may have: which repository, and how gently the job begins.
struct BackupTarget {
  std::string repository{};     ///< its name at the agent
  std::string repository_id{};  ///< refused where the repository's id is another; empty: any
  std::int32_t throttle_percent = 100;
  std::int64_t bytes_per_second = 0;
  friend bool operator==(const BackupTarget&, const BackupTarget&) = default;
};

/// backup, offline_backup, snapshot_backup.
struct BackupParameters : BackupTarget {
  std::string node{};  ///< under which name; a node has a chain of generations of its own
  std::string cluster{};
  bool full = false;  ///< read everything again
  std::int32_t threads = 2;
  std::string digests = "none";          ///< "none", "logical", "readable"
  std::int64_t service_deadline_ms = 0;  ///< of offline_backup only; 0: the agent's default
  friend bool operator==(const BackupParameters&, const BackupParameters&) = default;
};

/// backup_verify, backup_drill: one generation is read, and a check of it written.
struct BackupCheckParameters : BackupTarget {
  std::string generation{};
  std::string by{};  ///< who, for the record
  friend bool operator==(const BackupCheckParameters&, const BackupCheckParameters&) = default;
};

struct BackupRetainParameters : BackupTarget {
  std::string node{};  ///< only this node's generations; empty: all nodes'
  std::int32_t keep_last = 0;
  std::int32_t keep_daily = 0;
  std::int32_t keep_weekly = 0;
  std::int32_t keep_monthly = 0;
  std::int32_t keep_within_days = 0;
  std::vector<std::string> generations{};  ///< to delete these, without rules
  friend bool operator==(const BackupRetainParameters&, const BackupRetainParameters&) = default;
};

struct RestoreParameters : BackupTarget {
  std::string generation{};
  bool keep_old = false;
  std::int32_t threads = 2;
  bool other_node = false;  ///< the generation may be another node's
  friend bool operator==(const RestoreParameters&, const RestoreParameters&) = default;
};

/// restore_revert, restore_discard_old.
struct RestoredGeneration {
  std::string generation{};
  friend bool operator==(const RestoredGeneration&, const RestoredGeneration&) = default;
};

struct DamagedFile {
  std::string path{};
  std::string text{};
  friend bool operator==(const DamagedFile&, const DamagedFile&) = default;
};

/// Of backup_verify. Damage is no failure of the operation: it is done, and `passed` is false.
struct BackupVerified {
  std::string generation{};
  bool passed = false;
  std::int64_t bytes = 0;
  std::vector<DamagedFile> damage{};  ///< the first 100
  std::int64_t duration_ms = 0;
  friend bool operator==(const BackupVerified&, const BackupVerified&) = default;
};

struct BackupRetained {
  std::vector<std::string> deleted{};  ///< no longer listed
  std::int64_t blobs = 0;              ///< content removed, of what was deleted earlier
  std::int64_t bytes = 0;
  /// Why no content was removed now: a backup runs. The next retain does it.
  std::string postponed{};
  friend bool operator==(const BackupRetained&, const BackupRetained&) = default;
};

struct BackupDrilled {
  std::string generation{};
  bool passed = false;
  std::int64_t restore_ms = 0;
  std::int64_t start_ms = 0;
  std::int64_t read_ms = 0;
  std::int64_t end_position = -1;
  std::int64_t age_ms = -1;  ///< of the generation's point in time, when the drill began
  std::int64_t streams = -1;
  std::int64_t events = -1;
  bool logical_equal = false;
  bool readable_equal = false;
  std::string summary{};
  friend bool operator==(const BackupDrilled&, const BackupDrilled&) = default;
};

struct Restored {
  std::int64_t bytes = 0;
  std::int64_t duration_ms = 0;
  std::int64_t end_position = -1;
  std::string old_files{};  ///< where they were kept; empty: they are gone, or there were none
  friend bool operator==(const Restored&, const Restored&) = default;
};

std::string to_text(const BackupParameters& parameters);
std::string to_text(const BackupCheckParameters& parameters);
std::string to_text(const BackupRetainParameters& parameters);
std::string to_text(const RestoreParameters& parameters);
std::string to_text(const RestoredGeneration& parameters);
std::string to_text(const BackupVerified& result);
std::string to_text(const BackupRetained& result);
std::string to_text(const BackupDrilled& result);
std::string to_text(const Restored& result);

/// Of each of the types above: a kind's parameters (error: kInvalidArgument), a result
/// (kCorruption) and the names that the JSON may have.
template <class Parameters>
Result<Parameters> parse_backup_parameters(std::string_view parameters_json);
template <class Outcome>
Result<Outcome> parse_backup_result(std::string_view result_json);
template <class Parameters>
std::vector<std::string_view> backup_parameter_names();

extern template Result<BackupParameters> parse_backup_parameters(std::string_view);
extern template Result<BackupCheckParameters> parse_backup_parameters(std::string_view);
extern template Result<BackupRetainParameters> parse_backup_parameters(std::string_view);
extern template Result<RestoreParameters> parse_backup_parameters(std::string_view);
extern template Result<RestoredGeneration> parse_backup_parameters(std::string_view);
extern template Result<BackupVerified> parse_backup_result(std::string_view);
extern template Result<BackupRetained> parse_backup_result(std::string_view);
extern template Result<BackupDrilled> parse_backup_result(std::string_view);
extern template Result<Restored> parse_backup_result(std::string_view);
extern template std::vector<std::string_view> backup_parameter_names<BackupParameters>();
extern template std::vector<std::string_view> backup_parameter_names<BackupCheckParameters>();
extern template std::vector<std::string_view> backup_parameter_names<BackupRetainParameters>();
extern template std::vector<std::string_view> backup_parameter_names<RestoreParameters>();
extern template std::vector<std::string_view> backup_parameter_names<RestoredGeneration>();

}  // namespace verger::api
