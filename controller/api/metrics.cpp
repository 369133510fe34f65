#include "controller/api/metrics.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <set>

#include <nlohmann/json.hpp>

#include "controller/api/api_parts.h"
#include "controller/api/views.h"
#include "controller/cluster/certificate_end.h"
#include "controller/operations/operation_modules.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using prometheus::BuildGauge;
using prometheus::Labels;

double unix_seconds(Ticks at) {
  return static_cast<double>(at.value() - kUnixEpoch.value()) /
         static_cast<double>(kTicksPerSecond);
}

class Scrape {
 public:
  explicit Scrape(const ApiParts& parts) : parts_(parts), now_(parts.clock.now()) {}

  std::string text() {
    runs();
    waiting();
    progress();
    operations();
    clusters();
    members();
    controller();
    return prometheus::TextSerializer().Serialize(registry_.Collect());
  }

 private:
  prometheus::Family<prometheus::Gauge>& family(const char* name, const char* help) {
    return BuildGauge().Name(name).Help(help).Register(registry_);
  }

  void runs() {
    auto& count = family("verger_runs", "Runs by how they ended, or active");
    auto& success = family("verger_last_success_timestamp_seconds",
                           "End of the last run that was done, by cluster and operation");
    auto& failure = family("verger_last_failure_timestamp_seconds",
                           "End of the last run that failed, by cluster and operation");
    auto& differing = family("verger_last_differences_timestamp_seconds",
                             "End of the last run that was done with differences between the "
                             "nodes, by cluster and operation");
    auto& alerts = family("verger_run_alerts", "Open alerts of runs that have not ended");
    std::map<std::pair<std::string, std::string>, int> counts;
    std::map<std::pair<std::string, std::string>, double> latest;
    std::map<std::pair<std::string, std::string>, double> latest_failed;
    std::map<std::pair<std::string, std::string>, double> latest_differing;
    std::map<std::string, std::size_t> open_alerts;
    // What begins with its first failure shows no increase.
    for (const auto& cluster : parts_.registry.list()) {
      open_alerts[cluster.name] = 0;
      for (const auto* outcome :
           {"done", "done-with-differences", "failed", "cancelled", "active"}) {
        counts[{cluster.name, outcome}] = 0;
      }
    }
    for (const auto& run : parts_.executor.runs("")) {
      const bool ended = has_ended(run->status);
      ++counts[{run->cluster, ended ? std::string(to_string(run->status)) : "active"}];
      auto* of = run->status == RunStatus::kDone                  ? &latest
                 : run->status == RunStatus::kDoneWithDifferences ? &latest_differing
                 : run->status == RunStatus::kFailed              ? &latest_failed
                                                                  : nullptr;
      if (of != nullptr && run->ended_at) {
        auto& at = (*of)[{run->cluster, run->operation}];
        at = std::max(at, unix_seconds(*run->ended_at));
      }
    }
    auto& paused = family("verger_run_paused", "1 while a run of a cluster is paused");
    std::map<std::string, int> paused_runs;
    for (const auto& cluster : parts_.registry.list()) {
      paused_runs[cluster.name] = 0;
    }
    for (const auto& run : parts_.executor.active_runs("")) {
      open_alerts[run->cluster] += run->open_alerts();
      if (run->status == RunStatus::kPaused) {
        paused_runs[run->cluster] = 1;
      }
    }
    for (const auto& [cluster, value] : paused_runs) {
      paused.Add(Labels{{"cluster", cluster}}).Set(value);
    }
    for (const auto& [key, value] : counts) {
      count.Add(Labels{{"cluster", key.first}, {"outcome", key.second}}).Set(value);
    }
    for (const auto& [key, value] : latest) {
      success.Add(Labels{{"cluster", key.first}, {"operation", key.second}}).Set(value);
    }
    for (const auto& [key, value] : latest_failed) {
      failure.Add(Labels{{"cluster", key.first}, {"operation", key.second}}).Set(value);
    }
    for (const auto& [key, value] : latest_differing) {
      differing.Add(Labels{{"cluster", key.first}, {"operation", key.second}}).Set(value);
    }
    for (const auto& [cluster, value] : open_alerts) {
      alerts.Add(Labels{{"cluster", cluster}}).Set(static_cast<double>(value));
    }
  }

  /// As the API has it (Progress); a step that does not tell how far it is has none.
  void progress() {
    auto& ratio = family("verger_step_progress_ratio",
                         "How far an acting step is in its present phase, 0 to 1");
    auto& rate = family("verger_step_rate",
                        "What an acting step works through an hour in its present phase, by unit");
    for (const auto& run : parts_.executor.active_runs("")) {
      for (const auto& stage : run->plan->stages) {
        for (const auto& group : stage.groups) {
          for (const auto& step : group) {
            const auto& state = run->steps.at(step.id);
            const auto shown =
                state.status == StepStatus::kActing ? views::step_progress(state) : json();
            if (!shown.is_object() || !shown.at("unit").is_string()) {
              continue;
            }
            const Labels labels{{"cluster", run->cluster},
                                {"node", step.node},
                                {"kind", step.kind},
                                {"unit", shown.at("unit").get<std::string>()}};
            if (shown.at("done").is_number() && shown.at("total").is_number() &&
                shown.at("total").get<double>() > 0) {
              ratio.Add(labels).Set(
                  std::min(1.0, shown.at("done").get<double>() / shown.at("total").get<double>()));
            }
            if (shown.at("rate").is_number()) {
              rate.Add(labels).Set(shown.at("rate").get<double>());
            }
          }
        }
      }
    }
  }

  void waiting() {
    auto& seconds = family("verger_step_waiting_seconds",
                           "How long the longest waiting step of a cluster has waited, by gate");
    auto& unknown =
        family("verger_step_unknown_seconds", "How long the outcome of a step has not been known");
    std::map<std::pair<std::string, std::string>, double> longest;
    std::map<std::string, double> unknowns;
    for (const auto& run : parts_.executor.active_runs("")) {
      for (const auto& [id, step] : run->steps) {
        const auto age = step.since ? unix_seconds(now_) - unix_seconds(*step.since) : 0.0;
        if (step.status == StepStatus::kUnknown) {
          unknowns[run->cluster] = std::max(unknowns[run->cluster], age);
        }
        if (step.status != StepStatus::kWaiting) {
          continue;
        }
        const auto gates = json::parse(step.gates, nullptr, false);
        std::set<std::string> names;
        if (gates.is_array()) {
          for (const auto& gate : gates) {
            names.insert(gate.value("gate", std::string("other")));
          }
        }
        if (names.empty()) {
          names.insert("other");
        }
        for (const auto& name : names) {
          auto& value = longest[{run->cluster, name}];
          value = std::max(value, age);
        }
      }
    }
    for (const auto& [key, value] : longest) {
      seconds.Add(Labels{{"cluster", key.first}, {"gate", key.second}}).Set(value);
    }
    for (const auto& [cluster, value] : unknowns) {
      unknown.Add(Labels{{"cluster", cluster}}).Set(value);
    }
  }

  void operations() {
    std::map<std::string_view, prometheus::Family<prometheus::Gauge>*> families;
    const auto runs = parts_.executor.runs("");
    for (const auto* module : operation_modules()) {
      if (module->metrics == nullptr) {
        continue;
      }
      std::vector<std::shared_ptr<const RunSummary>> own;
      std::ranges::copy_if(runs, std::back_inserter(own),
                           [module](const auto& run) { return run->operation == module->name; });
      for (const auto& metric : module->metrics(own)) {
        auto& known = families[metric.name];
        if (known == nullptr) {
          known = &family(std::string(metric.name).c_str(), std::string(metric.help).c_str());
        }
        known->Add(metric.labels).Set(metric.value);
      }
    }
  }

  void clusters() {
    auto& paused = family("verger_cluster_paused", "1 while a cluster is paused");
    auto& open = family("verger_policy_open", "1 while a policy's windows are open");
    auto& due = family("verger_policy_waiting", "1 while a due time of a policy waits");
    auto& late = family("verger_policy_late",
                        "1 while what a policy's runs are for ends before the next of them starts");
    auto& old = family("verger_policy_too_old",
                       "1 while the newest result of a policy's runs is older than it allows");
    for (const auto& cluster : parts_.registry.list()) {
      paused.Add(Labels{{"cluster", cluster.name}}).Set(cluster.paused ? 1 : 0);
      for (const auto& stored : parts_.book.list()) {
        if (!stored.policy.enabled || !stored.policy.selects(cluster)) {
          continue;
        }
        const Labels labels{{"cluster", cluster.name}, {"policy", stored.policy.name}};
        const auto hours = parts_.book.hours(cluster, stored.policy.name, now_);
        open.Add(labels).Set(!hours || hours->open ? 1 : 0);
        const auto state = parts_.scheduler.state(stored.policy.name, cluster.name);
        due.Add(labels).Set(state.waiting.empty() ? 0 : 1);
        late.Add(labels).Set(state.late.empty() ? 0 : 1);
        old.Add(labels).Set(state.too_old.empty() ? 0 : 1);
      }
    }
  }

  void members() {
    auto& nodes = family("verger_node_up", "1 while a node answers for itself");
    auto& agents = family("verger_agent_up", "1 while a node's agent answers");
    auto& down =
        family("verger_node_stays_down", "1 while a node's agent has given up starting its server");
    auto& lost = family("verger_node_lost_streams",
                        "Streams that a node does not find after its next start");
    auto& lags = family("verger_node_lag_bytes", "Bytes of the log that a node lacks");
    auto& clocks = family("verger_node_clock_skew_seconds",
                          "How far a node's clock is ahead of the controller's");
    auto& ends = family(
        "verger_certificate_not_after_seconds",
        "Unix time at which a certificate ends, that a node or an agent serves or a "
        "node's files hold, of several the first; and of each user with a certificate there");
    auto& differs = family("verger_certificate_disk_differs",
                           "1 while a node serves another certificate than its file holds");
    auto& observed = family("verger_cluster_observed_timestamp_seconds",
                            "When the nodes and agents of a cluster were last looked at");
    for (const auto& cluster : parts_.registry.list()) {
      const auto seen = parts_.observer.last_seen(cluster.name);
      if (seen == nullptr) {
        continue;
      }
      const auto& snapshot = *seen;
      observed.Add(Labels{{"cluster", cluster.name}}).Set(unix_seconds(snapshot.taken_at));
      for (const auto& node : snapshot.nodes) {
        const Labels labels{{"cluster", snapshot.cluster}, {"node", node.name}};
        nodes.Add(labels).Set(node.answered && node.alive ? 1 : 0);
        if (node.has_agent()) {
          agents.Add(labels).Set(node.agent_answered ? 1 : 0);
          if (node.agent_answered) {
            down.Add(labels).Set(node.stays_down.empty() ? 0 : 1);
          }
        }
        if (node.agent && node.agent->lost_streams >= 0) {
          lost.Add(labels).Set(static_cast<double>(node.agent->lost_streams));
        }
        if (const auto lag = snapshot.lag(node); lag >= 0) {
          lags.Add(labels).Set(static_cast<double>(lag));
        }
        if (node.clock) {
          clocks.Add(labels).Set(static_cast<double>(node.clock->ahead_ms) / 1000);
        }
        for (const auto& end : certificate_ends(node)) {
          Labels of_end{{"cluster", snapshot.cluster},
                        {"node", node.name},
                        {"of", end.of},
                        {"kind", std::string(planner::to_string(end.kind))}};
          if (end.kind == planner::CertificateSeen::Kind::kUser) {
            of_end.emplace("subject", end.subject);
          }
          // A user may have several files: the first end counts.
          auto& gauge = ends.Add(of_end);
          const auto at = unix_seconds(end.not_after);
          gauge.Set(gauge.Value() == 0 ? at : std::min(gauge.Value(), at));
        }
        if (const auto other = node.file_differs_from_served()) {
          differs.Add(labels).Set(*other ? 1 : 0);
        }
      }
    }
  }

  void commits(const CommitTimes& times) {
    const auto seconds = [](std::chrono::nanoseconds time) {
      return std::chrono::duration<double>(time).count();
    };
    prometheus::BuildCounter()
        .Name("verger_journal_commits_total")
        .Help("Appends to the journal since this controller started")
        .Register(registry_)
        .Add({})
        .Increment(static_cast<double>(times.count));
    prometheus::BuildCounter()
        .Name("verger_journal_commit_seconds_total")
        .Help("Time that these appends took, until they were on disk")
        .Register(registry_)
        .Add({})
        .Increment(seconds(times.total));
    family("verger_journal_commit_seconds_max", "The longest of them")
        .Add({})
        .Set(seconds(times.longest));
  }

  void notifications(const NotificationCounts& counts) {
    auto& sent = prometheus::BuildCounter()
                     .Name("verger_notifications_total")
                     .Help("Notifications since this controller started")
                     .Register(registry_);
    const auto add = [&sent](const char* way, const NotificationCounts::Of& of) {
      sent.Add({{"way", way}, {"outcome", "sent"}}).Increment(static_cast<double>(of.sent));
      sent.Add({{"way", way}, {"outcome", "failed"}}).Increment(static_cast<double>(of.failed));
      sent.Add({{"way", way}, {"outcome", "retried"}}).Increment(static_cast<double>(of.retried));
    };
    add("webhook", counts.webhooks);
    add("command", counts.commands);
    add("mail", counts.mails);
    family("verger_notifications_waiting", "Notifications that are not delivered yet")
        .Add({})
        .Set(static_cast<double>(counts.waiting));
  }

  void journal(Retention& retention) {
    const auto size = retention.size();
    if (!size) {
      return;  // absent is what a scrape shows of what cannot be known
    }
    family("verger_journal_events", "Events that the journal holds")
        .Add({})
        .Set(static_cast<double>(size->events));
    family("verger_journal_bytes", "Size of the journal's file, or of etcd's database")
        .Add({})
        .Set(static_cast<double>(size->bytes));
    family("verger_journal_in_use_bytes", "Of these, what is not free for new events")
        .Add({})
        .Set(static_cast<double>(size->bytes_in_use));
    const auto status = retention.status();
    prometheus::BuildCounter()
        .Name("verger_journal_removed_events_total")
        .Help("Events that compactions have removed since this controller started")
        .Register(registry_)
        .Add({})
        .Increment(static_cast<double>(status.removed));
    if (status.ended) {
      family("verger_journal_compaction_timestamp_seconds", "End of the last compaction")
          .Add({})
          .Set(unix_seconds(*status.ended));
    }
  }

  void controller() {
    if (parts_.retention != nullptr) {
      journal(*parts_.retention);
    }
    if (parts_.notifier != nullptr) {
      notifications(parts_.notifier->counts());
    }
    if (parts_.commits != nullptr) {
      commits(*parts_.commits);
    }
    family("verger_controller_acting",
           "1 while this controller is active, 0 while it is on standby")
        .Add({})
        .Set(1);
    family("verger_controller_epoch", "The term of this controller")
        .Add({})
        .Set(static_cast<double>(parts_.epoch.value()));
    if (const auto last = parts_.journal.last_sequence()) {
      family("verger_journal_sequence", "The journal's newest event")
          .Add({})
          .Set(static_cast<double>(last->value()));
    }
  }

  const ApiParts& parts_;
  Ticks now_;
  prometheus::Registry registry_;
};

}  // namespace

http::Response metrics_answer(const ApiParts& parts) {
  http::Response out;
  out.headers.set("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  out.body = Scrape(parts).text();
  return out;
}

}  // namespace verger::controller
