#include "controller/scheduler/notifier.h"

#include <algorithm>
#include <array>
#include <deque>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <nlohmann/json.hpp>

#include "controller/cluster/certificate_alerts.h"
#include "controller/cluster/gather.h"
#include "controller/executor/events.h"
#include "controller/journal/member_names.h"
#include "controller/scheduler/delivery_book.h"
#include "controller/scheduler/notification_format.h"
#include "controller/scheduler/scheduler.h"
#include "engine/base/digest.h"
#include "nodeagent/api/json_view.h"
#include "planner/gate_table.h"

namespace verger::controller {

using nlohmann::json;

namespace {

using std::chrono::seconds;

/// Between two attempts, then always the last of them; after a day it is given up.
constexpr std::array<seconds, 6> kBetweenAttempts{seconds(5),   seconds(15),  seconds(60),
                                                  seconds(300), seconds(900), seconds(3600)};
constexpr seconds kGivenUpAfter = std::chrono::hours(24);
/// So many events pass before the place in the journal is recorded without a delivery.
constexpr std::int64_t kEventsBetweenRecords = 5'000;
constexpr std::size_t kShownOfKey = 16;
constexpr std::size_t kEventsLookedAt = 500;
constexpr std::string_view kInPlaceOfSecrets = "/...";

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
  explicit Impl(NotifierParts p) : parts(std::move(p)), deliveries(parts.journal, parts.epoch) {}

  struct Delivery {
    Sequence of;
    Ticks at;  ///< of the event
    Notification to;
    json body;
    int attempts = 0;
  };
  /// Of one recipient.
  struct Queue {
    std::deque<Delivery> waiting;
    bool busy = false;
  };

  NotifierParts parts;
  DeliveryBook deliveries;
  Sequence seen{0};
  std::map<std::string, Queue> queues;  ///< by key_of()
  bool knows_stopped = false;
  /// A policy was changed: what happened before it is no news for recipients that it added, so the
  /// place in the journal is recorded as soon as nothing waits.
  bool place_is_due = false;
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
  /// that are for it. Each recipient once.
  [[nodiscard]] std::vector<Notification> recipients(const Notice& notice) const {
    std::vector<Notification> out;
    const auto add = [&](const SchedulePolicy& policy) {
      for (const auto& to : policy.notifications) {
        const bool there = std::ranges::any_of(
            out, [&to](const Notification& each) { return key_of(each) == key_of(to); });
        if (is_wanted(to.on, notice.moment) && !there) {
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

  /// What stands for the recipient in the journal: its secrets do not.
  static std::string key_of(const Notification& to) {
    std::string text = to.webhook + '\n' + to.format + '\n' + to.email;
    for (const auto& word : to.command) {
      text += '\n' + word;
    }
    return to_hex(sha256(as_bytes(text))).substr(0, kShownOfKey);
  }

  /// What went wrong, without the path of a webhook, which errors of HTTP name.
  static std::string without_secret(std::string problem, const std::string& target) {
    for (const auto& secret : {target, target.substr(0, target.find('?'))}) {
      if (secret.size() < 2) {
        continue;
      }
      for (auto at = problem.find(secret); at != std::string::npos;
           at = problem.find(secret, at + kInPlaceOfSecrets.size())) {
        problem.replace(at, secret.size(), kInPlaceOfSecrets);
      }
    }
    return problem;
  }

  /// For people; the path of a webhook is a secret of some services.
  static std::string name_of(const Notification& to) {
    if (!to.email.empty()) {
      return to.email;
    }
    if (!to.command.empty()) {
      return to.command.front();
    }
    const auto address = webhook_address(to.webhook);
    return address ? address->endpoint.url() : std::string("a webhook without address");
  }

  NotificationCounts::Of& count_of(const Notification& to) {
    return !to.email.empty()     ? counts.mails
           : !to.command.empty() ? counts.commands
                                 : counts.webhooks;
  }

  /// One attempt.
  static net::awaitable<Result<void>> attempt(std::shared_ptr<Impl> self, Notification to,
                                              json body) {
    if (!to.email.empty()) {
      if (!self->parts.send_mail) {
        co_return Error{Errc::kUnsupported, "vergerd has no mail server: --smtp-url"};
      }
      co_return co_await self->parts.send_mail({.to = to.email,
                                                .subject = notification_line(body),
                                                .text = notification_text(body),
                                                .id = body.value("id", std::string())});
    }
    if (!to.command.empty()) {
      if (!self->parts.run_command) {
        co_return Error{Errc::kUnsupported, "commands are not run here"};
      }
      VERGER_CO_TRY(auto document, notification_body("json", body));
      co_return co_await self->parts.run_command(to.command, std::move(document));
    }
    VERGER_CO_TRY(const auto address, webhook_address(to.webhook));
    http::Request request;
    request.method = "POST";
    request.target = address.target;
    request.headers.set("Content-Type", "application/json");
    request.headers.set("Idempotency-Key", body.value("id", std::string()));
    VERGER_CO_TRY(request.body, notification_body(to.format, body));
    const auto answer = co_await self->parts.network.for_services().send(
        address.endpoint, std::move(request), self->parts.network.request_deadline);
    if (!answer) {
      co_return Error{answer.error().code, without_secret(answer.error().message, address.target)};
    }
    if (answer->status < 200 || answer->status >= 300) {
      co_return Error{Errc::kUnavailable, fmt::format("it answered {}", answer->status)};
    }
    co_return Result<void>{};
  }

  /// The newest sequence up to which nothing waits.
  [[nodiscard]] Sequence settled() const {
    auto out = seen;
    for (const auto& [key, queue] : queues) {
      for (const auto& each : queue.waiting) {
        out = std::min(out, Sequence(each.of.value() - 1));
      }
    }
    return out;
  }

  void record(Delivery delivery, const std::string& key, std::string_view outcome) {
    const auto noted = deliveries.ended({.of = delivery.of,
                                         .to = key,
                                         .outcome = outcome,
                                         .attempts = delivery.attempts,
                                         .up_to = settled()});
    if (!noted) {
      // After a restart it is sent once more.
      parts.network.log.warning("a notification's outcome was not recorded",
                                {{"to", name_of(delivery.to)}, {"error", noted.error().message}});
    }
  }

  /// The queue of one recipient, to its end.
  static net::awaitable<void> deliver(std::shared_ptr<Impl> self, std::string key) {
    while (!self->stopping && !self->queues[key].waiting.empty()) {
      auto& next = self->queues[key].waiting.front();
      ++next.attempts;
      const auto delivery = next;
      const auto done = co_await attempt(self, delivery.to, delivery.body);
      if (self->stopping) {
        co_return;
      }
      auto& count = self->count_of(delivery.to);
      const auto age = self->parts.network.clock.now().value() - delivery.at.value();
      const bool over = age >= kGivenUpAfter.count() * kTicksPerSecond;
      if (done || over) {
        ++(done ? count.sent : count.failed);
        self->queues[key].waiting.pop_front();
        --self->counts.waiting;
        if (!done) {
          self->parts.network.log.error("a notification was given up",
                                        {{"to", name_of(delivery.to)},
                                         {"moment", delivery.body.value("moment", std::string())},
                                         {"attempts", std::to_string(delivery.attempts)},
                                         {"reason", done.error().message}});
        }
        self->record(delivery, key, done ? "sent" : "failed");
        continue;
      }
      ++count.retried;
      if (delivery.attempts == 1) {
        self->parts.network.log.warning(
            "a notification was not delivered; it will be tried again for a day",
            {{"to", name_of(delivery.to)}, {"reason", done.error().message}});
      }
      const auto pause = kBetweenAttempts.at(
          std::min(static_cast<std::size_t>(delivery.attempts) - 1, kBetweenAttempts.size() - 1));
      co_await self->parts.network.timers.sleep_for(pause);
    }
    self->queues[key].busy = false;
  }

  void send(const std::shared_ptr<Impl>& self, Delivery delivery) {
    auto key = key_of(delivery.to);
    if (deliveries.has_ended(delivery.of, key)) {
      return;
    }
    queues[key].waiting.push_back(std::move(delivery));
    ++counts.waiting;
    begin_to_deliver(self, key);
  }

  void begin_to_deliver(const std::shared_ptr<Impl>& self, const std::string& key) {
    auto& queue = queues[key];
    if (queue.busy || queue.waiting.empty()) {
      return;
    }
    queue.busy = true;
    net::co_spawn(parts.executor, deliver(self, key),
                  [self, key](const std::exception_ptr& failed) {
                    if (failed && !self->stopping) {
                      // The next look begins again.
                      self->queues[key].busy = false;
                      self->parts.network.log.error("the delivery of notifications has failed",
                                                    {{"recipient", key}});
                    }
                  });
  }

  void queue_of(const std::shared_ptr<Impl>& self, const JournalEvent& event) {
    place_is_due = place_is_due || event.stream.starts_with("policy/");
    auto notice = notice_of(event);
    if (!notice) {
      return;
    }
    for (const auto& to : recipients(*notice)) {
      notice->body["id"] = fmt::format("{}-{}", event.sequence.value(), key_of(to).substr(0, 8));
      send(self, {.of = event.sequence, .at = event.at, .to = to, .body = notice->body});
    }
  }

  void record_place() {
    const auto unrecorded = seen.value() - deliveries.up_to().value();
    if (counts.waiting > 0 || (!place_is_due && unrecorded <= kEventsBetweenRecords)) {
      return;
    }
    if (unrecorded > 0) {
      if (const auto noted = deliveries.seen(seen); !noted) {
        parts.network.log.warning("the place of notifications was not recorded",
                                  {{"error", noted.error().message}});
        return;
      }
    }
    place_is_due = false;
  }

  [[nodiscard]] bool any_is_ordered() const {
    const auto policies = parts.book.list();
    return std::ranges::any_of(
        policies, [](const StoredPolicy& stored) { return !stored.policy.notifications.empty(); });
  }

  /// Runs that wait for their hours since before `seen`: that was notified then.
  void know_stopped_runs() {
    if (std::exchange(knows_stopped, true) || parts.registry == nullptr) {
      return;
    }
    for (const auto& cluster : parts.registry->list()) {
      for (const auto& run : parts.runs.active_runs(cluster.name)) {
        const auto events = parts.journal.read("run/" + run->id);
        for (const auto& event : events ? *events : std::vector<JournalEvent>()) {
          if (event.sequence <= seen &&
              (event.type == events::kStepWaiting || event.type == events::kStepIntended)) {
            stops(event);
          }
        }
      }
    }
  }
};

Notifier::Notifier(NotifierParts parts) : impl_(std::make_shared<Impl>(std::move(parts))) {}
Notifier::~Notifier() { impl_->stopping = true; }

Result<void> Notifier::load() {
  VERGER_RETURN_IF_ERROR(impl_->deliveries.load());
  if (impl_->deliveries.begun()) {
    impl_->seen = impl_->deliveries.up_to();
    return {};
  }
  VERGER_TRY(impl_->seen, impl_->parts.journal.last_sequence());
  return {};
}

void Notifier::look() {
  impl_->know_stopped_runs();
  if (!impl_->any_is_ordered() && impl_->counts.waiting == 0) {
    // What happens meanwhile is old news once one is.
    impl_->seen = impl_->parts.journal.last_sequence().value_or(impl_->seen);
    impl_->place_is_due = true;
    return;
  }
  // The place from which to notify is put into the journal before the first notification.
  if (!impl_->deliveries.begun() && !impl_->deliveries.seen(impl_->seen)) {
    return;
  }
  for (;;) {
    const auto events = impl_->parts.journal.read_all(impl_->seen, kEventsLookedAt);
    if (!events || events->empty()) {
      break;
    }
    for (const auto& event : *events) {
      impl_->queue_of(impl_, event);
      // Not before all its deliveries wait: a record must not pass what is not queued yet.
      impl_->seen = event.sequence;
    }
  }
  for (const auto& [key, queue] : impl_->queues) {
    impl_->begin_to_deliver(impl_, key);
  }
  impl_->record_place();
}

net::awaitable<Result<std::vector<NotificationTest>>> Notifier::test(std::string policy,
                                                                     std::string by) {
  const auto self = impl_;
  const auto stored = self->parts.book.find(policy);
  if (!stored) {
    co_return stored.error();
  }
  const auto now = self->parts.network.clock.now();
  std::vector<NotificationTest> out;
  std::vector<net::awaitable<Result<void>>> attempts;
  std::set<std::string> keys;
  for (const auto& to : stored->policy.notifications) {
    const auto key = Impl::key_of(to);
    if (!keys.insert(key).second) {
      continue;  // one recipient of several moments
    }
    out.push_back({.to = Impl::name_of(to), .problem = {}});
    attempts.push_back(Impl::attempt(
        self, to,
        json{{"id", fmt::format("test-{}-{}", now.value(), key.substr(0, 8))},
             {"moment", "test"},
             {"policy", policy},
             {"cluster", ""},
             {"run", ""},
             {"reason", fmt::format("{} has asked for this test of policy {}", by, policy)},
             {"at", format_ticks(now)}}));
  }
  const auto done = co_await gather(std::move(attempts));
  for (std::size_t i = 0; i < done.size(); ++i) {
    out[i].problem = done[i] ? "" : done[i].error().message;
  }
  co_return out;
}

std::size_t Notifier::active() const { return impl_->counts.waiting; }
const NotificationCounts& Notifier::counts() const { return impl_->counts; }

}  // namespace verger::controller
