#include "controller/cli/operations/resize_commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/operations.h"

namespace verger::cli {

const planner::Operation& resize_operation() {
  static const auto& kOperation = *planner::find_operation("resize");
  return kOperation;
}

PlanOptions plan_of_resize(const PlanOptions& growth, const ResizeOptions& options,
                           const std::vector<std::string>& nodes,
                           const std::vector<std::string>& agents) {
  PlanOptions out{.cluster = growth.cluster, .policy = growth.policy};
  for (const auto* field : planner::fields_of(resize_operation())) {
    if (field->request == planner::Field::Request::kAccepted) {
      out.parameters[field];
    }
  }
  for (const auto& [field, text] : growth.parameters) {
    const auto name = planner::api_name(*field);
    for (auto& [own, value] : out.parameters) {
      if (planner::api_name(*own) == name) {
        value = text;
      }
    }
  }
  parameter_of(out, "to") = options.to;
  parameter_of(out, "nodes") = fmt::format("{}", fmt::join(nodes, ","));
  parameter_of(out, "agents") = fmt::format("{}", fmt::join(agents, ","));
  parameter_of(out, "leaving") = options.leaving;
  parameter_of(out, "leaving_are_gone") = options.gone ? "true" : "";
  return out;
}

}  // namespace verger::cli
