#include "planner/operations.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>
#include <variant>

#include "planner/detail/make_field.h"

namespace verger::planner {
namespace {

using detail::field;

/// What every run has. Names are parts of hashes and journals.
const std::vector<Field>& common_fields() {
  static const std::vector<Field> kFields{
      field<&PauseRules::on_pause>("onPause", "on_pause",
                                   "What a pause does to work under way that can be stopped"),
      field<&PauseRules::on_close>("onClose", "on_close", "The same at the end of the run's hours")
          .later(),
      field<&GateLimits::lag_limit_bytes>("lagLimitBytes", "gates.lag_limit",
                                          "What any live node may lack behind the leader")
          .size(),
      field<&GateLimits::disk_reserve_bytes>(
          "diskReserveBytes", "gates.disk_reserve",
          "Disk of a node that must stay free beyond its largest rewrite")
          .size(),
      field<&GateLimits::clock_skew_limit_ms>(
          "clockSkewLimitMs", "gates.clock_skew",
          "What a node's clock may differ from the controller's")
          .length()
          .later(),
      field<&GateLimits::certificate_margin_ms>(
          "certificateMarginMs", "gates.certificate_margin",
          "How long certificates must be valid after the expected end of a step")
          .length()
          .later(),
      field<&GateLimits::queries>("queries", "gates.queries",
                                  "Prometheus queries that hold work back")
          .later(),
      field<&RunLimits::election_settle_ms>("electionSettleMs", "gates.election_settle",
                                            "No work and no resignation sooner after an election")
          .length(),
      field<&RunLimits::move_settle_ms>("moveSettleMs", "gates.move_settle",
                                        "The same after the run's own move of the leader")
          .length()
          .later(),
      field<&RunLimits::leader_hold_ms>("leaderHoldMs", "gates.leader_hold",
                                        "How long a new leader must hold before a move counts")
          .length(),
      field<&RunLimits::resign_attempts>("resignAttempts", "retries.resign",
                                         "Requests to resign, before the run fails")
          .between(1, 3),
      field<&RunLimits::move_deadline_ms>("moveDeadlineMs", "deadlines.move",
                                          "For a move of the leadership")
          .length(),
      field<&RunLimits::undo_deadline_ms>("undoDeadlineMs", "deadlines.undo",
                                          "For undoing what a stage did")
          .length(),
      field<&RunLimits::service_deadline_ms>(
          "serviceDeadlineMs", "deadlines.service",
          "For a server's stop, and again until it answers after its start")
          .length()
          .later(),
      field<&RunLimits::gate_deadline_ms>(
          "gateDeadlineMs", "deadlines.gate",
          "An alert is raised for a gate closed for longer; 0s: each gate has its own time")
          .length(),
      field<&RunLimits::check_server_work>(
          "checkServerWork", "after_leader_move.check",
          "Whether projections and persistent subscriptions are looked for after a move")
          .later(),
      field<&RunLimits::server_work_back_ms>("serverWorkBackMs", "after_leader_move.back_within",
                                             "How long they may take to come back")
          .length()
          .later(),
      field<&RunLimits::server_work_wait_ms>("serverWorkWaitMs", "after_leader_move.wait",
                                             "How long the run waits for those that have not")
          .length()
          .later(),
      field<&RunLimits::restart_server_work>("restartServerWork", "after_leader_move.restart",
                                             "Whether they are started again, once")
          .later(),
  };
  return kFields;
}

/// What agents do for every operation: short, and not with the node's files.
constexpr AgentKind kCommonAgentKinds[] = {
    {.name = "resign", .touches_files = false},
    {.name = "set_priority", .touches_files = false},
    {.name = "reload", .touches_files = false},
    {.name = "start_service", .touches_files = false},
    {.name = "digest", .touches_files = false, .needs_server = true}};

constexpr auto kOperationCount = std::variant_size_v<OperationPolicy> - 1;

/// In the order of the alternatives, so that an index of one is an index of the other.
template <std::size_t... kIndex>
const std::array<const Operation*, kOperationCount>& operations_of(
    std::index_sequence<kIndex...> /*all*/) {
  static const std::array<const Operation*, kOperationCount> kOperations{
      &std::variant_alternative_t<kIndex, OperationPolicy>::operation()...};
  return kOperations;
}

}  // namespace

std::span<const Operation* const> operations() {
  return operations_of(std::make_index_sequence<kOperationCount>());
}

bool Operation::is_work(const Step& step) const {
  return std::ranges::find(work_steps, step.kind) != work_steps.end();
}

const Operation* find_operation(std::string_view name) {
  const auto found =
      std::ranges::find(operations(), name, [](const Operation* each) { return each->name; });
  return found == operations().end() ? nullptr : *found;
}

std::string_view operation_name(const Policy& policy) {
  if (const auto* unknown = std::get_if<UnknownOperation>(&policy.operation)) {
    return unknown->name;
  }
  return operations()[policy.operation.index()]->name;
}

const Operation* operation_of(const Policy& policy) {
  return find_operation(operation_name(policy));
}

std::string known_operations() {
  std::vector<std::string_view> names;
  for (const auto* each : operations()) {
    names.push_back(each->name);
  }
  return fmt::format("known operations are: {}", fmt::join(names, ", "));
}

std::vector<const Field*> fields_of(const Operation& operation) {
  std::vector<const Field*> out;
  for (const auto& each : operation.fields()) {
    out.push_back(&each);
  }
  for (const auto& each : common_fields()) {
    out.push_back(&each);
  }
  return out;
}

const AgentKind* find_agent_kind(std::string_view name) {
  const auto* common = std::ranges::find(kCommonAgentKinds, name, &AgentKind::name);
  if (common != std::end(kCommonAgentKinds)) {
    return common;
  }
  for (const auto* operation : operations()) {
    const auto found = std::ranges::find(operation->agent_kinds, name, &AgentKind::name);
    if (found != operation->agent_kinds.end()) {
      return &*found;
    }
  }
  return nullptr;
}

}  // namespace verger::planner
