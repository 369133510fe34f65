#pragma once

#include <map>
#include <string>

#include "controller/executor/step_kind.h"

/// Scavenge points of a node without an agent, by its stream `$scavengePoints`. Few nodes let
/// vergerd read it: AtomPub has to be on, and the user in $admins.
namespace verger::controller::scavenge {

/// Name of the run's value: {"number"}, of the newest point before the run requested one (-1: there
/// was none), or {"unreadable": why}. Left with the intent of the first request.
inline constexpr const char* kPointsBefore = "points_before";

/// What one look at a node's points shows.
struct PointsLook {
  /// Certainly there: a point that was not before the run requested one, by whichever client. What
  /// is not seen may be there all the same, where the node lags or does not show its points.
  bool has_new = false;
  /// To be left with the intent: what was there before, where this is the first look.
  std::map<std::string, std::string> values{};
};

/// Before a request of the run for a point is sent to the step's node. Errors: kUnavailable and
/// others: look again.
net::awaitable<Result<PointsLook>> look_at_points(StepContext context);

}  // namespace verger::controller::scavenge
