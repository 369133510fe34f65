#pragma once

#include <optional>
#include <string_view>

#include "controller/cluster/registry.h"
#include "planner/snapshot.h"

namespace verger::controller {

/// When runs may work. The executor queries it; controller/scheduler knows. One thread.
class WorkingHours {
 public:
  virtual ~WorkingHours() = default;
  /// For runs that `policy` (or a person: "ad-hoc") started on the cluster; nullopt: no window
  /// limits them.
  [[nodiscard]] virtual std::optional<planner::Hours> hours(const ClusterConfig& cluster,
                                                            std::string_view policy,
                                                            Ticks now) const = 0;
};

}  // namespace verger::controller
