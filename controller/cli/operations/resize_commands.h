#pragma once

#include <string>
#include <vector>

#include "controller/cli/plan_request.h"

namespace verger::cli {

/// What `verger cluster grow --to` has besides what each growth has.
struct ResizeOptions {
  std::string to{};  ///< empty: it is not asked for
  std::string leaving{};
  bool gone = false;
};

const planner::Operation& resize_operation();
/// What a growth of one node has, too, is taken from `growth`.
PlanOptions plan_of_resize(const PlanOptions& growth, const ResizeOptions& options,
                           const std::vector<std::string>& nodes,
                           const std::vector<std::string>& agents);

}  // namespace verger::cli
