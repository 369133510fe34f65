#include "controller/scheduler/next_times.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string_view>
#include <tuple>

namespace verger::controller {

std::vector<NextTime> next_times(const PolicyBook& book, const ClusterConfig& cluster, Instant now,
                                 std::size_t count) {
  std::vector<NextTime> out;
  for (const auto& stored : book.list()) {
    const auto& policy = stored.policy;
    if (!policy.enabled || !policy.selects(cluster)) {
      continue;
    }
    const auto rules = book.rules(cluster, policy.name);
    const Interval year{now - std::chrono::days(2), now + std::chrono::days(400)};
    const auto open = openings(rules, year);
    const auto zone = !policy.schedules.empty()       ? policy.schedules.front().zone()
                      : !policy.windows.allow.empty() ? policy.windows.allow.front().zone
                      : !policy.windows.deny.empty()  ? policy.windows.deny.front().zone
                                                      : Zone();
    std::size_t found = 0;
    for (const auto& each : open.intervals()) {
      if (!rules.empty() && each.to > now && found < count) {
        out.push_back({NextTime::Kind::kOpens, policy.name, zone, each.from,
                       each.to < year.to ? std::optional(each.to) : std::nullopt, true});
        ++found;
      }
    }
    for (const auto& schedule : policy.schedules) {
      auto due = schedule.next_after(now);
      for (std::size_t i = 0; i < count && due; ++i) {
        out.push_back({NextTime::Kind::kDue, policy.name, schedule.zone(), *due, std::nullopt,
                       open.contains(*due)});
        due = schedule.next_after(*due);
      }
    }
  }
  std::ranges::sort(out, {}, [](const NextTime& each) {
    return std::tuple(each.at, each.kind, std::string_view(each.policy));
  });
  // Ten of each kind, whichever policy they come from.
  std::map<NextTime::Kind, std::size_t> taken;
  std::erase_if(out, [&](const NextTime& each) { return ++taken[each.kind] > count; });
  return out;
}

}  // namespace verger::controller
