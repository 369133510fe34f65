#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/clock.h"
#include "nodeagent/api/agent_backups.h"

namespace verger::test {

/// What a node of a FakeCluster has on its disk, as far as restores change it, and what its agent
/// does with it.
struct FakeFiles {
  /// "own", or the id of the backup that was restored.
  std::string history = "own";
  /// What a restore keeps of the former files.
  struct Kept {
    std::string generation;  ///< that was restored
    std::string history;
    std::int64_t writer = 0;
  };
  std::optional<Kept> kept;
  struct Restoring {
    std::string operation;
    std::string generation;
    Monotonic ends{};
  };
  std::optional<Restoring> restoring;
  /// By this operation; it stays so until start_service, or until something else starts it.
  std::string ordered_stop{};
  std::optional<Monotonic> catches_up_at;

  // what becomes of operations
  int failing_restores = 0;  ///< so many of the next ones fail
  int failing_starts = 0;
  int failing_reverts = 0;
  // what its agent says of its repository
  bool has_repository = true;
  std::string repository_id = "r-1";
  std::string repository_error;
  std::string generation_damage;

  // what the tests count
  int restores = 0;
  int reverts = 0;
  int starts = 0;
};

/// A backup "g1" of n2 in cluster "prod", with room for others in its numbers.
inline api::BackupGeneration fake_backup(std::string id = "g1", std::int64_t hours = 1) {
  api::BackupGeneration out;
  out.id = std::move(id);
  out.node = "n2";
  out.cluster = "prod";
  out.server_version = "24.6.0";
  out.checkpoints_at = Ticks(kUnixEpoch.value() + hours * 3'600'000 * kTicksPerMillisecond);
  out.end_position = 8'000;
  out.epoch_number = 0;
  out.restored_bytes = 1'000'000;
  return out;
}

}  // namespace verger::test
