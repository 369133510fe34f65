#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace verger::planner {

struct Operation;
struct Policy;

/// What a plan is for.
enum class RestoreTask : std::uint8_t {
  kRestore,     ///< nodes get the files of a backup
  kDiscardOld,  ///< what an earlier restore kept of the former files is removed
};
std::string_view to_string(RestoreTask task);
constexpr auto choices_of(RestoreTask) {
  return std::array{RestoreTask::kRestore, RestoreTask::kDiscardOld};
}

/// What happens to the cluster's history.
enum class RestoreScope : std::uint8_t {
  kNode,     ///< it stays: the named nodes are restored one by one, and catch up
  kCluster,  ///< it becomes that of the backup: all nodes, replicas too, are restored together
};
std::string_view to_string(RestoreScope scope);
constexpr auto choices_of(RestoreScope) {
  return std::array{RestoreScope::kNode, RestoreScope::kCluster};
}

/// What an operator wants of a restore, besides what every run has. Its fields are in
/// restore_operation.cpp. Times are milliseconds.
struct RestorePolicy {
  /// Backups into the place of nodes' files; the stages are in plan_restore.cpp.
  static const Operation& operation();

  RestoreTask task = RestoreTask::kRestore;
  RestoreScope scope = RestoreScope::kNode;
  std::string repository;             ///< its name at the agents
  std::string generation = "latest";  ///< an id, or the newest undamaged one of this cluster
  std::string nodes;                  ///< names with commas between; of scope cluster: all
  /// The former files stay on the nodes when all is well. They are kept until then in any case.
  bool keep_old = true;
  /// Nodes that have another database than the registered one are restored all the same: they were
  /// set up anew.
  bool replace_database = false;
  /// What runs of the cluster have redacted is redacted in the restored files, before they start.
  bool redact_again = true;
  std::int32_t threads = 2;           ///< files copied in parallel on each node
  std::int64_t bytes_per_second = 0;  ///< that each node reads; 0: no limit
  /// For stopping, restoring and starting: of all nodes, or of each one with scope node.
  std::int64_t restore_deadline_ms = 86'400'000;
  /// From the start of the servers until the cluster is whole, or the node follows; then an alert.
  std::int64_t check_deadline_ms = 3'600'000;
};

/// "n1, n2" -> {"n1", "n2"}
std::vector<std::string> listed_names(std::string_view list);

/// Of a policy for a restore.
RestorePolicy& restore_of(Policy& policy);
const RestorePolicy& restore_of(const Policy& policy);

}  // namespace verger::planner
