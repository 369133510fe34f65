#include "controller/scheduler/notifier.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <tuple>

#include <boost/asio/co_spawn.hpp>
#include <nlohmann/json.hpp>

#include "controller/cluster/certificate_alerts.h"
#include "controller/executor/events.h"
#include "controller/journal/member_names.h"
#include "controller/scheduler/scheduler.h"
#include "nodeagent/api/json_view.h"
#include "planner/gate_table.h"

namespace verger::controller {

using nlohmann::json;

namespace {

constexpr int kAttempts = 3;
constexpr std::chrono::seconds kBetween{5};
constexpr std::size_t kEventsLookedAt = 500;

constexpr std::string_view kWaiting = "waiting";
constexpr std::string_view kStaysDown = "server-stays-down";
constexpr std::string_view kLate = "late";
constexpr std::string_view kTooOld = "too-old";
constexpr std::string_view kEnds = "certificate-ends";
constexpr std::string_view kOfCertificates = "certificates/";

struct Notice {
  std::string moment;
  std::string policy;  ///< empty: it concerns the cluster as a whole
  std::string cluster;
  json body = json::object();
};

/// "schedule/POLICY/CLUSTER"
std::pair<std::string, std::string> of_schedule(const std::string& stream) {
  const auto slash = stream.find('/', 9);
  return {stream.substr(9, slash - 9), stream.substr(slash + 1)};
}

bool is_wanted(const std::vector<std::string>& moments, const std::string& moment) {
  const auto has = [&moments](std::string_view wanted) {
    return std::ranges::find(moments, wanted) != moments.end();
  };
  // Nodes that differ are no success: subscribers to failures get them, too; and subscribers to
  // alerts get each kind of them.
  return has(moment) ||
         (moment == to_string(RunStatus::kDoneWithDifferences) &&
          has(to_string(RunStatus::kFailed))) ||
         ((moment == kStaysDown || moment == kLate || moment == kTooOld || moment == kEnds) &&
          has(kWaiting));
}

}  // namespace

struct Notifier::Impl {
  explicit Impl(NotifierParts p) : parts(std::move(p)) {}
  NotifierParts parts;
  Sequence seen{0};
  std::size_t active = 0;
  NotificationCounts counts;
  bool stopping = false;
  std::set<std::string> stopped;  ///< runs that wait for their hours

  /// Most events are never notified; they are many.
  static bool is_notified(const JournalEvent& event) {
    return event.stream.starts_with("run/")
               ? event.type == events::kRunStarted || event.type == events::kRunEnded ||
                     event.type == events::kAlert || event.type == events::kStepWaiting ||
                     event.type == events::kStepIntended
               : event.type == events::kScheduleSettled || event.type == events::kScheduleLate ||
                     event.type == events::kScheduleTooOld ||
                     event.type == events::kCertificateEnds;
  }

  /// Whether a run stops here until its hours come again; once for each time.
  bool stops(const JournalEvent& event) {
    const auto run = event.stream.substr(4);
    if (event.type == events::kStepIntended) {
      stopped.erase(run);
      return false;
    }
    const auto data = json::parse(event.data, nullptr, false);
    const auto gates = data.is_object() ? data.value("gates", json::array()) : json::array();
    const bool for_hours = std::ranges::any_of(gates, [](const json& gate) {
      return gate.is_object() && planner::current_gate_name(gate.value("gate", std::string())) ==
                                     planner::kMaintenanceWindow;
    });
    return for_hours && stopped.insert(run).second;
  }

  /// Of all its steps; null where none reports it.
  static json bytes_freed(const RunState& run) {
    json sum;
    for (const auto& [id, step] : run.steps) {
      const auto saved = step.result->value("space_saved", json());
      if (saved.is_number_integer()) {
        sum = saved.get<std::int64_t>() + (sum.is_null() ? 0 : sum.get<std::int64_t>());
      }
    }
    return sum;
  }

  [[nodiscard]] std::optional<Notice> notice_of(const JournalEvent& event) {
    if (!is_notified(event)) {
      return std::nullopt;
    }
    if (const bool is_of_step =
            event.type == events::kStepWaiting || event.type == events::kStepIntended;
        is_of_step && !stops(event)) {
      return std::nullopt;
    }
    // A run's first event is its whole plan, and says nothing that is needed here.
    const std::string_view data =
        event.type == events::kRunStarted ? std::string_view("{}") : event.data;
    const auto document = api::JsonDocument::parse(data, "event");
    if (!document) {
      return std::nullopt;
    }
    const auto text = [&document](std::string_view name) {
      const auto value = document->root().find(name);
      return value && value->is_string() ? value->string() : std::string();
    };
    Notice out;
    std::string cluster;
    std::string run;
    if (event.stream.starts_with("run/")) {
      if (event.type == events::kRunStarted) {
        out.moment = "started";
      } else if (event.type == events::kRunEnded) {
        out.moment = text("state");
        stopped.erase(event.stream.substr(4));
      } else if (event.type == events::kStepWaiting) {
        out.moment = "stopped";
      } else if (event.type == events::kAlert) {
        const auto key = text("key");
        const bool stays_down = key.substr(key.find('/') + 1).starts_with(kStaysDownAlert);
        out.moment = stays_down ? kStaysDown : kWaiting;
      } else {
        return std::nullopt;
      }
      run = event.stream.substr(4);
      const auto state = parts.runs.find_run(run);
      if (!state) {
        return std::nullopt;
      }
      cluster = (*state)->cluster;
      out.policy = (*state)->plan->policy.name;
      if (out.moment == "done" && (*state)->ended_at) {
        const auto ticks = (*state)->ended_at->value() - (*state)->started_at.value();
        out.body["duration_seconds"] = ticks / kTicksPerSecond;
        out.body["bytes_freed"] = bytes_freed(**state);
      }
    } else if (event.type == events::kCertificateEnds) {
      out.moment = kEnds;
      cluster = event.stream.substr(kOfCertificates.size());
      out.body["not_after"] = text("not_after");
    } else if (event.type == events::kScheduleLate || event.type == events::kScheduleTooOld) {
      if (text("reason").empty()) {
        return std::nullopt;
      }
      out.moment = event.type == events::kScheduleLate ? kLate : kTooOld;
      std::tie(out.policy, cluster) = of_schedule(event.stream);
    } else if (event.type == events::kScheduleSettled) {
      const auto outcome = text("outcome");
      if (outcome != "dropped" && outcome != "needs-approval") {
        return std::nullopt;
      }
      out.moment = outcome == "dropped" ? "missed" : "waiting";
      std::tie(out.policy, cluster) = of_schedule(event.stream);
    } else {
      return std::nullopt;
    }
    out.cluster = cluster;
    out.body.update(json{{"moment", out.moment},
                         {"policy", out.policy},
                         {"cluster", cluster},
                         {"run", run},
                         {"reason", text("reason")},
                         {"at", format_ticks(event.at)}});
    return out;
  }

  /// Whom to notify: as the policy says; of what concerns a cluster as a whole, as all policies say
  /// that are for it, each recipient once.
  [[nodiscard]] std::vector<Notification> recipients(const Notice& notice) const {
    std::vector<Notification> out;
    const auto add = [&](const SchedulePolicy& policy) {
      for (const auto& to : policy.notifications) {
        const bool there = std::ranges::any_of(out, [&to](const Notification& each) {
          return each.webhook == to.webhook && each.command == to.command;
        });
        if (is_wanted(to.on, notice.moment) && (!there || !notice.policy.empty())) {
          out.push_back(to);
        }
      }
    };
    if (!notice.policy.empty()) {
      if (const auto policy = parts.book.find(notice.policy)) {
        add(policy->policy);
      }
      return out;
    }
    const auto cluster = parts.registry == nullptr
                             ? Result<ClusterConfig>(Error{Errc::kNotFound, ""})
                             : parts.registry->find(notice.cluster);
    for (const auto& stored : parts.book.list()) {
      if (cluster && stored.policy.enabled && stored.policy.selects(*cluster)) {
        add(stored.policy);
      }
    }
    return out;
  }

  static net::awaitable<void> deliver(std::shared_ptr<Impl> self, std::string url,
                                      std::string body) {
    const auto address = webhook_address(url);
    std::string problem = address ? "" : address.error().message;
    for (int attempt = 1; address && attempt <= kAttempts && !self->stopping; ++attempt) {
      http::Request request;
      request.method = "POST";
      request.target = address->target;
      request.headers.set("Content-Type", "application/json");
      request.body = body;
      const auto answer = co_await self->parts.network.for_services().send(
          address->endpoint, std::move(request), self->parts.network.request_deadline);
      if (answer && answer->status < 300) {
        ++self->counts.webhooks.sent;
        co_return;
      }
      problem = answer ? fmt::format("it answered {}", answer->status) : answer.error().message;
      if (attempt < kAttempts) {
        co_await self->parts.network.timers.sleep_for(kBetween * attempt);
      }
    }
    if (!self->stopping) {
      ++self->counts.webhooks.failed;
      // The path is a secret of some services.
      self->parts.network.log.warning(
          "a notification was not delivered",
          {{"webhook", address ? address->endpoint.url() : std::string("none")},
           {"reason", problem}});
    }
  }

  void send(const std::shared_ptr<Impl>& self, const Notification& to, const std::string& body) {
    if (!to.webhook.empty()) {
      ++active;
      net::co_spawn(parts.executor, deliver(self, to.webhook, body),
                    [self](std::exception_ptr) { --self->active; });
      return;
    }
    const auto done = parts.run_command
                          ? parts.run_command(to.command, body)
                          : Result<void>(Error{Errc::kUnsupported, "commands are not run here"});
    ++(done ? counts.commands.sent : counts.commands.failed);
    if (!done) {
      parts.network.log.warning(
          "a notification's command did not start",
          {{"command", to.command.front()}, {"reason", done.error().message}});
    }
  }
};

Notifier::Notifier(NotifierParts parts) : impl_(std::make_shared<Impl>(std::move(parts))) {}
Notifier::~Notifier() { impl_->stopping = true; }

Result<void> Notifier::load() {
  VERGER_TRY(impl_->seen, impl_->parts.journal.last_sequence());
  return {};
}

void Notifier::look() {
  for (;;) {
    const auto events = impl_->parts.journal.read_all(impl_->seen, kEventsLookedAt);
    if (!events || events->empty()) {
      return;
    }
    impl_->seen = events->back().sequence;
    for (const auto& event : *events) {
      const auto notice = impl_->notice_of(event);
      if (!notice) {
        continue;
      }
      for (const auto& to : impl_->recipients(*notice)) {
        impl_->send(impl_, to, notice->body.dump());
      }
    }
  }
}

std::size_t Notifier::active() const { return impl_->active; }
const NotificationCounts& Notifier::counts() const { return impl_->counts; }

}  // namespace verger::controller
