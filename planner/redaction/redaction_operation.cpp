#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <iterator>

#include "planner/detail/make_field.h"
#include "planner/operation.h"
#include "planner/redaction/plan_redaction.h"
#include "planner/redaction/redaction_policy.h"
#include "planner/redaction/redaction_steps.h"

namespace verger::planner {
namespace {

using detail::field;

/// Names are parts of hashes and journals.
std::span<const Field> redaction_fields() {
  static const std::vector<Field> kFields{
      field<&RedactionPolicy::events>(
          "events", "redaction.events",
          "Events as NUMBER@STREAM, with commas between, or one per line")
          .accepted(),
      field<&RedactionPolicy::metadata>("metadata", "redaction.metadata",
                                        "Whether the metadata of the events is blanked, too")
          .accepted(),
      field<&RedactionPolicy::reason>("reason", "redaction.reason",
                                      "Why, for the erasure report: a ticket, a request")
          .accepted(),
      field<&RedactionPolicy::redact_deadline_ms>(
          "redactDeadlineMs", "deadlines.redact",
          "For the redaction of one node, with its stop, its search and its start")
          .length(),
      field<&RedactionPolicy::strategy>(
          "strategy", "redaction.strategy",
          "Whether nodes are redacted while they run, where their servers offer that")
          .accepted()
          .later(),
      field<&RedactionPolicy::interface_licensed>(
          "interfaceLicensed", "redaction.interface_licensed",
          "Whether a licence covers the redaction interface of servers from 24.10 on; without, "
          "these are redacted while they are stopped")
          .accepted()
          .later(),
      field<&RedactionPolicy::heal_existence_filter>(
          "healExistenceFilter", "heal_existence_filter",
          "Whether nodes that are stopped for it make their existence filter anew")
          .shown()
          .later(),
      field<&RedactionPolicy::expire_backups>(
          "expireBackups", "redaction.expire_backups",
          "Name of a repository in which a new full backup is made and verified at the end; then "
          "those in it that may hold the data are deleted")
          .accepted()
          .later(),
  };
  return kFields;
}

/// Why the text names no event that may be redacted, and what to do; an empty message: it does.
FieldProblem problem_of_event(const std::string& text) {
  const auto at = text.find('@');
  std::int64_t number = -1;
  const char* end = text.data() + std::min(at, text.size());
  const auto read = std::from_chars(text.data(), end, number);
  if (at == std::string::npos || at + 1 == text.size() || read.ec != std::errc() ||
      read.ptr != end || number < 0) {
    return {.place = "redaction.events",
            .message = fmt::format("'{}' names no event", text),
            .hint = "give NUMBER@STREAM, such as 12@orders-7"};
  }
  if (text[at + 1] == '$') {
    return {.place = "redaction.events",
            .message = fmt::format("{} is of a system stream or of metadata, by which the server "
                                   "works",
                                   text),
            .hint =
                "leave it out; older metadata events of a stopped node: verger-db redact "
                "--metadata-streams"};
  }
  return {};
}

std::vector<FieldProblem> check_redaction(const Policy& policy) {
  const auto& own = redaction_of(policy);
  std::vector<FieldProblem> out;
  const auto events = listed_events(own.events);
  for (const auto& event : events) {
    if (auto problem = problem_of_event(event); !problem.message.empty()) {
      out.push_back(std::move(problem));
    }
  }
  if (events.size() > RedactionPolicy::kMostEvents) {
    out.push_back({.place = "redaction.events",
                   .message = fmt::format("{} events are named, and {} are the most of one run",
                                          events.size(), RedactionPolicy::kMostEvents),
                   .hint = "make several runs"});
  }
  return out;
}

/// No schedule redacts.
Need need_of_redaction(const ClusterSnapshot& /*snapshot*/, const Policy& /*policy*/) {
  return {.not_yet = "events are redacted by an operator alone: make a plan and apply it"};
}

constexpr std::string_view kRedactionWork[] = {redaction_steps::kRedact,
                                               redaction_steps::kRedactOnline};
constexpr AgentKind kRedactionKinds[] = {{.name = "redaction_check"},
                                         {.name = "offline_redaction", .keeps_others_out = true},
                                         {.name = "online_redaction", .keeps_others_out = true}};

std::int64_t time_at_redaction_ms(const Policy& /*policy*/,
                                  std::span<const PastDuration> durations) {
  std::int64_t out = 0;
  for (const auto& past : durations) {
    out += std::ranges::find(kRedactionWork, past.kind) != std::end(kRedactionWork)
               ? past.duration_ms
               : 0;
  }
  return out;
}

}  // namespace

std::string_view to_string(RedactionStrategy strategy) {
  switch (strategy) {
    case RedactionStrategy::kAuto:
      return "auto";
    case RedactionStrategy::kOnline:
      return "online";
    case RedactionStrategy::kOffline:
      return "offline";
  }
  return "";
}

RedactionPolicy& redaction_of(Policy& policy) {
  return std::get<RedactionPolicy>(policy.operation);
}
const RedactionPolicy& redaction_of(const Policy& policy) {
  return std::get<RedactionPolicy>(policy.operation);
}

std::vector<std::string> listed_events(std::string_view text) {
  const bool lines = text.contains('\n');
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto end = text.find(lines ? '\n' : ',');
    auto part = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (part.ends_with('\r')) {
      part.remove_suffix(1);
    }
    const bool comment = lines && part.starts_with('#');
    if (!part.empty() && !comment && std::ranges::find(out, part) == out.end()) {
      out.emplace_back(part);
    }
  }
  return out;
}

const Operation& RedactionPolicy::operation() {
  static const Operation kRedaction{
      .name = "redaction",
      .summary = "Plan the redaction of events on every node: their data becomes 0xFF, for good",
      .example = "--events 12@customer-7 --reason 'request 4711'",
      .fields = redaction_fields,
      .defaults = [] { return OperationPolicy(RedactionPolicy()); },
      .plan = detail::plan_redaction,
      .check = check_redaction,
      .moves_leader = [](const Policy&) { return true; },
      .time_at_work_ms = time_at_redaction_ms,
      .need = need_of_redaction,
      .work_steps = kRedactionWork,
      .agent_kinds = kRedactionKinds};
  return kRedaction;
}

}  // namespace verger::planner
