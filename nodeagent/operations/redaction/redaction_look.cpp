#include "nodeagent/operations/redaction/redaction_look.h"

#include <fmt/format.h>
#include <utility>

namespace verger::agent {

RedactionLook::RedactionLook(external::OfflineServer& server, redaction::RedactionRequest request)
    : server_(server), request_(std::move(request)) {}

Result<StepOutcome> RedactionLook::step(Budget /*budget*/) {
  VERGER_TRY(const auto database, open_for_reading(server_));
  VERGER_TRY(plan_, redaction::plan_redaction(server_.machine().files, *database, request_));
  return StepOutcome{.kind = StepOutcome::Kind::kDone};
}

JobProgress RedactionLook::progress() const { return {.phase = "finding the events"}; }

Result<std::unique_ptr<streams::Database>> open_for_reading(const external::OfflineServer& server) {
  const auto machine = server.machine();
  return external::DatabaseReading{.files = machine.files,
                                   .place = server.place(),
                                   .clock = machine.clock,
                                   .random = machine.random,
                                   .log = machine.log}
      .open();
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
