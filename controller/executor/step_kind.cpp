#include "controller/executor/step_kind.h"

#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>

namespace verger::controller {

std::string StepContext::attempt_name() const {
  return state.undoing ? fmt::format("{}/undo-{}", step.id, state.undo_attempt)
                       : fmt::format("{}/{}/{}", step.id, state.attempt, state.operation);
}

bool StepKind::waits_for_agent(const StepContext&) const { return false; }

std::string StepKind::too_late(const StepContext&) const { return {}; }

std::string StepKind::must_stay(const StepContext&) const { return {}; }

std::string StepKind::undo_overdue(const StepContext&) const { return {}; }

bool StepKind::can_interrupt(const StepContext&, Interrupt) const { return false; }

net::awaitable<void> StepKind::interrupt(StepContext) { co_return; }

net::awaitable<ActAnswer> StepKind::undo(StepContext) {
  co_return ActAnswer{ActAnswer::Kind::kAccepted, ""};
}

net::awaitable<Verdict> StepKind::observe_undo(StepContext) {
  Verdict verdict;
  verdict.kind = Verdict::Kind::kDone;
  co_return verdict;
}

bool StepKind::restores(const planner::Step&) const { return false; }

std::string StepKind::undo_command(const StepContext&) const { return {}; }

void StepKinds::add(std::unique_ptr<StepKind> kind) {
  auto name = std::string(kind->name());
  kinds_[std::move(name)] = std::move(kind);
}

StepKind* StepKinds::find(std::string_view name) const {
  const auto found = kinds_.find(std::string(name));
  return found == kinds_.end() ? nullptr : found->second.get();
}

void StepKinds::add_preflight(std::string operation, PreflightFunction preflight) {
  preflights_[std::move(operation)] = std::move(preflight);
}

const PreflightFunction* StepKinds::find_preflight(std::string_view operation) const {
  const auto found = preflights_.find(std::string(operation));
  return found == preflights_.end() ? nullptr : &found->second;
}

}  // namespace verger::controller
