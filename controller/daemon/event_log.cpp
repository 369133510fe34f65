#include "controller/daemon/event_log.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <span>
#include <vector>

#include <nlohmann/json.hpp>

#include "controller/api/access.h"
#include "controller/cluster/agent_book.h"
#include "controller/cluster/certificate_alerts.h"
#include "controller/executor/events.h"
#include "controller/scheduler/policy_book.h"
#include "controller/scheduler/scheduler.h"

namespace verger::controller {

using nlohmann::json;

namespace {

constexpr std::size_t kEventsInLook = 500;
/// Requests whose answer is waited for; the journal has more.
constexpr std::size_t kOpenRequests = 1'000;

/// How the events of one type are logged: `members` of their data become fields.
struct LineOf {
  std::string_view type;
  std::string_view message;
  std::array<std::string_view, 6> members{};
  LogLevel level = LogLevel::kInfo;
};

constexpr LineOf kLines[] = {
    {events::kRunStarted, "run started", {"hash", "by"}},
    {events::kRunPausing, "run is to pause", {"mode", "by", "reason"}},
    {events::kRunPaused, "run paused", {}},
    {events::kRunResumed, "run resumed", {"by", "ignore_hours", "reason"}},
    {events::kRunCancelling, "run is to be cancelled", {"by", "reason"}},
    {events::kRunEnded, "run ended", {"state", "reason"}},
    {events::kNodeSkipped, "node skipped", {"node", "by", "force", "reason"}},
    {events::kSkippedNodeIdle, "skipped node is idle", {"node"}},
    {events::kLeaderMoved, "leader moved", {"from", "to", "planned"}},
    {events::kLeaderSeen, "leader seen", {"node"}},
    {events::kAlert, "alert", {"step", "reason"}, LogLevel::kWarning},
    {events::kSkippedNodeIdle, "skipped node is idle", {"node"}},
    {events::kAlertCleared, "alert cleared", {"key"}},
    {events::kStageStarted, "stage started", {"stage"}},
    {events::kStageDeferred, "stage deferred", {"stage", "reason"}},
    {events::kStageEnded, "stage ended", {"stage", "state"}},
    {events::kStageRolledBack, "stage rolled back", {"stage", "reason"}},
    {events::kStepWaiting, "step waits", {"step", "reason"}},
    {events::kStepIntended, "step begins", {"step", "attempt", "operation"}},
    {events::kStepActed, "step was requested", {"step", "operation", "answer", "reason"}},
    {events::kStepUnknown, "step's outcome is not known", {"step", "reason"}},
    {events::kStepRetry, "step begins again", {"step", "outcome", "reason"}},
    {events::kStepInterrupting, "step is being interrupted", {"step", "why"}},
    {events::kStepInterrupted, "step was interrupted", {"step", "outcome", "reason"}},
    {events::kStepDone, "step done", {"step"}},
    {events::kStepFailed, "step failed", {"step", "code", "reason"}, LogLevel::kWarning},
    {events::kStepSkipped, "step skipped", {"step", "reason"}},
    {events::kUndoStarted, "undo started", {"stage", "why"}},
    {events::kUndoIntended, "undo of a step begins", {"step", "attempt", "operation"}},
    {events::kStepUndone, "step undone", {"step"}},
    {events::kUndoFailed,
     "undo of a step failed",
     {"step", "reason", "command"},
     LogLevel::kWarning},
    {events::kClusterAdded, "cluster added", {"by"}},
    {events::kClusterRemoved, "cluster removed", {"by"}},
    {events::kClusterPaused, "cluster paused", {"until", "by", "reason"}},
    {events::kClusterResumed, "cluster resumed", {"by"}},
    {events::kClusterIdentified, "cluster identified", {"identity", "epoch"}},
    {events::kPolicyApplied, "policy applied", {"by"}},
    {events::kPolicyRemoved, "policy removed", {"by"}},
    {events::kTokenCreated, "token created", {"name", "role", "by"}},
    {events::kTokenRevoked, "token revoked", {"by"}},
    {events::kAgentTokenCreated, "enrolment token created", {"token", "expires_at", "by"}},
    {events::kAgentEnrolled, "agent enrolled", {"token", "serial", "not_after", "by"}},
    {events::kAgentRenewed, "agent's certificate issued", {"serial", "not_after", "by"}},
    {events::kAgentCertificateArrived, "agent shows its new certificate", {"serial"}},
    {events::kAgentForgotten, "agent forgotten", {"by"}},
    {events::kScheduleWaiting, "schedule waits", {"due", "reason"}},
    {events::kScheduleLate, "schedule is too late", {"deadline", "reason"}, LogLevel::kWarning},
    {events::kScheduleTooOld, "newest result is too old", {"since", "reason"}, LogLevel::kWarning},
    {events::kCertificateEnds,
     "certificate ends",
     {"kind", "subject", "not_after", "reason"},
     LogLevel::kWarning},
};

const LineOf* find_line(std::string_view type) {
  const auto* found = std::ranges::find(kLines, type, &LineOf::type);
  return found == std::end(kLines) ? nullptr : found;
}

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string text_at(const json& data, std::string_view name) {
  const auto found = data.find(name);
  return found == data.end() || found->is_null() ? std::string() : text_of(*found);
}

/// The fields that a stream's name holds: "run/ID", "schedule/POLICY/CLUSTER".
std::vector<LogField> fields_of(std::string_view stream) {
  const auto slash = stream.find('/');
  if (slash == std::string_view::npos) {
    return {};
  }
  const auto kind = stream.substr(0, slash);
  const auto rest = stream.substr(slash + 1);
  const auto second = rest.find('/');
  if (second == std::string_view::npos || (kind != "schedule" && kind != "agent")) {
    return {{kind == "certificates" ? "cluster" : kind, std::string(rest)}};
  }
  return {{kind == "schedule" ? "policy" : "cluster", std::string(rest.substr(0, second))},
          {kind == "schedule" ? "cluster" : "node", std::string(rest.substr(second + 1))}};
}

void add(std::vector<LogField>& fields, std::string_view name, std::string value) {
  if (!value.empty()) {
    fields.push_back({name, std::move(value)});
  }
}

}  // namespace

struct EventLog::Impl {
  explicit Impl(EventLogParts p) : parts(std::move(p)) {}
  EventLogParts parts;
  Sequence seen{0};
  std::map<std::string, std::string, std::less<>> clusters;  ///< by run, of those not ended
  std::map<std::int64_t, std::string> asked;                 ///< by sequence: who requests what
  bool stopping = false;

  void look() {
    while (!stopping) {
      // What cannot be read now is logged with what is journaled next.
      const auto events = parts.journal.read_all(seen, kEventsInLook);
      if (!events || events->empty()) {
        return;
      }
      for (const auto& event : *events) {
        log(event);
      }
      seen = events->back().sequence;
    }
  }

  void log(const JournalEvent& event) {
    if (event.type == events::kAuditRequest || event.type == events::kAuditOutcome) {
      log_request(event);
    } else if (event.type == events::kScheduleSettled) {
      log_settled(event);
    } else if (event.type == events::kPlanMade) {
      log_plan(event);
    } else if (const auto* line = find_line(event.type)) {
      const auto data = json::parse(event.data, nullptr, false);
      const bool may_be_over =
          event.type == events::kScheduleLate || event.type == events::kScheduleTooOld;
      if (may_be_over && data.is_object() && text_at(data, "reason").empty()) {
        return;  // it is so no longer
      }
      auto fields = fields_of(event.stream);
      if (event.stream.starts_with("run/")) {
        add(fields, "cluster", cluster_of(event, data));
      }
      for (const auto member : line->members) {
        if (!member.empty() && data.is_object()) {
          add(fields, member == "hash" ? "plan" : member, text_at(data, member));
        }
      }
      const auto state = event.type == events::kRunEnded ? text_at(data, "state") : std::string();
      const bool failed = state == "failed" || state == "done-with-differences";
      parts.log.write(failed ? LogLevel::kWarning : line->level, line->message, fields);
    }
  }

  std::string cluster_of(const JournalEvent& event, const json& data) {
    const auto run = event.stream.substr(event.stream.find('/') + 1);
    if (event.type == events::kRunStarted) {
      clusters[run] = text_at(data, "cluster");
    } else if (!clusters.contains(run)) {
      clusters[run] = parts.cluster_of(run);
    }
    auto cluster = clusters[run];
    if (event.type == events::kRunEnded) {
      clusters.erase(run);
    }
    return cluster;
  }

  void log_plan(const JournalEvent& event) {
    const auto data = json::parse(event.data, nullptr, false);
    if (!data.is_object()) {
      return;
    }
    auto fields = fields_of(event.stream);
    add(fields, "cluster", text_at(data.value("plan", json::object()), "cluster"));
    add(fields, "by", text_at(data, "by"));
    parts.log.write(LogLevel::kInfo, "plan made", fields);
  }

  void log_settled(const JournalEvent& event) {
    const auto data = json::parse(event.data, nullptr, false);
    if (!data.is_object()) {
      return;
    }
    const auto outcome = text_at(data, "outcome");
    auto fields = fields_of(event.stream);
    for (const auto* member : {"due", "run", "plan", "reason"}) {
      add(fields, member, text_at(data, member));
    }
    parts.log.write(LogLevel::kInfo,
                    outcome == "started"          ? "schedule started a run"
                    : outcome == "needs-approval" ? "schedule waits for approval of its plan"
                                                  : "schedule skipped",
                    fields);
  }

  /// A line for each request, and one more where it was not carried out.
  void log_request(const JournalEvent& event) {
    const auto data = json::parse(event.data, nullptr, false);
    if (!data.is_object()) {
      return;
    }
    if (event.type == events::kAuditRequest) {
      const auto what = fmt::format("{} {}", text_at(data, "method"), text_at(data, "target"));
      std::vector<LogField> fields{{"audit", std::to_string(event.sequence.value())},
                                   {"request", what}};
      for (const auto* member : {"by", "role", "from", "reason"}) {
        add(fields, member, text_at(data, member));
      }
      parts.log.write(LogLevel::kInfo, "request", fields);
      if (asked.size() >= kOpenRequests) {
        asked.erase(asked.begin());
      }
      asked[event.sequence.value()] = what;
      return;
    }
    const auto sequence = data.value("asked", json(0));
    const auto status = data.value("status", json(0));
    if (!sequence.is_number_integer() || !status.is_number_integer()) {
      return;
    }
    const auto request = asked.extract(sequence.get<std::int64_t>());
    if (status.get<int>() >= 400) {
      std::vector<LogField> fields{{"audit", sequence.dump()}, {"status", status.dump()}};
      add(fields, "request", request.empty() ? "" : request.mapped());
      parts.log.write(LogLevel::kInfo, "request refused", fields);
    }
  }
};

EventLog::EventLog(std::shared_ptr<Impl> impl)
    : impl_(std::move(impl)),
      // The listener may outlive this object by one call.
      subscription_(impl_->parts.journal.subscribe([impl = impl_](Sequence) { impl->look(); })) {}

EventLog::~EventLog() { impl_->stopping = true; }

Result<std::unique_ptr<EventLog>> EventLog::open(EventLogParts parts) {
  auto impl = std::make_shared<Impl>(std::move(parts));
  VERGER_TRY(impl->seen, impl->parts.journal.last_sequence());
  return std::unique_ptr<EventLog>(new EventLog(std::move(impl)));
}

}  // namespace verger::controller
