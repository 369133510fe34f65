#include "controller/scheduler/detail/notices.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "controller/cluster/certificate_alerts.h"
#include "controller/executor/events.h"
#include "controller/executor/freed_bytes.h"
#include "controller/journal/member_names.h"
#include "controller/scheduler/detail/recipients.h"
#include "controller/scheduler/scheduler.h"
#include "nodeagent/api/json_view.h"
#include "planner/gate_table.h"

namespace verger::controller::detail {

using nlohmann::json;

namespace {

constexpr std::string_view kWaiting = "waiting";
constexpr std::string_view kStaysDown = "server-stays-down";
constexpr std::string_view kLate = "late";
constexpr std::string_view kTooOld = "too-old";
constexpr std::string_view kEnds = "certificate-ends";
constexpr std::string_view kOfCertificates = "certificates/";

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

/// Most events are never notified; they are many.
bool is_notified(const JournalEvent& event) {
  return event.stream.starts_with("run/")
             ? event.type == events::kRunStarted || event.type == events::kRunEnded ||
                   event.type == events::kAlert || event.type == events::kStepWaiting ||
                   event.type == events::kStepIntended
             : event.type == events::kScheduleSettled || event.type == events::kScheduleLate ||
                   event.type == events::kScheduleTooOld || event.type == events::kCertificateEnds;
}

}  // namespace

/// Whether a run stops here until its hours come again; once for each time.
bool Notices::stops(const JournalEvent& event) {
  const auto run = event.stream.substr(4);
  if (event.type == events::kStepIntended) {
    stopped_.erase(run);
    return false;
  }
  const auto data = json::parse(event.data, nullptr, false);
  const auto gates = data.is_object() ? data.value("gates", json::array()) : json::array();
  const bool for_hours = std::ranges::any_of(gates, [](const json& gate) {
    return gate.is_object() && planner::current_gate_name(gate.value("gate", std::string())) ==
                                   planner::kMaintenanceWindow;
  });
  return for_hours && stopped_.insert(run).second;
}

std::optional<Notice> Notices::of(const JournalEvent& event) {
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
      stopped_.erase(event.stream.substr(4));
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
    const auto state = runs_.find_run(run);
    if (!state) {
      return std::nullopt;
    }
    cluster = (*state)->cluster;
    out.policy = (*state)->plan->policy.name;
    if (out.moment == "done" && (*state)->ended_at) {
      const auto ticks = (*state)->ended_at->value() - (*state)->started_at.value();
      out.body["duration_seconds"] = ticks / kTicksPerSecond;
      const auto freed = freed_bytes(**state);
      out.body["bytes_freed"] = freed ? json(*freed) : json();
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

std::vector<Notification> Notices::recipients(const Notice& notice) const {
  std::vector<Notification> out;
  const auto add = [&](const SchedulePolicy& policy) {
    for (const auto& to : policy.notifications) {
      const bool there = std::ranges::any_of(out, [&to](const Notification& each) {
        return recipient_key(each) == recipient_key(to);
      });
      if (is_wanted(to.on, notice.moment) && !there) {
        out.push_back(to);
      }
    }
  };
  if (!notice.policy.empty()) {
    if (const auto policy = book_.find(notice.policy)) {
      add(policy->policy);
    }
    return out;
  }
  const auto cluster = registry_ == nullptr ? Result<ClusterConfig>(Error{Errc::kNotFound, ""})
                                            : registry_->find(notice.cluster);
  for (const auto& stored : book_.list()) {
    if (cluster && stored.policy.enabled && stored.policy.selects(*cluster)) {
      add(stored.policy);
    }
  }
  return out;
}

bool Notices::any_is_ordered() const {
  const auto policies = book_.list();
  return std::ranges::any_of(
      policies, [](const StoredPolicy& stored) { return !stored.policy.notifications.empty(); });
}

void Notices::know_stopped_runs(Sequence seen) {
  if (std::exchange(knows_stopped_, true) || registry_ == nullptr) {
    return;
  }
  for (const auto& cluster : registry_->list()) {
    for (const auto& run : runs_.active_runs(cluster.name)) {
      const auto events = journal_.read("run/" + run->id);
      for (const auto& event : events ? *events : std::vector<JournalEvent>()) {
        if (event.sequence <= seen &&
            (event.type == events::kStepWaiting || event.type == events::kStepIntended)) {
          stops(event);
        }
      }
    }
  }
}

}  // namespace verger::controller::detail
