#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controller/scheduler/policy_book.h"

namespace verger::controller {

/// One line of `verger schedule next`.
struct NextTime {
  enum class Kind : std::uint8_t { kOpens, kDue };
  Kind kind = Kind::kDue;
  std::string policy;
  Zone zone;
  Instant at;
  std::optional<Instant> until;  ///< of an opening: its end
  bool inside = true;            ///< of a due time: the windows are open then
};

/// The next openings and due times of a cluster's enabled policies, `count` of each kind, in order
/// of time.
std::vector<NextTime> next_times(const PolicyBook& book, const ClusterConfig& cluster, Instant now,
                                 std::size_t count);

}  // namespace verger::controller
