#include "engine/backup/retention.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string_view>

namespace verger::backup {
namespace {

using Days = std::chrono::sys_days;

constexpr std::int64_t kTicksPerDay = std::int64_t{24} * 3600 * kTicksPerSecond;

std::int64_t day_of(Ticks time) { return (time.value() - kUnixEpoch.value()) / kTicksPerDay; }

std::int64_t month_of(Ticks time) {
  const std::chrono::year_month_day date(Days(std::chrono::days(day_of(time))));
  return std::int64_t{int{date.year()}} * 12 + unsigned{date.month()};
}

/// Weeks begin on Monday; 1970-01-01 was a Thursday.
std::int64_t week_of(Ticks time) { return (day_of(time) + 3) / 7; }

/// One rule over a node's generations, newest first: the newest of each period, for so many
/// periods.
void keep_by(const std::vector<const Manifest*>& newest_first, int count, std::string_view rule,
             const std::function<std::int64_t(Ticks)>& period_of,
             std::map<std::string, std::string>& kept) {
  std::optional<std::int64_t> last;
  for (const auto* manifest : newest_first) {
    if (count <= 0) {
      return;
    }
    const auto period = period_of(manifest->checkpoints_at);
    if (period != last) {
      last = period;
      --count;
      kept.try_emplace(manifest->id, rule);
    }
  }
}

void keep_of_node(std::vector<const Manifest*> generations, const KeepRules& rules, Ticks now,
                  std::map<std::string, std::string>& kept) {
  std::ranges::sort(generations, std::ranges::greater(), [](const Manifest* manifest) {
    return std::pair(manifest->checkpoints_at, manifest->id);
  });
  const auto count =
      std::min<std::size_t>(generations.size(), static_cast<std::size_t>(std::max(rules.last, 1)));
  for (std::size_t i = 0; i < count; ++i) {
    kept.try_emplace(generations[i]->id, "last");
  }
  for (const auto* manifest : generations) {
    const auto age = now.value() - manifest->checkpoints_at.value();
    if (rules.within_days > 0 && age <= rules.within_days * kTicksPerDay) {
      kept.try_emplace(manifest->id, "within");
    }
  }
  keep_by(generations, rules.daily, "daily", day_of, kept);
  keep_by(generations, rules.weekly, "weekly", week_of, kept);
  keep_by(generations, rules.monthly, "monthly", month_of, kept);
}

}  // namespace

std::vector<KeepDecision> decide_retention(std::span<const Manifest> manifests,
                                           const KeepRules& rules, Ticks now) {
  std::map<std::string, std::vector<const Manifest*>> by_node;
  for (const auto& manifest : manifests) {
    by_node[manifest.source.node].push_back(&manifest);
  }
  std::map<std::string, std::string> kept;
  for (auto& [node, generations] : by_node) {
    keep_of_node(std::move(generations), rules, now, kept);
  }
  std::vector<KeepDecision> decisions;
  for (const auto& manifest : manifests) {
    const auto found = kept.find(manifest.id);
    decisions.push_back({manifest.id, found == kept.end() ? std::string() : found->second});
  }
  std::ranges::sort(decisions, {}, &KeepDecision::id);
  return decisions;
}

}  // namespace verger::backup
