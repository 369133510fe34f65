#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/json.h"
#include "planner/policy.h"
#include "planner/preflight.h"
#include "planner/snapshot.h"

namespace verger::planner {

/// A condition that must hold before a step acts.
struct Gate {
  std::string name;        ///< one of planner/gate_table.h
  std::int64_t limit = 0;  ///< in the gate's unit
  /// What a plan that an earlier version made calls it: its hash covers that. Empty: `name`.
  std::string planned_as{};
  [[nodiscard]] const std::string& name_in_plan() const {
    return planned_as.empty() ? name : planned_as;
  }
  friend bool operator==(const Gate&, const Gate&) = default;
};

/// How long something is expected to take, at best and at worst.
struct DurationRange {
  std::int64_t low_ms = 0;
  std::int64_t high_ms = 0;
  /// False: how long it takes is not known; that does not make it short.
  [[nodiscard]] bool is_known() const { return high_ms > 0; }
};

/// What a step costs the cluster while it runs.
struct StepCost {
  bool leader_move = false;
  /// Voters that may be gone before the quorum is, while this step works on its node.
  std::int32_t quorum_margin = 0;
};

/// One action on one node (or on the cluster: `node` empty). `kind` names the code that knows how
/// to act, observe and undo; the parameters are that code's.
struct Step {
  std::string id;  ///< unique in the plan, "resign-n1"
  std::string kind;
  std::string node;
  Json::Object parameters;
  std::vector<Gate> gates;
  std::string act;      ///< for people: what is done,
  std::string observe;  ///< what must be seen before it counts as done,
  std::string undo;     ///< how it is undone; empty: it cannot be, or needs no undoing
  std::string reason;
  std::int32_t attempts = 1;
  DurationRange expected;  ///< not part of the hash
  StepCost cost;
};

/// Steps that may run side by side.
using Group = std::vector<Step>;

/// What a step that fails for good means for its stage.
enum class FailureRule : std::uint8_t {
  kStop,      ///< the run ends as failed
  kSkipNode,  ///< the rest of the node's steps are skipped, the run continues
  kUndoAll,   ///< what this stage did is undone, then the run ends as failed
};
std::string_view to_string(FailureRule rule);

/// Groups one after another under one deadline.
struct Stage {
  std::string id;
  std::string title;
  std::vector<Group> groups;
  std::int64_t deadline_ms = 0;       ///< from the start of the stage, without pauses
  std::int64_t undo_deadline_ms = 0;  ///< fresh, from the start of the undo
  FailureRule on_failure = FailureRule::kStop;
  /// Not empty: a contingency. It runs only if the stage of that id had to be put off, right before
  /// its second turn.
  std::string if_deferred;
  /// It comes after every node's turn, also after one that was put off.
  bool closing = false;
  /// Once its first step has acted it is done on all of its nodes or undone on all of them: a
  /// pause and the end of the hours take effect before or after it, a cancelled run and a skipped
  /// node undo it. Its rule is kUndoAll, and it is not begun unless all of it is expected to fit
  /// into the hours.
  bool atomic = false;
};

/// What the plan was made on. When it differs, the plan is stale.
struct BasisNode {
  std::string name;
  std::string url;
  std::string agent_url;
  std::string role;
  std::string version;
  std::string instance_id;
  std::vector<std::string> certificates;  ///< serials; empty until certificates are observed
  friend bool operator==(const BasisNode&, const BasisNode&) = default;
};
/// Of all nodes of the cluster.
struct Basis {
  std::vector<BasisNode> nodes;  ///< by name
  friend bool operator==(const Basis&, const Basis&) = default;
};

/// What the work will meet on a node when it is started there; for people.
struct NodeForecast {
  std::string node;
  std::string row;  ///< "row 5: takes the new point"; says so where it cannot be known
  // As its agent reported when the plan was made; -1: not known.
  std::int64_t database_bytes = -1;
  std::int64_t disk_free = -1;
  std::int64_t disk_needed = -1;  ///< less than this closes the gate disk
};

/// Immutable once made.
struct Plan {
  std::string cluster;
  Policy policy;
  Basis basis;
  std::vector<Stage> stages;
  std::vector<NodeForecast> forecast;  ///< not part of the hash
  /// Things a person should know, such as what cannot be claimed without agents.
  std::vector<std::string> notes;
  std::string hash;  ///< hash_of() the plan
  Ticks made_at;     ///< not part of the hash

  [[nodiscard]] const Step* find_step(std::string_view id) const;
};

/// Canonical JSON (planner/json.h) of what the hash covers, and of all of the plan, with its hash,
/// estimates and forecast.
std::string hashed_text(const Plan& plan);
std::string text_of(const Plan& plan);
/// Lower-case hex SHA-256 of hashed_text(plan).
std::string hash_of(const Plan& plan);

Basis basis_of(const ClusterSnapshot& snapshot);
/// Without role, version, instance and certificates of the nodes that the policy's operation lets
/// restart between plan and run (Operation::may_restart).
Basis basis_of(const ClusterSnapshot& snapshot, const Policy& policy);
/// One line per difference, for people; empty when `now` is what the plan was made on.
std::vector<std::string> diff_basis(const Basis& planned, const Basis& now);

}  // namespace verger::planner
