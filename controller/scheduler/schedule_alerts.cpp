#include "controller/scheduler/schedule_alerts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/scheduler/due.h"
#include "planner/operations.h"

namespace verger::controller {

using nlohmann::json;

void ScheduleAlerts::check_lateness(const StoredPolicy& stored, const ClusterConfig& cluster) {
  const auto* operation = planner::operation_of(stored.policy.plan);
  const auto seen = runs_.observer().last_seen(cluster.name);
  if (operation == nullptr || operation->need == nullptr || seen == nullptr ||
      !runs_.active_runs(cluster.name).empty()) {
    return;
  }
  const ScheduleKey key{stored.policy.name, cluster.name};
  const auto now = to_instant(clock_.now());
  const auto need = operation->need(*seen, stored.policy.plan);
  const auto rules = book_.rules(cluster, key.first);
  const auto late = why_too_late(stored.policy, rules, need, now);
  const bool may_start_now = !log_.state(key).waiting.empty() && opening_at(rules, now).open;
  if (!may_start_now || late.empty()) {
    log_.set_late(key, need.deadline, late);
  }
}

void ScheduleAlerts::check_age(const StoredPolicy& stored, const ClusterConfig& cluster) {
  const auto* operation = planner::operation_of(stored.policy.plan);
  const auto limit_ms = operation == nullptr || operation->max_age_ms == nullptr
                            ? 0
                            : operation->max_age_ms(stored.policy.plan);
  std::optional<Ticks> newest;
  if (limit_ms > 0) {
    newest = newest_result(operation->name, cluster.name);
  }
  const auto since = newest.value_or(stored.at);
  std::string reason;
  if (limit_ms > 0 && clock_.now().value() - since.value() > limit_ms * kTicksPerMillisecond) {
    reason = fmt::format(
        "{}-too-old: {} {}, and at most {:g} h are allowed", operation->name,
        newest ? fmt::format("the newest {} that was done is of", operation->name)
               : fmt::format("no {} was done since the policy was applied at", operation->name),
        format_ticks(since), static_cast<double>(limit_ms) / 3'600'000);
  }
  log_.set_too_old({stored.policy.name, cluster.name}, since, reason);
}

std::optional<Ticks> ScheduleAlerts::newest_result(std::string_view operation,
                                                   const std::string& cluster) const {
  std::optional<Ticks> newest;
  for (const auto& run : runs_.runs(cluster)) {
    const auto kept = run->kept.find(std::string(kResultValue));
    if (run->status != RunStatus::kDone || run->operation != operation || kept == run->kept.end()) {
      continue;
    }
    const auto value = json::parse(kept->second, nullptr, false);
    const auto at = parse_ticks(value.is_object() ? value.value("at", std::string()) : "");
    if (at && (!newest || *newest < *at)) {
      newest = *at;
    }
  }
  return newest;
}

}  // namespace verger::controller
