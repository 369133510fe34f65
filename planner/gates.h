#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan.h"

/// Gates: evaluated when planning, and again before each side effect. Pure functions.
///
///   right-cluster       every node is the one that was registered
///   voters-alive        every voter answers, is alive, and is in a settled state
///   one-leader          exactly one leader, and all voters take it for that
///   quorum-margin       without this node the others still make a quorum; limit 1: also where
///                       there are only one or two voters, because this one will be down
///   lag-below           limit: bytes that any live node may lack
///   lag-falling         no live node falls behind further; a lag below a megabyte is none
///   nobody-scavenges    no scavenge runs on any node (auto-scavenge included)
///   others-idle         no scavenge runs on any other node; this one's is adopted
///   idle                no scavenge runs on this node
///   auto-scavenge-off   the server's own scavenging is absent, not configured or paused
///   disk                limit: bytes to keep free beyond what the scavenge writes beside what is
///                       there: on the database's disk a chunk for each thread, on the index's the
///                       largest table or the largest merge
///   disk-reserve        limit: bytes to keep free on the database's disk
///   agents-answer       each agent answers, and is not too old for this controller
///   no-other-work       no agent is at a backup, a restore or a redaction
///   index-idle          no index is merged on this node
///   clocks              limit: milliseconds that a node's clock may be off the controller's
///   certificates        limit: milliseconds that certificates are to be valid after the step
///   queries             the policy's Prometheus queries keep to their bounds
///   leader-settled      limit: milliseconds since the last election
///   hours               the policies' windows are open
///   not-leader          this node does not lead (else the stage is put off)
namespace verger::planner {

enum class GateVerdict : std::uint8_t {
  kOpen,
  kClosed,    ///< waiting may open it
  kDeferred,  ///< other stages first
};

/// An open gate with a reason is one that could not be looked at: "not seen" is not "fine".
struct GateState {
  GateVerdict verdict = GateVerdict::kOpen;
  std::string gate;
  std::string code;    ///< of the refusal it would be at planning time
  std::string node;    ///< whom it is about; may be another than the step's
  std::string reason;  ///< for people
  std::string hint;
  std::string value;  ///< the current one, where the gate measures something
  std::string limit;
};

/// How long the gate may be closed before an alert fires: the policy's time for all gates, or,
/// where that is 0, the gate's own. "does-not-fit": a step that does not fit into its hours.
std::int64_t alert_after_ms(std::string_view gate, const RunLimits& limits);

/// All causes that keep the gate closed; one open state when there is none. An unknown gate is
/// closed and says so. `lasts_ms`: how long the step may take; `threads`: that it works with.
std::vector<GateState> evaluate(const Gate& gate, const ClusterSnapshot& snapshot,
                                std::string_view node, std::int64_t lasts_ms = 0,
                                std::int64_t threads = 1);
/// The same for a member of `snapshot`; nullptr: a step on the cluster.
std::vector<GateState> evaluate(const Gate& gate, const ClusterSnapshot& snapshot,
                                const NodeSnapshot* node, std::int64_t lasts_ms = 0,
                                std::int64_t threads = 1);

}  // namespace verger::planner
