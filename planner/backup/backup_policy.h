#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace verger::planner {

struct Operation;
struct Policy;

/// What a run does with backups.
enum class BackupTask : std::uint8_t {
  kCreate,  ///< makes one, and checks it, drills it and deletes older ones as the policy says
  kVerify,  ///< reads all of one and checks it
  kDrill,   ///< restores one to a scratch directory, starts a node on it and reads everything
  kDelete,  ///< deletes some, by the rules of the policy or by name
};
std::string_view to_string(BackupTask task);
constexpr auto choices_of(BackupTask) {
  return std::array{BackupTask::kCreate, BackupTask::kVerify, BackupTask::kDrill,
                    BackupTask::kDelete};
}

/// Whose files are copied, where no nodes are named.
enum class BackupSource : std::uint8_t {
  kFollower,
  kReplica,  ///< a read-only replica
  kLeader,
  kAny,  ///< a read-only replica, else a follower, else the leader
};
std::string_view to_string(BackupSource source);
constexpr auto choices_of(BackupSource) {
  return std::array{BackupSource::kFollower, BackupSource::kReplica, BackupSource::kLeader,
                    BackupSource::kAny};
}

enum class BackupMode : std::uint8_t {
  kLive,      ///< beside the running server
  kOffline,   ///< the server is stopped, its files are copied, and it starts again
  kSnapshot,  ///< a disk snapshot, which the agent makes and deletes
};
std::string_view to_string(BackupMode mode);
constexpr auto choices_of(BackupMode) {
  return std::array{BackupMode::kLive, BackupMode::kOffline, BackupMode::kSnapshot};
}

/// Which digests of the log a backup's manifest gets (docs/operations/digests.md).
enum class BackupDigests : std::uint8_t { kNone, kLogical, kReadable };
std::string_view to_string(BackupDigests digests);
constexpr auto choices_of(BackupDigests) {
  return std::array{BackupDigests::kNone, BackupDigests::kLogical, BackupDigests::kReadable};
}

/// What a person wants of backups of a cluster, besides what every run has. Its fields are in
/// backup_operation.cpp. Times are milliseconds.
struct BackupPolicy {
  /// Copies of nodes' databases in repositories of their agents; the stages are in plan_backup.cpp.
  static const Operation& operation();

  BackupTask task = BackupTask::kCreate;
  std::string repository;  ///< its name at the agents
  BackupSource source = BackupSource::kFollower;
  /// Names with commas between; the ones to choose from, in this order. Empty: as `source` says.
  std::string nodes;
  std::int32_t copies = 1;  ///< of so many nodes, one after the other
  BackupMode mode = BackupMode::kLive;
  /// Each so many-th backup of a node reads everything again; 0: none does, 1: each.
  std::int32_t full_every = 0;
  BackupDigests digests = BackupDigests::kLogical;
  std::int32_t threads = 2;
  std::int32_t throttle_percent = 100;
  std::int64_t rate_bytes = 0;  ///< read a second at most; 0: no limit
  bool verify = true;           ///< each new backup
  /// A backup of a node is drilled once so many of it have been made since the last one that was;
  /// 0: never.
  std::int32_t drill_every = 0;
  // Which backups of a node are kept; all 0: all.
  std::int32_t keep_last = 0;
  std::int32_t keep_daily = 0;
  std::int32_t keep_weekly = 0;
  std::int32_t keep_monthly = 0;
  std::int32_t keep_within_days = 0;
  /// Of kVerify, kDrill and kDelete: ids with commas between. Empty: the latest of each node; of
  /// kDelete what the rules above do not keep.
  std::string generations;
  /// A scavenge that runs on the source is stopped for the copy, and continued after it.
  bool interrupt_scavenge = false;     ///< not of kSnapshot, which a scavenge does not disturb
  std::int32_t resume_threads = 1;     ///< of that scavenge: servers do not show how it was started
  bool heal_existence_filter = false;  ///< of a node that kOffline stops
  /// An alert fires once the newest backup is older; 0: never.
  std::int64_t max_age_ms = 0;
  std::int64_t copy_deadline_ms = std::int64_t{2} * 24 * 3'600'000;
  std::int64_t verify_deadline_ms = std::int64_t{2} * 24 * 3'600'000;
  std::int64_t drill_deadline_ms = std::int64_t{2} * 24 * 3'600'000;

  [[nodiscard]] bool has_keep_rules() const {
    return keep_last > 0 || keep_daily > 0 || keep_weekly > 0 || keep_monthly > 0 ||
           keep_within_days > 0;
  }
};

/// Of a policy for backups.
BackupPolicy& backup_of(Policy& policy);
const BackupPolicy& backup_of(const Policy& policy);

}  // namespace verger::planner
