#include <algorithm>
#include <fmt/format.h>

#include "engine/base/mutation.h"
#include "nodeagent/operations/detail/operation_runner.h"
#include "nodeagent/operations/last_look.h"

/// What keeps an operation that was accepted from acting: another one, its gates, a permit or an
/// instance that is no longer the one, and what its kind sees at its last look.
namespace verger::agent {
namespace {

/// A job that no controller has queried for so long makes way for another.
constexpr std::chrono::seconds kUnqueried{60};

}  // namespace

Result<void> OperationRunner::permitted_now(const api::OperationRequest& request) const {
  return is_mutated("permit-ignored") ? Result<void>() : permits_.check(request);
}

net::awaitable<std::optional<OperationRunner::Hindrance>> OperationRunner::hindrance(
    Self self, RunningOperation record) {
  if (const auto other = self->in_the_way(*record); !other.empty()) {
    co_return Hindrance{"gate_closed", other};
  }
  auto closed = co_await closed_gates(self->local_node(), self->environment_.files,
                                      record->request.parameters_json);
  if (self->gone_) {
    co_return std::nullopt;
  }
  if (!closed.empty()) {
    co_return Hindrance{"gate_closed", std::move(closed)};
  }
  const auto looked = co_await self->last_look(record);
  if (!self->gone_ && !looked) {
    co_return Hindrance{std::string(to_string(looked.error().code)), looked.error().message};
  }
  co_return std::nullopt;
}

std::optional<OperationRunner::Hindrance> OperationRunner::hindrance_now(
    const OperationRecord& record) const {
  if (stopping_) {
    return Hindrance{"not_happened", "the agent was stopped before it acted; nothing was done"};
  }
  if (const auto other = in_the_way(record); !other.empty()) {
    return Hindrance{"gate_closed", other};
  }
  const auto as_hindrance = [](const Error& error) {
    return Hindrance{std::string(to_string(error.code)), error.message + "; nothing was done"};
  };
  if (const auto same = check_instance(record.request); !same) {
    return as_hindrance(same.error());
  }
  if (const auto permitted = permitted_now(record.request); !permitted) {
    return as_hindrance(permitted.error());
  }
  return std::nullopt;
}

std::string OperationRunner::in_the_way(const OperationRecord& record) const {
  if (!kinds_.at(record.request.kind)->works_on_files()) {
    return {};
  }
  for (const auto& [id, other] : running_) {
    const auto kind = kinds_.find(other->request.kind);
    if (id == record.request.id || kind == kinds_.end() || !kind->second->works_on_files() ||
        (kind->second->works_in_server() && environment_.inspection() == nullptr)) {
      continue;
    }
    auto text = fmt::format("operation {} works on the node's files", id);
    const auto& control = controls_.at(id);
    if (kind->second->resumes_by_acting() && control->unqueried() > kUnqueried) {
      control->cancel(/*keep=*/false);
      text += "; it is being stopped, since no controller has queried it for a minute";
    }
    return text;
  }
  return {};
}

Result<void> OperationRunner::check_instance(const api::OperationRequest& request) const {
  const auto& expected = request.expected_instance_id;
  const auto* node = environment_.inspection();
  if (!expected.empty() && node != nullptr && node->instance_id() != expected) {
    return Error{Errc::kConflict,
                 fmt::format("the node is instance {}, not {}: it was restarted or replaced since "
                             "the plan looked at it",
                             node->instance_id(), expected)};
  }
  return {};
}

net::awaitable<Result<void>> OperationRunner::last_look(RunningOperation record) {
  VERGER_CO_RETURN_IF_ERROR(check_instance(record->request));
  VERGER_CO_RETURN_IF_ERROR(permitted_now(record->request));
  auto& kind = *kinds_.at(record->request.kind);
  if (auto* node = environment_.inspection(); node != nullptr && kind.needs_own_directories()) {
    VERGER_CO_RETURN_IF_ERROR(co_await node->prove_directories());
  }
  co_return co_await kind.look(local_node(record), *record);
}

}  // namespace verger::agent
