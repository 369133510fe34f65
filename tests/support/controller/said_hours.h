#pragma once

#include <optional>
#include <string_view>

#include "controller/executor/working_hours.h"

namespace verger::test {

/// Open or closed as the test says; may know when it will end.
class SaidHours final : public controller::WorkingHours {
 public:
  std::optional<planner::Hours> hours(const controller::ClusterConfig&, std::string_view,
                                      Ticks) const override {
    return planner::Hours{open, since, until, "deny window \"office hours\""};
  }
  bool open = true;
  Ticks since{0};
  std::optional<Ticks> until;
};

}  // namespace verger::test
