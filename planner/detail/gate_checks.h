#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/gates.h"

/// The single gates; planner/gate_table.cpp says what each is. A check adds what keeps its gate
/// closed; if nothing does, it adds opened() with the value that it has measured, where that is
/// wanted. A check has the name of its gate.
namespace verger::planner::detail {

using States = std::vector<GateState>;

struct Look {
  const Gate& gate;
  const ClusterSnapshot& snapshot;
  const NodeSnapshot* node;  ///< the step's; nullptr: a step on the cluster
  std::int64_t lasts_ms;     ///< how long the step may take
  std::int64_t threads;      ///< that it works with
  bool values;               ///< of open gates are wanted, too

  [[nodiscard]] bool wants_value(const States& states) const { return values && states.empty(); }
};

GateState closed(std::string_view gate, std::string code, std::string node, std::string reason,
                 std::string hint);
/// What the gate would look at cannot be seen, and work is not held back for it.
GateState not_seen(std::string_view gate, std::string node, std::string reason);
GateState measured(GateState state, std::string value, std::string limit);
/// `node`: whose value it is, where it is one node's.
GateState opened(const Look& look, std::string value, std::string limit, std::string node = "");
/// Up enough to count for the quorum.
inline bool is_up(const NodeSnapshot& node) { return node.answered && node.alive; }
/// major * 100 + minor of "24.10.3"; nullopt for anything else.
std::optional<int> version_number(std::string_view text);

// gates_of_members.cpp: who is there, who leads, who is behind
void cluster_identity(const Look& look, States& out);
void voters_alive(const Look& look, States& out);
void replicas_alive(const Look& look, States& out);
void one_leader(const Look& look, States& out);
void quorum_margin(const Look& look, States& out);
void lag_below(const Look& look, States& out);
void lag_falling(const Look& look, States& out);
void agents_answer(const Look& look, States& out);
void leader_settled(const Look& look, States& out);
void not_leader(const Look& look, States& out);
void node_current(const Look& look, States& out);

// gates_of_work.cpp: what else is under way, and room for it
void no_scavenge_running(const Look& look, States& out);
void no_scavenge_elsewhere(const Look& look, States& out);
void no_scavenge_on_node(const Look& look, States& out);
void auto_scavenge_off(const Look& look, States& out);
void no_other_work(const Look& look, States& out);
void index_idle(const Look& look, States& out);
void disk(const Look& look, States& out);
/// Bytes that have to be free on the database's disk beside `reserve` for the rewrites of a
/// scavenge, and it.
std::int64_t disk_needed(const AgentFacts& facts, std::int64_t reserve, std::int64_t threads);
void disk_reserve(const Look& look, States& out);

// gates_of_environment.cpp: time, and what the operator's policy has watched
void clocks(const Look& look, States& out);
void certificates(const Look& look, States& out);
void queries(const Look& look, States& out);
void maintenance_window(const Look& look, States& out);

}  // namespace verger::planner::detail
