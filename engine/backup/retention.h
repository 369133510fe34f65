#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/backup/manifest.h"

namespace verger::backup {

/// Which generations of a node stay: each that one of the rules keeps. A rule of 0 keeps none.
struct KeepRules {
  int last = 0;         ///< the newest
  int daily = 0;        ///< the newest of each of so many days (UTC) that have one
  int weekly = 0;       ///< of each ISO week
  int monthly = 0;      ///< of each month
  int within_days = 0;  ///< all that are not older

  [[nodiscard]] bool any() const { return last + daily + weekly + monthly + within_days > 0; }
};

struct KeepDecision {
  std::string id;
  std::string kept_by;  ///< "last", "daily" …; empty: it may go
};

/// What the rules say of each of `manifests`, by id; for each node of its own. A node's newest one
/// always stays. A generation's time is that of its checkpoints.
std::vector<KeepDecision> decide_retention(std::span<const Manifest> manifests,
                                           const KeepRules& rules, Ticks now);

}  // namespace verger::backup
