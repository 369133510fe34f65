#include "controller/scheduler/scheduler.h"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <map>

#include <boost/asio/co_spawn.hpp>
#include <nlohmann/json.hpp>

#include "controller/scheduler/due.h"
#include "controller/scheduler/schedule_alerts.h"
#include "nodeagent/http/task_count.h"
#include "planner/operations.h"

namespace verger::controller {

using nlohmann::json;

namespace {

constexpr std::chrono::seconds kFirstRetry{15};
constexpr std::chrono::seconds kLongestRetry{300};
constexpr std::chrono::seconds kBetweenLooksAhead{60};

std::string started_by(std::string_view policy) { return fmt::format("policy/{}", policy); }

bool moves_leader(const planner::Plan& plan) {
  return std::ranges::any_of(plan.stages, [](const planner::Stage& stage) {
    return stage.if_deferred.empty() &&
           std::ranges::any_of(stage.groups, [](const planner::Group& group) {
             return std::ranges::any_of(
                 group, [](const planner::Step& step) { return step.cost.leader_move; });
           });
  });
}

}  // namespace

struct Scheduler::Impl {
  explicit Impl(SchedulerParts p)
      : parts(std::move(p)),
        log(parts.journal, parts.epoch, parts.network.log),
        alerts(parts.runs, parts.book, parts.network.clock, log),
        running(parts.executor) {}

  using Key = ScheduleKey;
  struct Retry {
    Monotonic at{};
    std::chrono::seconds pause = kFirstRetry;
    std::string reason;
  };

  /// What calls nodes and may hang: a due operation to be planned and begun, or, without a policy,
  /// the end of a cluster's pause.
  struct Task {
    Key key;
    std::optional<StoredPolicy> policy;
    Instant due;
    Monotonic began{};
    bool overdue = false;  ///< its deadline has passed; it has no place any longer
  };

  SchedulerParts parts;
  ScheduleLog log;
  ScheduleAlerts alerts;
  std::map<Key, Retry> retries;
  std::map<Key, Instant> sleeping;  ///< nothing to do before
  std::int64_t slept_on = 0;        ///< version of the book
  Monotonic next_look_ahead{};
  bool stopping = false;
  http::TaskCount running;                 ///< the loop and the tasks
  std::deque<std::shared_ptr<Task>> turn;  ///< waiting for a place, and for their cluster
  std::map<std::string, std::shared_ptr<Task>> at_work;  ///< by cluster

  [[nodiscard]] Ticks now() const { return parts.network.clock.now(); }

  void settle(const Key& key, Instant due, json data) {
    if (log.settle(key, to_ticks(due), std::move(data))) {
      retries.erase(key);
    }
  }

  void retry_later(const Key& key, std::string reason) {
    auto& retry = retries[key];
    retry.at = parts.network.clock.monotonic() + retry.pause;
    retry.pause = std::min(retry.pause * 2, kLongestRetry);
    retry.reason = std::move(reason);
  }

  [[nodiscard]] bool may_retry(const Key& key) const {
    const auto retry = retries.find(key);
    return retry == retries.end() || parts.network.clock.monotonic() >= retry->second.at;
  }

  [[nodiscard]] DueBlock block(const Key& key, const ClusterConfig& cluster) const {
    DueBlock out;
    for (const auto& run : parts.runs.active_runs(cluster.name)) {
      out.reason = fmt::format("run {} of policy {} is {}", run->id.substr(0, 12),
                               run->plan->policy.name, to_string(run->status));
      out.own_run_at_work = run->plan->policy.name == key.first;
      return out;
    }
    if (cluster.paused) {
      out.reason = fmt::format("cluster {} is paused{}{}", cluster.name,
                               cluster.pause_reason.empty() ? "" : ": ", cluster.pause_reason);
      return out;
    }
    if (const auto retry = retries.find(key);
        retry != retries.end() && parts.network.clock.monotonic() < retry->second.at) {
      out.reason = retry->second.reason;
    }
    return out;
  }

  /// A run that an earlier life started for this due time and did not get to record.
  [[nodiscard]] std::shared_ptr<const RunSummary> run_since(const Key& key, Instant due) const {
    for (const auto& run : parts.runs.runs(key.second)) {
      if (run->started_by == started_by(key.first) && run->started_at >= to_ticks(due)) {
        return run;
      }
    }
    return nullptr;
  }

  [[nodiscard]] bool has_task(const Key& key) const {
    const auto working = at_work.find(key.second);
    return (working != at_work.end() && working->second->key == key) ||
           std::ranges::any_of(turn, [&](const auto& task) { return task->key == key; });
  }

  DueDecision decide(const StoredPolicy& stored, const ClusterConfig& cluster, DueBlock in_the_way,
                     Instant instant) {
    const Key key{stored.policy.name, cluster.name};
    // What was due before the policy was applied is none of its business.
    auto handled = to_instant(stored.at);
    if (const auto& state = log.state(key); state.settled) {
      handled = std::max(handled, to_instant(*state.settled));
    }
    return decide_due(stored.policy, parts.book.rules(cluster, key.first), handled, instant,
                      in_the_way, data_replaced_at(stored, cluster));
  }

  /// When the newest run ended that gave nodes other data, where that makes the policy due.
  [[nodiscard]] std::optional<Instant> data_replaced_at(const StoredPolicy& stored,
                                                        const ClusterConfig& cluster) const {
    const auto* own = planner::operation_of(stored.policy.plan);
    if (own == nullptr || own->due_after_replacement == nullptr ||
        !own->due_after_replacement(stored.policy.plan)) {
      return std::nullopt;
    }
    std::optional<Ticks> newest;
    for (const auto& run : parts.runs.runs(cluster.name)) {
      const auto* operation = planner::find_operation(run->operation);
      const bool replaced =
          operation != nullptr && run->status == RunStatus::kDone && run->ended_at &&
          std::ranges::any_of(run->durations, [operation](const planner::PastDuration& step) {
            return std::ranges::find(operation->replaces_data, step.kind) !=
                   operation->replaces_data.end();
          });
      if (replaced && (!newest || *newest < *run->ended_at)) {
        newest = run->ended_at;
      }
    }
    return newest ? std::optional(to_instant(*newest)) : std::nullopt;
  }

  void look_at(StoredPolicy stored, const ClusterConfig& cluster) {
    const Key key{stored.policy.name, cluster.name};
    const auto instant = to_instant(now());
    if (const auto wake = sleeping.find(key); wake != sleeping.end() && instant < wake->second) {
      return;
    }
    if (has_task(key)) {
      return;
    }
    const auto decision = decide(stored, cluster, block(key, cluster), instant);
    if (decision.action != DueDecision::Action::kNothing) {
      if (const auto run = run_since(key, decision.due)) {
        settle(key, decision.due, {{"outcome", "started"}, {"run", run->id}, {"plan", run->plan}});
        return;
      }
    }
    switch (decision.action) {
      case DueDecision::Action::kNothing:
        // The wall clock may jump: no sleep is longer than a minute.
        sleeping[key] = std::min(decision.wake.value_or(instant + std::chrono::minutes(1)),
                                 instant + std::chrono::minutes(1));
        break;
      case DueDecision::Action::kDrop:
        settle(key, decision.due, {{"outcome", "dropped"}, {"reason", decision.reason}});
        break;
      case DueDecision::Action::kWait:
        log.set_waiting(key, to_ticks(decision.due), decision.reason);
        break;
      case DueDecision::Action::kStart:
        turn.push_back(std::make_shared<Task>(key, std::move(stored), decision.due));
        break;
    }
  }

  /// A start that has waited for its turn: what has changed since then counts, its own lateness
  /// does not.
  [[nodiscard]] bool still_to_start(const Task& task) {
    const auto cluster = parts.registry.find(task.key.second);
    const auto stored = parts.book.find(task.key.first);
    if (!cluster || !stored || !stored->policy.enabled || !stored->policy.selects(*cluster) ||
        stored->revision != task.policy->revision) {
      return false;
    }
    auto in_the_way = block(task.key, *cluster);
    in_the_way.noticed_in_time = true;
    const auto decision = decide(*stored, *cluster, std::move(in_the_way), to_instant(now()));
    return decision.action == DueDecision::Action::kStart && decision.due == task.due;
  }

  void begin_tasks(const std::shared_ptr<Impl>& self) {
    const auto places = [this] {
      const auto taken =
          std::ranges::count_if(at_work, [](const auto& each) { return !each.second->overdue; });
      return parts.tasks_at_once - std::min(parts.tasks_at_once, static_cast<std::size_t>(taken));
    };
    for (auto next = turn.begin(); next != turn.end() && places() > 0;) {
      const auto task = *next;
      if (at_work.contains(task->key.second)) {
        ++next;
        continue;
      }
      next = turn.erase(next);
      if (task->policy && !still_to_start(*task)) {
        continue;  // the next look decides anew
      }
      task->began = parts.network.clock.monotonic();
      at_work[task->key.second] = task;
      running.begin();
      net::co_spawn(parts.executor, carry_out(self, task), [self, task](std::exception_ptr failed) {
        self->at_work.erase(task->key.second);
        if (failed && !self->stopping) {
          self->parts.network.log.error(
              "a task of the scheduler failed",
              {{"policy", task->key.first}, {"cluster", task->key.second}});
        }
        // The one whose place or cluster this was need not wait for the next look.
        if (!self->stopping) {
          self->begin_tasks(self);
        }
        self->running.end();
      });
    }
  }

  /// A task that takes too long loses its place to others. It cannot be broken off where it is;
  /// what it brings in the end is not used.
  void end_late_tasks() {
    for (const auto& [cluster, task] : at_work) {
      if (task->overdue || parts.network.clock.monotonic() - task->began < parts.task_deadline) {
        continue;
      }
      task->overdue = true;
      const auto reason =
          fmt::format("planning has taken longer than {}: a node or an agent of {} does not answer",
                      format_length(parts.task_deadline), cluster);
      parts.network.log.warning("a task of the scheduler takes too long",
                                {{"policy", task->key.first}, {"cluster", cluster}});
      if (task->policy) {
        log.set_waiting(task->key, to_ticks(task->due), reason);
        retry_later(task->key, reason);
      }
    }
  }

  static net::awaitable<void> carry_out(std::shared_ptr<Impl> self, std::shared_ptr<Task> task) {
    if (self->stopping) {
      co_return;
    }
    if (task->policy) {
      co_await self->start_due(task);
      co_return;
    }
    const auto resumed =
        co_await self->parts.runs.resume_cluster(task->key.second, "the pause's end");
    if (resumed) {
      self->retries.erase(task->key);
    } else if (!self->stopping) {
      self->retry_later(task->key, resumed.error().message);
      self->parts.network.log.warning(
          "a pause could not be ended",
          {{"cluster", task->key.second}, {"reason", resumed.error().message}});
    }
  }

  net::awaitable<void> start_due(std::shared_ptr<Task> task) {
    const auto& key = task->key;
    const auto& stored = *task->policy;
    const auto due = task->due;
    if (const auto* operation = planner::operation_of(stored.policy.plan);
        operation != nullptr && operation->need != nullptr) {
      const auto config = parts.registry.find(key.second);
      if (!config) {
        co_return;
      }
      const auto snapshot = co_await parts.runs.observer().take(*config);
      if (stopping || task->overdue) {
        co_return;
      }
      auto need = operation->need(snapshot, stored.policy.plan);
      if (!need.not_yet.empty()) {
        settle(key, due, {{"outcome", "not-needed"}, {"reason", std::move(need.not_yet)}});
        co_return;
      }
    }
    auto made =
        co_await parts.runs.make_plan(key.second, stored.policy.plan, started_by(key.first));
    if (stopping || task->overdue) {
      co_return;
    }
    std::string trouble;
    if (!made) {
      trouble = made.error().message;
    } else if (!*made) {
      for (const auto& refusal : made->error().refusals) {
        trouble += fmt::format("{}{}{}{}", trouble.empty() ? "" : "; ", refusal.node,
                               refusal.node.empty() ? "" : ": ", refusal.message);
      }
    }
    if (!trouble.empty()) {
      trouble = "no plan: " + trouble;
      log.set_waiting(key, to_ticks(due), trouble);
      retry_later(key, std::move(trouble));
      co_return;
    }
    const auto plan = (*made)->plan;
    if (stored.policy.resign == ResignRule::kNeedsApproval && moves_leader(*plan)) {
      settle(key, due,
             {{"outcome", "needs-approval"},
              {"plan", plan->hash},
              {"reason", fmt::format("the plan moves the leader; approve it with `verger apply {}`",
                                     plan->hash.substr(0, 12))}});
      co_return;
    }
    const auto run = co_await parts.runs.apply(plan->hash, started_by(key.first));
    if (stopping) {
      co_return;
    }
    if (!run) {
      auto reason = run.error().error.message;
      log.set_waiting(key, to_ticks(due), reason);
      retry_later(key, std::move(reason));
      co_return;
    }
    settle(key, due, {{"outcome", "started"}, {"run", *run}, {"plan", plan->hash}});
  }

  void tick(const std::shared_ptr<Impl>& self) {
    if (parts.notifier != nullptr) {
      parts.notifier->look();
    }
    if (slept_on != parts.book.version()) {
      slept_on = parts.book.version();
      sleeping.clear();
    }
    end_late_tasks();
    const auto policies = parts.book.list();
    const bool look_ahead = parts.network.clock.monotonic() >= next_look_ahead;
    if (look_ahead) {
      next_look_ahead = parts.network.clock.monotonic() + kBetweenLooksAhead;
    }
    for (const auto& cluster : parts.registry.list()) {
      const Key end_of_pause{"", cluster.name};
      const bool pause_is_over =
          cluster.paused ? cluster.pause_until && now() >= *cluster.pause_until
                         : parts.runs.has_run_to_resume(cluster.name) && may_retry(end_of_pause);
      if (pause_is_over && !has_task(end_of_pause)) {
        turn.push_back(std::make_shared<Task>(end_of_pause, std::nullopt, Instant()));
      }
      for (const auto& stored : policies) {
        if (look_ahead && stored.policy.enabled && stored.policy.selects(cluster)) {
          alerts.check_age(stored, cluster);
        }
        if (stored.policy.enabled && !stored.policy.schedules.empty() &&
            stored.policy.selects(cluster)) {
          look_at(stored, cluster);
          if (look_ahead) {
            alerts.check_lateness(stored, cluster);
          }
        }
      }
    }
    begin_tasks(self);
  }

  static net::awaitable<void> loop(std::shared_ptr<Impl> self) {
    while (!self->stopping) {
      try {
        self->tick(self);
      } catch (const std::exception& error) {
        self->parts.network.log.error("the scheduler", {{"reason", error.what()}});
      }
      if (!self->stopping) {
        co_await self->parts.network.timers.sleep_for(self->parts.tick);
      }
    }
  }
};

Scheduler::Scheduler(SchedulerParts parts) : impl_(std::make_shared<Impl>(std::move(parts))) {}
Scheduler::~Scheduler() { impl_->stopping = true; }

Result<void> Scheduler::load() { return impl_->log.load(); }

void Scheduler::start() {
  impl_->running.begin();
  net::co_spawn(impl_->parts.executor, Impl::loop(impl_),
                [impl = impl_](std::exception_ptr) { impl->running.end(); });
}

net::awaitable<void> Scheduler::stop() {
  const auto impl = impl_;
  impl->stopping = true;
  co_await impl->running.wait_for_all();
}

ScheduleState Scheduler::state(std::string_view policy, std::string_view cluster) const {
  return impl_->log.state({std::string(policy), std::string(cluster)});
}

}  // namespace verger::controller
