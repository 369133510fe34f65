#include "nodeagent/operations/redaction/redaction_look.h"

#include <fmt/format.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "nodeagent/operations/redaction/redaction_operations.h"

namespace verger::agent {

RedactionLook::RedactionLook(external::DatabasePlace place, const external::OfflineMachine& machine,
                             redaction::RedactionRequest request)
    : place_(std::move(place)), machine_(machine), request_(std::move(request)) {}

Result<StepOutcome> RedactionLook::step(Budget /*budget*/) {
  VERGER_TRY(const auto database, open_for_reading(place_, machine_));
  VERGER_TRY(plan_, redaction::plan_redaction(machine_.files, *database, request_));
  return StepOutcome{.kind = StepOutcome::Kind::kDone};
}

JobProgress RedactionLook::progress() const { return {.phase = "finding the events"}; }

Result<std::unique_ptr<streams::Database>> open_for_reading(
    const external::DatabasePlace& place, const external::OfflineMachine& machine) {
  return external::DatabaseReading{.files = machine.files,
                                   .place = place,
                                   .clock = machine.clock,
                                   .random = machine.random,
                                   .log = machine.log}
      .open();
}

Result<std::vector<redaction::ListedRedaction>> list_in(const OperationRecord& record) {
  const auto asked = nlohmann::json::parse(record.request.parameters_json, nullptr, false);
  const std::string member(kListMember);
  if (!asked.is_object() || !asked.contains(member) || !asked[member].is_string()) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("parameters of {}: \"list\", a list of redactions, is missing",
                             record.request.kind)};
  }
  auto list = redaction::decode_list(asked[member].get<std::string>());
  if (!list) {
    return Error{Errc::kInvalidArgument, fmt::format("parameters of {}: list: {}",
                                                     record.request.kind, list.error().message)};
  }
  if (list->empty()) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("parameters of {}: the list is empty", record.request.kind)};
  }
  return list;
}

std::vector<std::string> obstacles_of(const redaction::RedactionPlan& plan) {
  std::vector<std::string> out;
  if (!plan.unfinished_scavenge.empty()) {
    out.push_back(plan.unfinished_scavenge);
  }
  if (plan.has_active()) {
    out.push_back(fmt::format(
        "{} is still written to, and only completed chunks are redacted: run a scavenge of the "
        "cluster, which completes it on all nodes, and repeat then",
        plan.chunks.back().file));
  }
  return out;
}

}  // namespace verger::agent
