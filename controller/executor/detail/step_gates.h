#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "controller/executor/detail/run_context.h"
#include "planner/gates.h"

namespace verger::controller::detail {

struct Fit {
  std::string problem{};  ///< why it is not begun in what is left of its hours; empty: it fits
  bool never = false;     ///< nor would it have fitted into all of them
};

/// What holds a step back.
struct ClosedGates {
  std::string reason{};  ///< of all that are closed; empty: none is
  nlohmann::json gates = nlohmann::json::array();
  bool only_hours = true;
  /// The node's turn comes after the others' instead; then nothing else is reported.
  bool deferred = false;
  Fit fit{};
  /// Open ones that could not be looked at.
  nlohmann::json not_seen = nlohmann::json::array();
  void add(const planner::GateState& state);
};

/// Which gates hold a step back, and for how long they have done so.
class StepGates {
 public:
  explicit StepGates(std::shared_ptr<RunContext> run) : run_(std::move(run)) {}

  /// What holds the step back now, its hours if they are too short for it among that. Journals
  /// where work on a skipped node is seen to be over.
  ClosedGates closed(const planner::Stage& stage, const planner::Step& step,
                     const StepContext& context);
  /// Raises one alert for the gates that have been closed for too long, and clears it once none is.
  void track(const planner::Step& step, const std::string& reason, const nlohmann::json& gates);
  /// The same of a step that does not fit into its hours.
  void track_fit(const planner::Step& step, const ClosedGates& closed);

 private:
  /// Keeps a step that waits for work elsewhere back while something may run on a node that
  /// was skipped; journals where that is over.
  void add_left_behind(const planner::Step& step, const StepContext& context, ClosedGates& closed);
  /// A request to a skipped node that was never answered: its agent may still accept it.
  [[nodiscard]] bool may_still_arrive(std::string_view node, const StepContext& context) const;
  /// The newest election is one that a step of this run asked for: the leader it brought was seen
  /// to hold, or `step` itself asks again.
  bool is_own_election(const planner::Step& step, const planner::ClusterSnapshot& snapshot) const;
  /// Of a step that cannot be interrupted.
  [[nodiscard]] Fit fit(const planner::Stage& stage, const planner::Step& step,
                        const StepContext& context) const;

  std::shared_ptr<RunContext> run_;
};

}  // namespace verger::controller::detail
