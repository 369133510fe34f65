#include "controller/executor/executor.h"

#include <algorithm>
#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <nlohmann/json.hpp>

#include "controller/cluster/identity.h"
#include "controller/cluster/prometheus.h"
#include "controller/executor/detail/by_prefix.h"
#include "controller/executor/detail/core.h"
#include "controller/executor/events.h"
#include "controller/executor/plan_json.h"

namespace verger::controller {

using nlohmann::json;

namespace {

constexpr std::string_view kRuns = "run/";  ///< streams, by id

/// What a person gets who wants of a run what it cannot do in its state.
Error wrong_state(std::string_view id, RunStatus status) {
  const auto shown = id.substr(0, 12);
  std::string what;
  switch (status) {
    case RunStatus::kDone:
    case RunStatus::kFailed:
    case RunStatus::kCancelled:
      what = fmt::format(
          "it has ended, `verger run show {}` tells how; a new run begins with "
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

Error cluster_paused(const ClusterConfig& cluster) {
  return {Errc::kRefused,
          fmt::format("cluster {} is paused{}{}; end its pause with: verger cluster resume {}",
                      cluster.name, cluster.pause_reason.empty() ? "" : ": ", cluster.pause_reason,
                      cluster.name)};
}

}  // namespace

struct Executor::Impl {
  explicit Impl(ExecutorParts parts) : core(std::make_shared<detail::Core>(std::move(parts))) {}
  std::shared_ptr<detail::Core> core;

  void launch(std::shared_ptr<detail::Run> run) {
    core->running.begin();
    net::co_spawn(core->parts.executor, detail::drive_run(core, run),
                  [core = core, run](std::exception_ptr) {
                    retire(*core, *run);
                    core->running.end();
                  });
  }

  /// Of a run that has ended, memory keeps the summary.
  static void retire(detail::Core& core, const detail::Run& run) {
    if (has_ended(run.state.status)) {
      const auto id = run.state.id;
      core.ended[id] = std::make_shared<const RunSummary>(summary_of(run.state));
      core.runs.erase(id);
    }
  }

  [[nodiscard]] std::shared_ptr<detail::Run> active_run(std::string_view cluster) const {
    for (const auto& [id, run] : core->runs) {
      if (run->state.cluster == cluster && !has_ended(run->state.status)) {
        return run;
      }
    }
    return nullptr;
  }

  /// A run that can be told something. Errors: kNotFound, kConflict (it has ended).
  [[nodiscard]] Result<std::shared_ptr<detail::Run>> find(std::string_view id) const {
    const auto found = core->runs.find(id);
    if (found != core->runs.end() && !has_ended(found->second->state.status)) {
      return found->second;
    }
    VERGER_TRY(const auto status, status_of(id));
    return wrong_state(id, status);
  }

  [[nodiscard]] Result<RunStatus> status_of(std::string_view id) const {
    if (const auto found = core->runs.find(id); found != core->runs.end()) {
      return found->second->state.status;
    }
    if (const auto found = core->ended.find(id); found != core->ended.end()) {
      return found->second->status;
    }
    return Error{Errc::kNotFound,
                 fmt::format("there is no run {}; `verger run list` shows them", id)};
  }

  Result<void> record(detail::Run& run, std::string_view type, const json& data) {
    VERGER_CHECK(core->record(run, {{std::string(type), data}}));
    run.wake();
    return {};
  }

  Result<void> pause(std::string_view id, json data, PauseMode mode) {
    VERGER_TRY(const auto run, find(id));
    data["mode"] = to_string(mode);
    switch (run->state.status) {
      case RunStatus::kPausing:
        if (mode != PauseMode::kNow || run->state.pause_mode == PauseMode::kNow) {
          return {};  // a pause always succeeds
        }
        data["cluster"] = run->state.paused_with_cluster;
        return record(*run, events::kRunPausing, data);
      case RunStatus::kPaused:
        return {};
      case RunStatus::kPlanned:
      case RunStatus::kRunning:
      case RunStatus::kWaiting:
        return record(*run, events::kRunPausing, data);
      case RunStatus::kCancelling:
      case RunStatus::kDone:
      case RunStatus::kFailed:
      case RunStatus::kCancelled:
        break;
    }
    return wrong_state(id, run->state.status);
  }

  Result<void> load_runs() {
    VERGER_TRY(const auto kept, core->parts.journal.current_snapshots(kRuns));
    for (const auto& snapshot : kept) {
      auto summary = parse_summary(snapshot);
      if (summary && has_ended(summary->status)) {
        core->ended[summary->id] = std::make_shared<const RunSummary>(*summary);
      }
    }
    VERGER_TRY(const auto streams, core->parts.journal.streams(kRuns));
    for (const auto& stream : streams) {
      const auto id = stream.substr(kRuns.size());
      if (core->ended.contains(id)) {
        continue;
      }
      auto run = std::make_shared<detail::Run>(core->parts.journal, id, core->parts.epoch);
      VERGER_CHECK(core->reload(*run));
      core->runs[id] = run;
      if (has_ended(run->state.status)) {
        core->keep_snapshot(*run);
        retire(*core, *run);
      }
    }
    return {};
  }

  /// Durations of steps that this cluster's runs have seen.
  [[nodiscard]] planner::History history(std::string_view cluster) const {
    planner::History out;
    const auto add = [&](const RunSummary& run) {
      if (run.cluster == cluster) {
        out.durations.insert(out.durations.end(), run.durations.begin(), run.durations.end());
      }
    };
    for (const auto& [id, run] : core->ended) {
      add(*run);
    }
    for (const auto& [id, run] : core->runs) {
      add(summary_of(run->state));
    }
    return out;
  }

  /// Remembers the database's identity when all agents agree on it for the first time.
  Result<void> learn_identity(const ClusterConfig& config,
                              const planner::ClusterSnapshot& snapshot) {
    if (!config.identity.empty()) {
      return {};
    }
    auto identity = identity_of(snapshot);
    return identity.empty() ? Result<void>()
                            : core->parts.registry.set_identity(config.name, std::move(identity));
  }
};

Executor::Executor(ExecutorParts parts) : impl_(std::make_shared<Impl>(std::move(parts))) {}

Executor::~Executor() { impl_->core->stopping = true; }

Result<void> Executor::start() {
  VERGER_CHECK(impl_->core->plans.load());
  VERGER_CHECK(impl_->load_runs());
  for (const auto& [id, run] : impl_->core->runs) {
    if (!has_ended(run->state.status)) {
      impl_->launch(run);
    }
  }
  return {};
}

net::awaitable<void> Executor::stop() {
  const auto core = impl_->core;
  core->stopping = true;
  for (const auto& [id, run] : core->runs) {
    run->wake();
  }
  co_await core->running.wait_for_all();
}

net::awaitable<Result<planner::ClusterSnapshot>> Executor::observe(std::string cluster) {
  const auto impl = impl_;
  VERGER_CO_TRY(auto config, impl->core->parts.registry.find(cluster));
  co_return co_await impl->core->observer.take(std::move(config));
}

net::awaitable<Result<std::expected<StoredPlan, PlanRefused>>> Executor::make_plan(
    std::string cluster, planner::Policy policy, std::string by) {
  const auto impl = impl_;
  VERGER_CO_TRY(auto config, impl->core->parts.registry.find(cluster));
  if (impl->core->parts.options.shared_journal) {
    if (const auto fenced = check_fencing(config); !fenced) {
      co_return std::expected<StoredPlan, PlanRefused>(
          std::unexpected(PlanRefused{{planner::Refusal{
              .code = "no-fencing",
              .node = {},
              .message = fenced.error().message,
              .hint = "a pair of vergerds looks after clusters with agents alone"}}}));
    }
  }
  auto snapshot = co_await impl->core->observer.take(config);
  if (auto newer = newer_controller(snapshot, impl->core->parts.epoch); !newer.empty()) {
    co_return std::expected<StoredPlan, PlanRefused>(std::unexpected(
        PlanRefused{{planner::Refusal{.code = "newer-controller",
                                      .node = {},
                                      .message = std::move(newer),
                                      .hint = std::string(kNewerControllerHint)}}}));
  }
  if (const auto* hours = impl->core->parts.hours) {
    snapshot.hours = hours->hours(config, policy.name, snapshot.taken_at);
  }
  snapshot.queries = co_await ask_queries(impl->core->parts.network, policy.scavenge.queries);
  VERGER_CO_CHECK(impl->learn_identity(config, snapshot));
  auto plan = planner::make_plan(snapshot, policy, impl->history(cluster));
  if (!plan) {
    // What stands in the way is then most often that run's own work.
    if (const auto active = impl->active_run(cluster)) {
      const auto shown = active->state.id.substr(0, 12);
      plan.error().insert(
          plan.error().begin(),
          planner::Refusal{.code = "run-active",
                           .node = {},
                           .message = fmt::format("run {} of this cluster is {}", shown,
                                                  to_string(active->state.status)),
                           .hint = fmt::format("follow it with: verger run watch {}", shown)});
    }
    co_return std::expected<StoredPlan, PlanRefused>(
        std::unexpected(PlanRefused{std::move(plan.error())}));
  }
  VERGER_CO_TRY(auto stored, impl->core->plans.add(std::move(*plan), std::move(by),
                                                   impl->core->parts.network.clock.now()));
  co_return std::expected<StoredPlan, PlanRefused>(std::move(stored));
}

Result<StoredPlan> Executor::find_plan(std::string_view hash) const {
  return impl_->core->plans.find(hash);
}

std::vector<PlanSummary> Executor::plans(std::string_view cluster) const {
  return impl_->core->plans.list(cluster);
}

net::awaitable<std::expected<std::string, StartRefused>> Executor::apply(std::string hash,
                                                                         std::string by) {
  const auto impl = impl_;
  auto& core = *impl->core;
  const auto refused = [](Error error, std::vector<std::string> differences = {}) {
    return std::unexpected(StartRefused{std::move(error), std::move(differences)});
  };
  const auto stored = find_plan(hash);
  if (!stored) {
    co_return refused(stored.error());
  }
  const auto plan = stored->plan;
  const auto config = core.parts.registry.find(plan->cluster);
  if (!config) {
    co_return refused(config.error());
  }
  for (const auto& stage : plan->stages) {
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        if (core.parts.kinds.find(step.kind) == nullptr) {
          co_return refused(Error{
              Errc::kUnsupported,
              fmt::format("step {} of plan {}: this controller does not know the kind \"{}\"; "
                          "make a new plan, or use the controller that made this one",
                          step.id, plan->hash.substr(0, 12), step.kind)});
        }
      }
    }
  }
  const auto may_start = [&]() -> Result<void> {
    if (core.stopping) {
      return Error{Errc::kUnavailable, "this controller is stopping, or another has taken over"};
    }
    VERGER_TRY(const auto now, core.parts.registry.find(plan->cluster));
    if (now.paused) {
      return cluster_paused(now);
    }
    if (core.parts.options.shared_journal) {
      VERGER_CHECK(check_fencing(now));
    }
    if (const auto other = impl->active_run(plan->cluster)) {
      const auto shown = other->state.id.substr(0, 12);
      return Error{Errc::kRefused,
                   fmt::format("run {} of cluster {} is {}; follow it with: verger run watch {}, "
                               "or end it with: verger run cancel {}",
                               other->state.id, plan->cluster, to_string(other->state.status),
                               shown, shown)};
    }
    return {};
  };
  if (auto first = may_start(); !first) {
    co_return refused(first.error());
  }
  const auto snapshot = co_await core.observer.take(*config);
  auto differences = planner::diff_basis(plan->basis, planner::basis_of(snapshot));
  if (!differences.empty()) {
    co_return refused(
        Error{Errc::kConflict, fmt::format("plan {} is stale: {}; make a new one",
                                           plan->hash.substr(0, 12), fmt::join(differences, "; "))},
        differences);
  }
  // Somebody may have started another run meanwhile.
  if (auto second = may_start(); !second) {
    co_return refused(second.error());
  }
  const auto id = core.parts.random.uuid().to_string();
  auto run = std::make_shared<detail::Run>(core.parts.journal, id, core.parts.epoch);
  auto recorded = core.record_start(*run, plan, std::move(by));
  if (!recorded) {
    co_return refused(recorded.error());
  }
  core.runs[id] = run;
  impl->launch(run);
  co_return id;
}

std::vector<std::shared_ptr<const RunSummary>> Executor::runs(std::string_view cluster) const {
  std::vector<std::shared_ptr<const RunSummary>> out;
  const auto add = [&](const std::shared_ptr<const RunSummary>& run) {
    if (cluster.empty() || run->cluster == cluster) {
      out.push_back(run);
    }
  };
  for (const auto& [id, run] : impl_->core->runs) {
    add(std::make_shared<const RunSummary>(summary_of(run->state)));
  }
  for (const auto& [id, run] : impl_->core->ended) {
    add(run);
  }
  std::ranges::sort(out, std::greater<>(), [](const auto& run) {
    return std::pair(run->started_at, std::string_view(run->id));
  });
  return out;
}

std::vector<std::shared_ptr<const RunState>> Executor::active_runs(std::string_view cluster) const {
  std::vector<std::shared_ptr<const RunState>> out;
  for (const auto& [id, run] : impl_->core->runs) {
    if (!has_ended(run->state.status) && (cluster.empty() || run->state.cluster == cluster)) {
      out.push_back(std::make_shared<const RunState>(run->state));
    }
  }
  return out;
}

Result<std::shared_ptr<const RunState>> Executor::find_run(std::string_view id) const {
  const auto& core = *impl_->core;
  VERGER_TRY(const auto key,
             detail::find_by_prefix("run", "verger run list", id, core.runs, core.ended));
  if (const auto found = core.runs.find(key); found != core.runs.end()) {
    return std::make_shared<const RunState>(found->second->state);
  }
  VERGER_TRY(auto state, replay_run(core.parts.journal, std::string(kRuns) + key));
  return std::make_shared<const RunState>(std::move(state));
}

Result<void> Executor::pause(std::string_view id, std::string by, std::string reason,
                             PauseMode mode) {
  return impl_->pause(id, {{"by", std::move(by)}, {"reason", std::move(reason)}}, mode);
}

Result<void> Executor::pause_cluster(std::string_view cluster, std::string by, std::string reason,
                                     PauseMode mode, std::optional<Ticks> until) {
  VERGER_CHECK(impl_->core->parts.registry.set_paused(cluster, true, reason, until));
  if (const auto run = impl_->active_run(cluster);
      run && run->state.status != RunStatus::kCancelling) {
    VERGER_CHECK(impl_->pause(
        run->state.id, {{"by", std::move(by)}, {"reason", std::move(reason)}, {"cluster", true}},
        mode));
  }
  return {};
}

net::awaitable<Result<void>> Executor::resume_cluster(std::string cluster, std::string by) {
  const auto impl = impl_;
  VERGER_CO_CHECK(impl->core->parts.registry.set_paused(cluster, false, ""));
  const auto run = impl->active_run(cluster);
  if (run && run->state.paused_with_cluster &&
      (run->state.status == RunStatus::kPaused || run->state.status == RunStatus::kPausing)) {
    auto resumed = co_await resume(run->state.id, std::move(by));
    if (!resumed) {
      co_return resumed.error().within(
          fmt::format("cluster {} goes on, but its run does not", cluster));
    }
  }
  co_return Result<void>{};
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

Result<void> Executor::skip_node(std::string_view id, std::string_view node, std::string by,
                                 std::string reason) {
  VERGER_TRY(const auto run, impl_->find(id));
  const auto& nodes = run->state.plan->basis.nodes;
  if (std::ranges::find(nodes, node, &planner::BasisNode::name) == nodes.end()) {
    std::vector<std::string_view> names;
    names.reserve(nodes.size());
    for (const auto& known : nodes) {
      names.push_back(known.name);
    }
    return Error{Errc::kNotFound, fmt::format("run {} knows no node {}; its nodes are {}", id, node,
                                              fmt::join(names, ", "))};
  }
  if (run->state.skipped_nodes.contains(std::string(node))) {
    return {};
  }
  return impl_->record(*run, events::kNodeSkipped,
                       {{"node", node}, {"by", std::move(by)}, {"reason", std::move(reason)}});
}

net::awaitable<Result<void>> Executor::resume(std::string id, std::string by) {
  const auto impl = impl_;
  VERGER_CO_TRY(const auto run, impl->find(id));
  const auto is_paused = [&run] {
    return run->state.status == RunStatus::kPaused || run->state.status == RunStatus::kPausing;
  };
  if (!is_paused()) {
    co_return wrong_state(id, run->state.status);
  }
  VERGER_CO_TRY(auto config, impl->core->parts.registry.find(run->state.cluster));
  if (config.paused) {
    co_return cluster_paused(config);
  }
  const auto snapshot = co_await impl->core->observer.take(std::move(config));
  // Roles and instances may change while a run is paused; the gates look at them. Members,
  // addresses and versions may not.
  auto planned = run->state.plan->basis;
  auto now = planner::basis_of(snapshot);
  for (auto* basis : {&planned, &now}) {
    for (auto& node : basis->nodes) {
      node.role.clear();
      node.instance_id.clear();
    }
  }
  for (auto& node : now.nodes) {
    const auto* seen = snapshot.find(node.name);
    const auto old = std::ranges::find(planned.nodes, node.name, &planner::BasisNode::name);
    if (seen != nullptr && !seen->answered && old != planned.nodes.end()) {
      node.version = old->version;  // it is down; the gates wait for it
    }
  }
  auto differences = planner::diff_basis(planned, now);
  for (const auto& node : snapshot.nodes) {
    if (node.wrong_identity) {
      differences.push_back(fmt::format("{}: {}", node.name, node.problem));
    }
  }
  if (!differences.empty()) {
    co_return Error{Errc::kConflict,
                    fmt::format("run {} cannot go on: {}; cancel it and make a new plan", id,
                                fmt::join(differences, "; "))};
  }
  if (!is_paused()) {
    co_return wrong_state(id, run->state.status);
  }
  co_return impl->record(*run, events::kRunResumed, {{"by", std::move(by)}});
}

}  // namespace verger::controller
