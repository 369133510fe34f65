#include "controller/scheduler/policy_book.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/journal/append_and_fold.h"

namespace verger::controller {
namespace {

using nlohmann::json;

constexpr std::string_view kPolicyStreams = "policy/";

std::string stream_of_policy(std::string_view name) {
  return fmt::format("{}{}", kPolicyStreams, name);
}

void append_windows(const std::vector<Window>& from, const std::string& policy,
                    std::vector<Window>& into) {
  for (auto window : from) {
    window.name = window.name.empty() ? "of policy " + policy
                                      : fmt::format("{} of policy {}", window.name, policy);
    into.push_back(std::move(window));
  }
}

}  // namespace

Result<void> PolicyBook::load() {
  entries_.clear();
  VERGER_TRY(const auto streams, journal_.streams(kPolicyStreams));
  for (const auto& stream : streams) {
    VERGER_TRY(const auto history, journal_.read(stream));
    // The newest text alone counts; one before it may be of a version that could do more.
    const auto newest = std::ranges::find(history.rbegin(), history.rend(), events::kPolicyApplied,
                                          &JournalEvent::type);
    for (const auto& event : history) {
      if (event.type == events::kPolicyApplied && &event != &*newest) {
        continue;
      }
      if (auto folded = fold(event); !folded) {
        return folded.error().within(
            fmt::format("journal, event {} of {}", event.sequence.value(), stream));
      }
    }
  }
  return {};
}

Result<void> PolicyBook::fold(const JournalEvent& event, const SchedulePolicy* known) {
  auto& entry = entries_[event.stream.substr(kPolicyStreams.size())];
  entry.revision = event.revision;
  ++version_;
  const auto data = json::parse(event.data, nullptr, false);
  if (event.type == events::kPolicyRemoved) {
    entry.removed = true;
    return {};
  }
  if (event.type != events::kPolicyApplied || !data.is_object()) {
    return Error{Errc::kCorruption, fmt::format("unknown event {}", event.type)};
  }
  const auto yaml = data.value("yaml", std::string());
  auto policy = known != nullptr && known->source == yaml ? *known : parse(yaml);
  if (!policy) {
    return Error{Errc::kCorruption,
                 fmt::format("this controller cannot read the policy, so it does not know when "
                             "nothing may be done: {}; use the version that it was applied with, "
                             "or replace the policy with that one first",
                             to_text(policy.error()))};
  }
  entry.removed = false;
  entry.stored =
      StoredPolicy{*std::move(policy), data.value("by", std::string()), event.at, event.revision};
  return {};
}

Result<void> PolicyBook::append(std::string_view name, NewEvent event,
                                std::optional<Revision> expected, const SchedulePolicy* known) {
  const auto found = entries_.find(name);
  const auto revision = found == entries_.end() ? Revision(0) : found->second.revision;
  if (expected && *expected != revision) {
    return Error{
        Errc::kConflict,
        fmt::format("policy {} is at revision {}, not {}: it was changed meanwhile; look at it "
                    "again with `verger policy show {}`",
                    name, revision.value(), expected->value(), name)};
  }
  return append_and_fold(journal_, stream_of_policy(name), epoch_, revision, {std::move(event)},
                         [&](const auto& written) { return fold(written, known); });
}

Result<StoredPolicy> PolicyBook::apply(SchedulePolicy policy, std::string by,
                                       std::optional<Revision> expected) {
  const auto name = policy.name;
  if (const auto known = find(name); known && known->policy.source == policy.source && !expected) {
    return known;  // nothing changes
  }
  VERGER_RETURN_IF_ERROR(append(name,
                                {std::string(events::kPolicyApplied),
                                 json{{"yaml", policy.source}, {"by", std::move(by)}}.dump()},
                                expected, &policy));
  return find(name);
}

Result<void> PolicyBook::remove(std::string_view name, std::string by,
                                std::optional<Revision> expected) {
  VERGER_RETURN_IF_ERROR(find(name));
  return append(name, {std::string(events::kPolicyRemoved), json{{"by", std::move(by)}}.dump()},
                expected);
}

Result<StoredPolicy> PolicyBook::find(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end() && !found->second.removed) {
    return *found->second.stored;
  }
  std::vector<std::string> names;
  for (const auto& each : list()) {
    names.push_back(each.policy.name);
  }
  return Error{Errc::kNotFound, names.empty()
                                    ? fmt::format("there is no policy {}; none is applied", name)
                                    : fmt::format("there is no policy {}; there are: {}", name,
                                                  fmt::join(names, ", "))};
}

std::vector<StoredPolicy> PolicyBook::list() const {
  std::vector<StoredPolicy> out;
  for (const auto& [name, entry] : entries_) {
    if (!entry.removed && entry.stored) {
      out.push_back(*entry.stored);
    }
  }
  return out;
}

WindowRules PolicyBook::rules(const ClusterConfig& cluster, std::string_view policy) const {
  WindowRules out;
  for (const auto& [name, entry] : entries_) {
    if (!entry.stored) {
      continue;
    }
    const auto& each = entry.stored->policy;
    const bool own = name == policy;
    if (own) {
      append_windows(each.windows.allow, name, out.allow);
    }
    if (own || (!entry.removed && each.enabled && each.selects(cluster))) {
      append_windows(each.windows.deny, name, out.deny);
    }
  }
  return out;
}

WindowRules PolicyBook::rules(const ClusterConfig& cluster, const SchedulePolicy& policy) const {
  WindowRules out;
  append_windows(policy.windows.allow, policy.name, out.allow);
  append_windows(policy.windows.deny, policy.name, out.deny);
  for (const auto& [name, entry] : entries_) {
    if (entry.stored && !entry.removed && name != policy.name && entry.stored->policy.enabled &&
        entry.stored->policy.selects(cluster)) {
      append_windows(entry.stored->policy.windows.deny, name, out.deny);
    }
  }
  return out;
}

std::optional<planner::Hours> PolicyBook::hours(const ClusterConfig& cluster,
                                                std::string_view policy, Ticks now) const {
  const auto instant = to_instant(now);
  auto& known = known_[{cluster.name, std::string(policy)}];
  const bool fresh = known.version == version_ && known.labels == cluster.labels &&
                     instant >= known.opening.since &&
                     (!known.opening.until || instant < *known.opening.until) &&
                     instant - known.looked_at < std::chrono::days(1) && instant >= known.looked_at;
  if (!fresh) {
    const auto windows = rules(cluster, policy);
    known.version = version_;
    known.labels = cluster.labels;
    known.looked_at = instant;
    known.limited = !windows.empty();
    known.opening = opening_at(windows, instant);
  }
  if (!known.limited) {
    return std::nullopt;
  }
  planner::Hours out;
  out.open = known.opening.open;
  out.since = to_ticks(known.opening.since);
  if (known.opening.until) {
    out.until = to_ticks(*known.opening.until);
  }
  out.reason = known.opening.reason;
  return out;
}

}  // namespace verger::controller
