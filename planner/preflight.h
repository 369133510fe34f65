#pragma once

#include <string>
#include <vector>

#include "planner/json.h"

namespace verger::planner {

/// A reason why there is no plan. `code` is stable.
struct Refusal {
  std::string code;  ///< "node-down", "quorum-margin", ...
  std::string node;  ///< empty: the cluster
  std::string message;
  std::string hint;  ///< what to do next
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

/// What an operation looked at before its plan was made, beyond what every snapshot has: files,
/// addresses, answers of agents.
struct Preflight {
  std::vector<Refusal> refusals;   ///< there is no plan because of each
  std::vector<std::string> notes;  ///< for people; parts of the plan's notes
  /// For the operation's planning function, which alone reads it. No secrets: what a plan takes
  /// from it is journaled and shown.
  Json facts;
};

}  // namespace verger::planner
