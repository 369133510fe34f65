#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "nodeagent/api/agent_backups.h"
#include "nodeagent/api/backup_operations.h"
#include "nodeagent/http/message.h"
#include "tests/support/controller/virtual_time.h"

namespace verger::test {

/// How an agent has the repository.
struct FakeRepositoryAccess {
  bool configured = true;
  std::string error;          ///< why it cannot use it
  std::string other_id;       ///< it means another one
  std::string drill_problem;  ///< it cannot drill
  std::string snapshot_problem = "it has no --snapshot-command";
};

/// A node whose files are copied.
struct FakeBackupSource {
  std::string node;
  std::int64_t writer = 0;
  std::int32_t epoch = 0;
};

/// The repository "main" that the agents of a FakeCluster share, and what their operations do to
/// it.
class FakeBackups {
 public:
  explicit FakeBackups(VirtualTime& time) : time_(time) {}

  /// How an operation ended.
  struct Ended {
    std::string error_code;
    std::string error;
    std::string result = "{}";
  };
  static bool knows(std::string_view kind);
  static bool copies(std::string_view kind);
  /// Once it has lasted `takes`.
  Ended finish(std::string_view kind, const std::string& parameters_json,
               const FakeBackupSource& source, Ticks started);
  /// Of the agents' lists; nullopt: another route is meant.
  [[nodiscard]] std::optional<http::Response> answer(const std::string& node,
                                                     const http::Request& request) const;
  [[nodiscard]] const api::BackupGeneration* find(std::string_view id) const;

  std::map<std::string, FakeRepositoryAccess> at;  ///< by node; an agent that is none has it
  std::vector<api::BackupGeneration> generations;  ///< by time
  std::chrono::milliseconds takes{2'000};
  std::set<std::string> damaged;  ///< generations of which a check finds damage
  /// What it finds.
  std::vector<api::DamagedFile> damage{
      {.path = "chunk-000000.000000", .text = "its SHA-256 is another"}};
  bool damages_next = false;  ///< the next copy is one of them
  bool fails_drills = false;
  int failures = 0;  ///< so many of the next copies fail
  /// What was done: "backup n2 g1 full", "verify g1", "drill g1", "retain n2".
  std::vector<std::string> done;

 private:
  Ended copy(std::string_view kind, const std::string& parameters_json,
             const FakeBackupSource& source, Ticks started);
  Ended verify(const std::string& parameters_json);
  Ended drill(const std::string& parameters_json);
  Ended retain(const std::string& parameters_json);

  VirtualTime& time_;
  int next_ = 1;
};

}  // namespace verger::test
