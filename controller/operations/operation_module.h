#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "controller/executor/run_snapshot.h"
#include "controller/executor/run_state.h"
#include "controller/executor/step_kind.h"
#include "controller/operations/operation_settings.h"

namespace verger::controller {

/// A schema of the API's document. Members as "name:type", a type being JSON Schema's, another
/// schema's name, "time" (ISO-8601 UTC), "any", or words with "|" between. Behind it "[]": a list;
/// "?": or null; "!": always there.
struct ApiSchema {
  std::string_view name;
  std::string_view members;
  /// Of a request: another member is refused.
  bool closed = false;
};

/// A gauge of /metrics. Those of one name have the same help and the same labels' names.
struct OperationMetric {
  std::string_view name;
  std::string_view help;
  std::map<std::string, std::string> labels;
  double value = 0;
};

/// What a controller adds to planner::Operation: how its steps are done, and what its runs showed.
/// Each is a folder of its own and a line in operation_modules.cpp.
struct OperationModule {
  std::string_view name;  ///< of the planner's operation
  void (*add_step_kinds)(StepKinds& kinds,
                         const std::shared_ptr<const OperationSettings>& settings) = nullptr;
  /// What it looks at before a plan is made, by a person's request or by a policy; nullptr: nothing
  /// beyond the snapshot. `settings` is never null.
  net::awaitable<planner::Preflight> (*preflight)(
      PreflightContext context, std::shared_ptr<const OperationSettings> settings) = nullptr;
  /// Of a run that has ended, from what its steps saw. `timeline` says where the time went; it is
  /// the report's member of that name, and may get more members.
  nlohmann::json (*report)(const RunState& run, nlohmann::json timeline) = nullptr;
  /// From what its runs kept (kKeptValues); nullptr: it has none of its own.
  std::vector<OperationMetric> (*metrics)(std::span<const std::shared_ptr<const RunSummary>> runs) =
      nullptr;
  std::string_view report_schema;  ///< one of `schemas`
  std::span<const ApiSchema> schemas;
};

}  // namespace verger::controller
