#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "engine/base/result.h"
#include "planner/preflight.h"
#include "planner/snapshot.h"

namespace verger::planner::detail {

/// What the operation's preflight found; nullopt where it found nothing, or where that cannot be
/// read: `refusals` says so then.
template <class Facts>
std::optional<Facts> facts_of_preflight(const ClusterSnapshot& snapshot,
                                        Result<Facts> (*parse)(const Json&),
                                        std::vector<Refusal>& refusals) {
  if (!snapshot.preflight || snapshot.preflight->facts.is_null()) {
    return std::nullopt;
  }
  auto parsed = parse(snapshot.preflight->facts);
  if (!parsed) {
    refusals.push_back({"preflight-unreadable", "", parsed.error().message,
                        "this is a defect of the controller; report it"});
    return std::nullopt;
  }
  return *std::move(parsed);
}

/// Nothing was found, and no refusal of a preflight says why.
inline bool was_not_looked_at(const ClusterSnapshot& snapshot) {
  return !snapshot.preflight ||
         (snapshot.preflight->facts.is_null() && snapshot.preflight->refusals.empty());
}

}  // namespace verger::planner::detail
