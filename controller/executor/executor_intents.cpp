// Operators' intents for runs that have begun: pause, resume, cancel, leave a node out.
#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/executor/detail/executor_impl.h"
#include "controller/executor/detail/run_context.h"
#include "controller/executor/detail/skipped_nodes.h"
#include "controller/executor/events.h"
#include "controller/executor/step_support.h"

namespace verger::controller {

using detail::cluster_paused;
using nlohmann::json;

namespace {

/// What a person gets who wants of a run what it cannot do in its state.
Error wrong_state(std::string_view id, RunStatus status) {
  const auto shown = id.substr(0, 12);
  std::string what;
  switch (status) {
    case RunStatus::kDone:
    case RunStatus::kDoneWithDifferences:
    case RunStatus::kFailed:
    case RunStatus::kCancelled:
      what = fmt::format(
          "it has ended, `verger run show {}` shows how; a new run begins with "
          "verger plan",
          shown);
      break;
    case RunStatus::kCancelling:
      what = fmt::format("it ends by itself in a safe state; follow it with: verger run watch {}",
                         shown);
      break;
    case RunStatus::kPlanned:
    case RunStatus::kRunning:
    case RunStatus::kWaiting:
    case RunStatus::kPausing:
    case RunStatus::kPaused:
      what = fmt::format("only a paused run can be resumed; follow it with: verger run watch {}",
                         shown);
      break;
  }
  return {Errc::kConflict, fmt::format("run {} is {}: {}", id, to_string(status), what)};
}

}  // namespace

Error detail::cluster_paused(const ClusterConfig& cluster) {
  return {Errc::kRefused,
          fmt::format("cluster {} is paused{}{}; end its pause with: verger cluster resume {}",
                      cluster.name, cluster.pause_reason.empty() ? "" : ": ", cluster.pause_reason,
                      cluster.name)};
}

Result<std::shared_ptr<detail::Run>> Executor::Impl::find(std::string_view id) const {
  const auto found = core->runs.find(id);
  if (found != core->runs.end() && !has_ended(found->second->state.status)) {
    return found->second;
  }
  VERGER_TRY(const auto status, status_of(id));
  return wrong_state(id, status);
}

Result<void> Executor::Impl::record(detail::Run& run, std::string_view type, const json& data) {
  VERGER_RETURN_IF_ERROR(core->record(run, {{std::string(type), data}}));
  run.wake();
  return {};
}

Result<void> Executor::Impl::pause(std::string_view id, json data, PauseMode mode) {
  VERGER_TRY(const auto run, find(id));
  data["mode"] = to_string(mode);
  switch (run->state.status) {
    case RunStatus::kPausing:
      if (run->state.paused_with_cluster && !data.value("cluster", false)) {
        // From now on a person's: it does not resume with its cluster.
        data["mode"] = to_string(mode == PauseMode::kNow ? mode : run->state.pause_mode);
        return record(*run, events::kRunPausing, data);
      }
      if (mode != PauseMode::kNow || run->state.pause_mode == PauseMode::kNow) {
        return {};  // a pause always succeeds
      }
      data["cluster"] = run->state.paused_with_cluster;
      return record(*run, events::kRunPausing, data);
    case RunStatus::kPaused:
      if (run->state.paused_with_cluster && !data.value("cluster", false)) {
        return record(*run, events::kRunPausing, data);
      }
      return {};
    case RunStatus::kPlanned:
    case RunStatus::kRunning:
    case RunStatus::kWaiting:
      return record(*run, events::kRunPausing, data);
    case RunStatus::kCancelling:
    case RunStatus::kDone:
    case RunStatus::kDoneWithDifferences:
    case RunStatus::kFailed:
    case RunStatus::kCancelled:
      break;
  }
  return wrong_state(id, run->state.status);
}

Result<void> Executor::pause(std::string_view id, std::string by, std::string reason,
                             PauseMode mode) {
  return impl_->pause(id, {{"by", std::move(by)}, {"reason", std::move(reason)}}, mode);
}

Result<void> Executor::pause_cluster(std::string_view cluster, std::string by, std::string reason,
                                     PauseMode mode, std::optional<Ticks> until) {
  VERGER_RETURN_IF_ERROR(impl_->core->parts.registry.set_paused(cluster, true, reason, until));
  if (const auto run = impl_->active_run(cluster);
      run && run->state.status != RunStatus::kCancelling) {
    VERGER_RETURN_IF_ERROR(impl_->pause(
        run->state.id, {{"by", std::move(by)}, {"reason", std::move(reason)}, {"cluster", true}},
        mode));
  }
  return {};
}

net::awaitable<Result<void>> Executor::resume_cluster(std::string cluster, std::string by) {
  const auto impl = impl_;
  VERGER_CO_RETURN_IF_ERROR(impl->core->parts.registry.set_paused(cluster, false, ""));
  const auto run = impl->active_run(cluster);
  if (run && run->state.paused_with_cluster &&
      (run->state.status == RunStatus::kPaused || run->state.status == RunStatus::kPausing)) {
    auto resumed = co_await resume(run->state.id, std::move(by));
    if (!resumed) {
      auto error = resumed.error().within(
          fmt::format("cluster {} is no longer paused, but its run is", cluster));
      if (!has_ended(run->state.status) && !run->state.has_open_alert(kResumeAlert)) {
        VERGER_CO_RETURN_IF_ERROR(
            impl->record(*run, events::kAlert,
                         {{"step", ""}, {"key", kResumeAlert}, {"reason", error.message}}));
      }
      co_return error;
    }
  }
  co_return Result<void>{};
}

bool Executor::has_run_to_resume(std::string_view cluster) const {
  const auto config = impl_->core->parts.registry.find(cluster);
  const auto run = impl_->active_run(cluster);
  return config && !config->paused && run && run->state.paused_with_cluster &&
         run->state.status == RunStatus::kPaused;
}

Result<void> Executor::cancel(std::string_view id, std::string by, std::string reason) {
  VERGER_TRY(const auto status, impl_->status_of(id));
  if (status == RunStatus::kCancelling || status == RunStatus::kCancelled) {
    return {};
  }
  VERGER_TRY(const auto run, impl_->find(id));
  return impl_->record(*run, events::kRunCancelling,
                       {{"by", std::move(by)}, {"reason", std::move(reason)}});
}

Result<void> Executor::throttle(std::string_view id, std::string by, api::Throttle throttle) {
  VERGER_TRY(const auto run, impl_->find(id));
  return impl_->record(*run, events::kRunValue,
                       {{"name", steps::kThrottleValue},
                        {"value",
                         {{"percent", throttle.percent},
                          {"bytes_per_second", throttle.bytes_per_second},
                          {"by", std::move(by)}}}});
}

net::awaitable<Result<std::string>> Executor::skip_node(std::string id, std::string node,
                                                        std::string by, std::string reason,
                                                        bool force) {
  const auto impl = impl_;
  VERGER_CO_TRY(const auto run, impl->find(id));
  const auto& nodes = run->state.plan->basis.nodes;
  if (std::ranges::find(nodes, node, &planner::BasisNode::name) == nodes.end()) {
    std::vector<std::string_view> names;
    names.reserve(nodes.size());
    for (const auto& known : nodes) {
      names.push_back(known.name);
    }
    co_return Error{Errc::kNotFound, fmt::format("run {} knows no node {}; its nodes are {}", id,
                                                 node, fmt::join(names, ", "))};
  }
  const auto& decided = force ? run->state.disregarded_nodes : run->state.skipped_nodes;
  if (!decided.contains(node)) {
    VERGER_CO_RETURN_IF_ERROR(impl->record(
        *run, events::kNodeSkipped,
        {{"node", node}, {"by", std::move(by)}, {"reason", std::move(reason)}, {"force", force}}));
  }
  const auto config = impl->core->parts.registry.find(run->state.cluster);
  if (force || !config) {
    co_return std::string();
  }
  constexpr std::chrono::seconds kLookNoLongerThan{5};
  const auto snapshot =
      co_await impl->core->observer.take(*config, Depth::kQuick, kLookNoLongerThan);
  const auto left = detail::left_behind(run->state, snapshot, node);
  const auto* next = detail::next_waiting(run->state);
  if (!left || next == nullptr) {
    co_return std::string();
  }
  co_return fmt::format("{} {}; {} waits; {}", node, left->what, next->node,
                        detail::how_to_disregard(run->state, node));
}

net::awaitable<Result<void>> Executor::resume(std::string id, std::string by) {
  return Impl::resume(impl_, std::move(id), {{"by", std::move(by)}});
}

net::awaitable<Result<void>> Executor::resume_ignoring_hours(std::string id, std::string by,
                                                             std::string reason) {
  return Impl::resume(
      impl_, std::move(id),
      {{"by", std::move(by)}, {"reason", std::move(reason)}, {"ignore_hours", true}});
}

net::awaitable<Result<void>> Executor::Impl::resume(std::shared_ptr<Impl> impl, std::string id,
                                                    json data) {
  VERGER_CO_TRY(const auto run, impl->find(id));
  const auto is_paused = [&run] {
    return run->state.status == RunStatus::kPaused || run->state.status == RunStatus::kPausing;
  };
  if (!is_paused() && data.value("ignore_hours", false) &&
      run->state.status != RunStatus::kCancelling) {
    co_return impl->record(*run, events::kRunResumed, data);
  }
  if (!is_paused()) {
    co_return wrong_state(id, run->state.status);
  }
  VERGER_CO_TRY(auto config, impl->core->parts.registry.find(run->state.cluster));
  if (config.paused) {
    co_return cluster_paused(config);
  }
  const auto snapshot = co_await impl->core->observer.take(std::move(config));
  // Roles, instances and certificates may change while a run is paused, the last by the run itself;
  // the gates look at them. Members, addresses and versions may not.
  auto planned = run->state.plan->basis;
  auto now = planner::basis_of(snapshot, run->state.plan->policy);
  for (auto* basis : {&planned, &now}) {
    for (auto& node : basis->nodes) {
      node.role.clear();
      node.instance_id.clear();
      node.certificates.clear();
    }
  }
  for (auto& node : now.nodes) {
    const auto* seen = snapshot.find(node.name);
    const auto old = std::ranges::find(planned.nodes, node.name, &planner::BasisNode::name);
    if (seen != nullptr && !seen->answered && old != planned.nodes.end()) {
      node.version = old->version;  // it is down; the gates wait for it
    }
  }
  // Nor do members that the run itself has changed.
  const auto own = detail::own_member_changes(run->state.values);
  std::erase_if(now.nodes, [&](const auto& node) { return own.joined.contains(node.name); });
  std::erase_if(planned.nodes, [&](const auto& node) { return own.left.contains(node.name); });
  auto differences = planner::diff_basis(planned, now);
  for (const auto& node : snapshot.nodes) {
    if (node.wrong_identity) {
      differences.push_back(fmt::format("{}: {}", node.name, node.problem));
    }
  }
  if (!differences.empty()) {
    co_return Error{Errc::kConflict,
                    fmt::format("run {} cannot be resumed: {}; cancel it and make a new plan", id,
                                fmt::join(differences, "; "))};
  }
  if (!is_paused()) {
    co_return wrong_state(id, run->state.status);
  }
  co_return impl->record(*run, events::kRunResumed, data);
}

}  // namespace verger::controller
