#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/backup/backup_facts.h"
#include "planner/backup/backup_policy.h"
#include "planner/make_plan.h"

namespace verger::planner::detail {

/// "n2, n3" -> {"n2", "n3"}; empty parts are left out.
std::vector<std::string> listed(std::string_view text);

/// Which nodes are copied, and whose agents check, drill and delete. The pointers are into
/// `snapshot`, whose nodes are sorted by name; it, `policy` and `history` outlive this.
struct BackupOrder {
  BackupOrder(const ClusterSnapshot& seen, const Policy& of, const History& past,
              std::optional<BackupFacts> found);

  const ClusterSnapshot& snapshot;
  const Policy& policy;
  const BackupPolicy& wanted;
  const History& history;
  std::optional<BackupFacts> facts;  ///< nullopt: the preflight could not tell

  /// By name or by role; those that would be preferred first: read-only replicas, followers, the
  /// leader, and of these the one with the newest backup, so that the least has to be copied.
  std::vector<const NodeSnapshot*> candidates;
  std::vector<std::string> unknown_names;    ///< named, and not registered
  std::vector<Refusal> unfit;                ///< why a candidate is no source now, one each
  std::vector<const NodeSnapshot*> sources;  ///< that are fit, `copies` at most
  /// Agents that can use the repository, the sources' first: they check, drill and delete.
  std::vector<const NodeSnapshot*> workers;

  /// What must hold before a node is copied, ...
  [[nodiscard]] std::vector<Gate> copy_gates() const;
  /// ... and before an agent works on the repository alone.
  [[nodiscard]] std::vector<Gate> repository_gates() const;

  /// The next backup of the node reads everything again, as full_every says.
  [[nodiscard]] bool is_full(std::string_view node) const;
  /// Why it does, where full_every does not say so: the node's log is not the one that its latest
  /// backup was made of. Empty: it is, as far as can be seen.
  [[nodiscard]] std::string other_history(const NodeSnapshot& node) const;
  [[nodiscard]] bool drill_is_due(std::string_view node) const;
  /// Whose agent drills a backup of `source`: its own where it can, else the first that can;
  /// nullptr: none can.
  [[nodiscard]] const NodeSnapshot* drill_worker(std::string_view source) const;
  [[nodiscard]] DurationRange expected(std::string_view kind, const NodeSnapshot& node) const;

 private:
  void choose_candidates();
  void choose_sources();
  [[nodiscard]] std::optional<Refusal> why_unfit(const NodeSnapshot& node) const;
};

}  // namespace verger::planner::detail
