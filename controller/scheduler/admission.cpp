#include "controller/scheduler/admission.h"

#include <algorithm>
#include <fmt/format.h>

#include "nodeagent/http/loopback.h"
#include "planner/operations.h"

namespace verger::controller {
namespace {

using std::chrono::seconds;

/// A cluster grows: what its runs took years ago says little.
constexpr int kRunsCounted = 10;

std::vector<PolicyProblem> unreachable_addresses(const SchedulePolicy& policy) {
  std::vector<PolicyProblem> unreachable;
  for (const auto& each : policy.notifications) {
    if (const auto address = webhook_address(each.webhook);
        !each.webhook.empty() && !address.has_value()) {
      unreachable.push_back({0, "notifications.webhook: " + address.error().message});
    }
  }
  for (const auto& each : policy.plan.gates.queries) {
    if (const auto asked = http::parse_endpoint(each.url, 0);
        asked && !asked->tls && !http::is_loopback(asked->host)) {
      unreachable.push_back({0, fmt::format("gates.queries.url: {}: without TLS only loopback "
                                            "addresses are queried; the gate would never open",
                                            asked->url())});
    }
  }
  return unreachable;
}

/// The notes, or why the policy's runs can never do their work on the cluster.
std::expected<std::vector<std::string>, std::string> judge(const SchedulePolicy& policy,
                                                           Instant now, const Binding& binding) {
  const auto refuse = [](std::string message) { return std::unexpected(std::move(message)); };
  std::vector<std::string> notes;
  const Interval year{now, now + std::chrono::days(366)};
  const auto open = openings(binding.windows, year);
  if (open.empty()) {
    return refuse(
        "its windows are closed for all of the next 366 days: the deny windows leave "
        "nothing of the allow windows");
  }
  const auto longest = *open.longest();
  const auto& rules = binding.windows;
  const auto zone = !rules.allow.empty()  ? rules.allow.front().zone
                    : !rules.deny.empty() ? rules.deny.front().zone
                                          : Zone();
  const auto span = fmt::format("{} ({} to {})", format_length(longest.length()),
                                zone.format(longest.from), zone.format(longest.to));
  const auto expected = std::max(policy.expected_duration.value_or(seconds(0)),
                                 binding.past_duration.value_or(seconds(0)));
  const bool from_past = expected > policy.expected_duration.value_or(seconds(0));
  if (from_past && policy.expected_duration) {
    notes.push_back(fmt::format("its runs have taken up to {}, its expected_duration is {}",
                                format_length(expected), format_length(*policy.expected_duration)));
  }
  if (longest.length() < expected) {
    const auto needs = format_length(expected) + (from_past ? " (as in earlier runs)" : "");
    // A run that is interrupted continues in the next opening; one that was never said to fit into
    // a single one may take several.
    const bool may_span =
        policy.spans_openings ||
        (!policy.expected_duration && policy.plan.pauses.on_close == planner::PauseRule::kStop);
    if (!may_span) {
      return refuse(fmt::format(
          "its windows can never hold its expected duration: {} are expected, the longest of the "
          "{} "
          "openings in the next 366 days has {}, which is {} short. Widen the windows, raise "
          "threads or threshold, or say spans_openings: true to let one run take several openings",
          needs, open.intervals().size(), span, format_length(expected - longest.length())));
    }
    if (open.total() < expected) {
      return refuse(
          fmt::format("its windows can never hold its expected duration: {} are expected, "
                      "all {} openings of the next 366 days together have {}",
                      needs, open.intervals().size(), format_length(open.total())));
    }
    if (policy.plan.pauses.on_close == planner::PauseRule::kLeave) {
      return refuse(
          fmt::format("{} are expected, the longest opening has {}, and on_close: leave "
                      "would work on into the closed hours; say on_close: stop",
                      needs, span));
    }
    const auto count = (expected.count() + longest.length().count() - 1) / longest.length().count();
    notes.push_back(
        fmt::format("{} are expected and the longest opening has {}: a run takes at "
                    "least {} openings",
                    needs, span, count));
  }
  // The move of the leader cannot be interrupted, so one opening has to hold it.
  const auto move = seconds((policy.plan.limits.leader_hold_ms + 999) / 1000 + 71);
  const auto* operation = planner::operation_of(policy.plan);
  if (operation != nullptr && operation->moves_leader(policy.plan) && longest.length() < move) {
    return refuse(
        fmt::format("no opening can hold a move of the leader: up to {} are expected for "
                    "it, the longest opening has {}",
                    format_length(move), span));
  }
  for (const auto& schedule : policy.schedules) {
    bool meets = policy.catch_up == CatchUp::kRun;
    auto at = now;
    for (int i = 0; i < 400 && !meets; ++i) {
      const auto due = schedule.next_after(at);
      if (!due || *due >= year.to) {
        break;
      }
      meets = open.contains(*due);
      at = *due;
    }
    if (!meets) {
      return refuse(fmt::format(
          "cron \"{}\" ({}) is never due inside an opening, and catch_up: {} "
          "drops what is due outside; the first opening is {} to {}",
          schedule.text(), schedule.zone().name(), to_string(policy.catch_up),
          zone.format(open.intervals().front().from), zone.format(open.intervals().front().to)));
    }
  }
  return notes;
}

}  // namespace

std::optional<seconds> past_duration(std::span<const std::shared_ptr<const RunSummary>> runs,
                                     const SchedulePolicy& policy) {
  const auto* operation = planner::operation_of(policy.plan);
  if (operation == nullptr) {
    return std::nullopt;
  }
  std::int64_t longest_ms = 0;
  int counted = 0;
  for (const auto& run : runs) {
    if (counted == kRunsCounted) {
      break;
    }
    if ((run->status != RunStatus::kDone && run->status != RunStatus::kDoneWithDifferences) ||
        run->operation != operation->name) {
      continue;
    }
    ++counted;
    longest_ms = std::max(longest_ms, operation->time_at_work_ms(policy.plan, run->durations));
  }
  return longest_ms == 0 ? std::nullopt : std::optional(seconds((longest_ms + 999) / 1000));
}

std::expected<std::vector<std::string>, std::vector<PolicyProblem>> admit(
    const SchedulePolicy& policy, Instant now, const std::vector<Binding>& bindings) {
  auto unreachable = unreachable_addresses(policy);
  if (!unreachable.empty()) {
    return std::unexpected(std::move(unreachable));
  }
  // No cluster yet: what it says of itself.
  const std::vector<Binding> alone{{.cluster = {}, .windows = policy.windows}};
  std::vector<std::string> notes;
  std::vector<PolicyProblem> problems;
  for (const auto& binding : bindings.empty() ? alone : bindings) {
    auto judged = judge(policy, now, binding);
    const auto where =
        binding.cluster.empty() ? std::string() : fmt::format("cluster {}: ", binding.cluster);
    if (!judged) {
      problems.push_back({0, where + judged.error()});
      continue;
    }
    for (auto& note : *judged) {
      notes.push_back(where + std::move(note));
    }
  }
  if (!problems.empty()) {
    return std::unexpected(std::move(problems));
  }
  if (policy.schedules.empty()) {
    notes.emplace_back("it has no schedule: it only limits when others may work");
  }
  return notes;
}

}  // namespace verger::controller
