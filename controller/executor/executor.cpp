#include "controller/executor/executor.h"

#include <algorithm>
#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <nlohmann/json.hpp>

#include "controller/cluster/identity.h"
#include "controller/cluster/own_queries.h"
#include "controller/executor/detail/by_prefix.h"
#include "controller/executor/detail/executor_impl.h"
#include "controller/executor/events.h"
#include "controller/executor/joining.h"
#include "controller/executor/plan_json.h"
#include "controller/executor/step_support.h"
#include "planner/operations.h"

namespace verger::controller {

using detail::cluster_paused;

namespace {

constexpr std::string_view kRuns = "run/";  ///< streams, by id

/// Nodes of the cluster get the data of a backup.
bool gives_older_data(const planner::Policy& policy) {
  const auto* operation = planner::find_operation(planner::operation_name(policy));
  return operation != nullptr &&
         (!operation->replaces_data.empty() || operation->joining != nullptr);
}

}  // namespace

void Executor::Impl::launch(std::shared_ptr<detail::Run> run) {
  core->running.begin();
  net::co_spawn(core->parts.executor, detail::drive_run(core, run),
                [core = core, run](std::exception_ptr) {
                  retire(*core, *run);
                  core->running.end();
                });
}

void Executor::Impl::retire(detail::Core& core, const detail::Run& run) {
  if (has_ended(run.state.status)) {
    const auto id = run.state.id;
    core.ended[id] = std::make_shared<const RunSummary>(summary_of(run.state));
    core.runs.erase(id);
  }
}

std::shared_ptr<detail::Run> Executor::Impl::active_run(std::string_view cluster) const {
  for (const auto& [id, run] : core->runs) {
    if (run->state.cluster == cluster && !has_ended(run->state.status)) {
      return run;
    }
  }
  return nullptr;
}

Result<RunStatus> Executor::Impl::status_of(std::string_view id) const {
  if (const auto found = core->runs.find(id); found != core->runs.end()) {
    return found->second->state.status;
  }
  if (const auto found = core->ended.find(id); found != core->ended.end()) {
    return found->second->status;
  }
  return Error{Errc::kNotFound,
               fmt::format("there is no run {}; `verger run list` shows them", id)};
}

Result<void> Executor::Impl::load_runs() {
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
    VERGER_RETURN_IF_ERROR(core->reload(*run));
    core->runs[id] = run;
    if (has_ended(run->state.status)) {
      core->keep_snapshot(*run);
      retire(*core, *run);
    }
  }
  return {};
}

planner::History Executor::Impl::history(std::string_view cluster) const {
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

std::vector<std::string> Executor::Impl::notes_on_older_data(std::string_view cluster) const {
  std::vector<std::string> out;
  const auto add = [&](std::string_view of, const auto& values) {
    const auto found = values.find(std::string(kOlderDataNoteValue));
    auto note = of != cluster || found == values.end()
                    ? std::string()
                    : steps::parsed_or_empty(found->second).value("note", std::string());
    if (!note.empty()) {
      out.push_back(std::move(note));
    }
  };
  for (const auto& [id, run] : core->ended) {
    add(run->cluster, run->kept);
  }
  for (const auto& [id, run] : core->runs) {
    add(run->state.cluster, run->state.values);
  }
  std::ranges::sort(out);
  return out;
}

Result<void> Executor::Impl::learn_identity(const ClusterConfig& config,
                                            const planner::ClusterSnapshot& snapshot) {
  if (!config.identity.empty()) {
    return {};
  }
  auto& registry = core->parts.registry;
  if (auto identity = identity_of(snapshot); !identity.empty()) {
    return registry.set_identity(config.name, std::move(identity));
  }
  auto epoch = epoch_of(snapshot);
  return snapshot.wrong_cluster.empty() && epoch.number > config.epoch.number
             ? registry.set_epoch(config.name, std::move(epoch))
             : Result<void>();
}

Executor::Executor(ExecutorParts parts) : impl_(std::make_shared<Impl>(std::move(parts))) {}

Executor::~Executor() { impl_->core->stopping = true; }

Result<void> Executor::start() {
  VERGER_RETURN_IF_ERROR(impl_->core->plans.load());
  VERGER_RETURN_IF_ERROR(impl_->load_runs());
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
  if (const auto joins = check_joining(impl->core->parts.registry, config, policy); !joins) {
    co_return std::expected<StoredPlan, PlanRefused>(std::unexpected(PlanRefused{{planner::Refusal{
        .code = "cannot-join",
        .node = {},
        .message = joins.error().message,
        .hint = "name the new node, its URL and its agent's as they are to be registered"}}}));
  }
  config = with_joining(std::move(config), policy);
  impl->core->observer.forget_certificates(config);
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
  if (!policy.gates.queries.empty()) {
    snapshot.queries =
        co_await answer_queries(impl->core->parts.network, impl->core->own_queries,
                                std::make_shared<Peers>(impl->core->parts.network, config),
                                policy.gates.queries, std::chrono::milliseconds(0));
  }
  VERGER_CO_RETURN_IF_ERROR(impl->learn_identity(config, snapshot));
  if (const auto* preflight =
          impl->core->parts.kinds.find_preflight(planner::operation_name(policy))) {
    PreflightContext context{.cluster = config,
                             .policy = policy,
                             .snapshot = snapshot,
                             .peers = std::make_shared<Peers>(impl->core->parts.network, config),
                             .network = impl->core->parts.network,
                             .now = impl->core->parts.network.clock.now()};
    snapshot.preflight = co_await (*preflight)(std::move(context));
  }
  if (gives_older_data(policy)) {
    auto notes = impl->notes_on_older_data(cluster);
    auto& shown = snapshot.preflight ? *snapshot.preflight : snapshot.preflight.emplace();
    shown.notes.insert(shown.notes.end(), std::make_move_iterator(notes.begin()),
                       std::make_move_iterator(notes.end()));
  }
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
      VERGER_RETURN_IF_ERROR(check_fencing(now));
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
  if (const auto joins = check_joining(core.parts.registry, *config, plan->policy); !joins) {
    co_return refused(joins.error());
  }
  core.observer.forget_certificates(*config);
  const auto snapshot = co_await core.observer.take(*config);
  auto differences = planner::diff_basis(plan->basis, planner::basis_of(snapshot, plan->policy));
  if (!differences.empty()) {
    co_return refused(
        Error{Errc::kConflict, fmt::format("plan {} is stale: {}; make a new one",
                                           plan->hash.substr(0, 12), fmt::join(differences, "; "))},
        differences);
  }
  // Another caller may have started a run meanwhile.
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

GateBoard Executor::gates(std::string_view id) const {
  const auto found = impl_->core->runs.find(id);
  return found == impl_->core->runs.end() ? GateBoard() : found->second->gates;
}

Observer& Executor::observer() { return impl_->core->observer; }

void Executor::forget_run(std::string_view id) {
  if (const auto found = impl_->core->ended.find(id); found != impl_->core->ended.end()) {
    impl_->core->ended.erase(found);
  }
}

void Executor::forget_plan(std::string_view hash) { impl_->core->plans.forget(hash); }

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

}  // namespace verger::controller