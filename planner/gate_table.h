#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan.h"

/// The table of gates. A gate is one entry here and one check in planner/detail/gate_checks.h;
/// plans, the executor, the API and its document, metrics and docs/operations/gates.md take name,
/// unit, severity and text from it. An agent has its own list of the gates that it checks once more
/// (nodeagent/operations/last_look.h), because an agent may be older than its controller; a test
/// compares the two.
namespace verger::planner {

struct GateState;
namespace detail {
struct Look;
}

/// Of a gate's limit. The unit of one that is a number only is in its text.
enum class GateUnit : std::uint8_t { kNone, kBytes, kMilliseconds };

/// How long it may stay closed before an alert fires: what does not end without an operator is
/// reported within minutes, what usually ends by itself once it has lasted unusually long.
enum class GateSeverity : std::uint8_t {
  kFault,      ///< 5 minutes: something is wrong
  kUnsettled,  ///< 15 minutes: it settles by itself
  kDelay,      ///< 30 minutes: the cluster is busy
  kBusy,       ///< 60 minutes: other work is under way
  kSchedule,   ///< no alert: it is closed as planned
};
std::string_view to_string(GateSeverity severity);
/// 0: no alert.
std::int64_t alert_after_ms(GateSeverity severity);

struct GateEntry {
  std::string_view name;
  /// Up to version 0.1. Read wherever a gate's name is; what agents receive until the next version.
  std::string_view former_name;
  std::string_view closed_while;  ///< for people, also in docs/operations/gates.md
  std::string_view measures;      ///< what its value is; empty: it measures nothing
  GateUnit unit = GateUnit::kNone;
  std::string_view limit;      ///< what its limit is; places of a policy in backquotes
  bool refuses_plans = false;  ///< checked when a plan is made, too
  bool per_node = false;       ///< it depends on whose step it is
  bool by_agent = false;       ///< the node's agent checks it once more, directly before it acts
  GateSeverity severity = GateSeverity::kUnsettled;
  void (*check)(const detail::Look&, std::vector<GateState>&) = nullptr;
};

/// Names that the code which waits for gates has to know.
inline constexpr std::string_view kMaintenanceWindow = "maintenance-window";
inline constexpr std::string_view kAgentsAnswer = "agents-answer";
inline constexpr std::string_view kLeaderSettled = "leader-settled";
inline constexpr std::string_view kNoOtherWork = "no-other-work";

/// In the order of docs/operations/gates.md.
std::span<const GateEntry> gate_table();
/// By its name or its former one; of "queries:write-latency", the entry of "queries". nullptr: it
/// is a newer controller's.
const GateEntry* find_gate(std::string_view name);
/// What version 0.1 called "hours" is "maintenance-window"; all other texts are as they were.
std::string current_gate_name(std::string_view name);
/// "16 MiB"; empty: the gate has no limit of its own, or one that is not the plan's.
std::string limit_text(const Gate& gate);
/// "lag-below 16 MiB": with its limit and the limit's unit.
std::string gate_text(const Gate& gate);

}  // namespace verger::planner
