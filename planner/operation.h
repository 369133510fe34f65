#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/field.h"
#include "planner/make_plan.h"

namespace verger::planner {

/// Work that an agent may be seen at.
struct AgentKind {
  std::string_view name;      ///< of the agent's operation
  bool touches_files = true;  ///< reads or writes the node's files
  bool needs_server = false;  ///< over once the server is stopped
  /// The gate no-other-work is closed meanwhile, as it is for work that is not known.
  bool keeps_others_out = false;
};

/// A contradiction between fields of a policy.
struct FieldProblem {
  std::string place;  ///< of the policy file: "parameters"
  std::string message;
  std::string hint;  ///< what to do next
};

/// Whether an operation that is not needed all the time is needed now.
struct Need {
  std::string not_yet{};             ///< why a due time passes without a run; empty: it is needed
  std::optional<Ticks> needed_at{};  ///< from then on; nullopt: not known
  std::optional<Ticks> deadline{};   ///< by then its run should have ended; nullopt: not known
  std::string ends{};                ///< what ends at the deadline, for people
};

/// A node that a run adds to its cluster.
struct JoiningNode {
  std::string name{};  ///< empty: "host:port" of the URL
  std::string url{};   ///< of the node interface
  std::string agent_url{};
  bool read_only_replica = false;  ///< as long as it does not say so itself
};

/// Everything that the rest of the planner and the controller know of an operation. What a
/// controller adds to it is controller/operations/operation_module.h. Each is a folder of its own
/// and an alternative in operation_policy.h.
struct Operation {
  std::string_view name;     ///< in policies, plans, the API, and behind `verger plan`
  std::string_view summary;  ///< of `verger plan`, for people
  std::string_view example;  ///< of its options
  /// Its own; fields_of() has those that all operations share, too.
  std::span<const Field> (*fields)() = nullptr;
  OperationPolicy (*defaults)() = nullptr;
  /// `snapshot.nodes` is sorted by name. Fills everything but basis, hash and time.
  std::expected<Plan, std::vector<Refusal>> (*plan)(const ClusterSnapshot& snapshot,
                                                    const Policy& policy,
                                                    const History& history) = nullptr;
  std::vector<FieldProblem> (*check)(const Policy& policy) = nullptr;
  /// Its runs move the leader, as far as the policy says.
  bool (*moves_leader)(const Policy& policy) = nullptr;
  /// How long the work of one run takes, from the durations of its steps.
  std::int64_t (*time_at_work_ms)(const Policy& policy,
                                  std::span<const PastDuration> durations) = nullptr;
  /// Of a policy's due times, from what was last seen of the cluster. nullptr: each is needed.
  Need (*need)(const ClusterSnapshot& snapshot, const Policy& policy) = nullptr;
  /// An alert fires once the newest result of the policy's runs is older (kResultValue of
  /// controller/executor/run_state.h); 0: never. nullptr: they have none.
  std::int64_t (*max_age_ms)(const Policy& policy) = nullptr;
  /// Role, version and instance of the node may change between plan and run. nullptr: of none.
  bool (*may_restart)(const Policy& policy, const NodeSnapshot& node) = nullptr;
  /// Kinds of its steps that give nodes other data than they had. A run with one of them that is
  /// done makes policies due for which this is true.
  std::span<const std::string_view> replaces_data{};
  bool (*due_after_replacement)(const Policy& policy) = nullptr;
  /// Nodes that are not registered when the plan is made: ClusterSnapshot::joining has them, and
  /// the run operates them. nullptr: there are none.
  std::vector<JoiningNode> (*joining)(const Policy& policy) = nullptr;
  /// Kinds of the steps that are the work itself, all others being what it takes to do it safely.
  std::span<const std::string_view> work_steps;
  /// What its steps ask of agents. Other work is not gated by it as such, but by what the node
  /// shows of it.
  std::span<const AgentKind> agent_kinds;

  [[nodiscard]] bool is_work(const Step& step) const;
};

}  // namespace verger::planner
