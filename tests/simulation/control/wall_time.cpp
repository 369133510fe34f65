#include "tests/simulation/control/wall_time.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <map>
#include <memory>

namespace verger::sim {
namespace {

constexpr std::int64_t kUnixEpochTicks = 621'355'968'000'000'000;
constexpr std::int64_t kFirst = 1'704'067'200;  // 2024-01-01
constexpr std::int64_t kLast = 2'082'758'400;   // 2036-01-01
constexpr std::int64_t kDay = 86'400;

std::int64_t offset_at(std::int64_t at) {
  std::tm local{};
  const auto time = static_cast<std::time_t>(at);
  localtime_r(&time, &local);
  return local.tm_gmtoff;
}

}  // namespace

Ticks ticks_of_unix(std::int64_t seconds) {
  return Ticks(kUnixEpochTicks + seconds * kTicksPerSecond);
}
std::int64_t unix_of_ticks(Ticks ticks) {
  return (ticks.value() - kUnixEpochTicks) / kTicksPerSecond;
}

WallTime::WallTime(std::string_view zone) {
  const char* before = std::getenv("TZ");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TZ", std::string(zone).c_str(), 1);
  tzset();
  from_.push_back(kFirst);
  offsets_.push_back(offset_at(kFirst));
  for (auto at = kFirst; at < kLast; at += kDay) {
    if (offset_at(at + kDay) == offsets_.back()) {
      continue;
    }
    auto low = at;
    auto high = at + kDay;
    while (high - low > 1) {
      const auto middle = low + (high - low) / 2;
      (offset_at(middle) == offsets_.back() ? low : high) = middle;
    }
    from_.push_back(high);
    offsets_.push_back(offset_at(high));
  }
  before == nullptr ? unsetenv("TZ") : setenv("TZ", kept.c_str(), 1);
  tzset();
}

const WallTime& WallTime::of(std::string_view zone) {
  static std::map<std::string, std::unique_ptr<WallTime>, std::less<>> known;
  auto found = known.find(zone);
  if (found == known.end()) {
    found = known.emplace(zone, std::unique_ptr<WallTime>(new WallTime(zone))).first;
  }
  return *found->second;
}

WallTime::Reading WallTime::at(Ticks time) const {
  const auto utc = unix_of_ticks(time);
  const auto next = std::ranges::upper_bound(from_, utc);
  const auto index =
      static_cast<std::size_t>(std::max<std::ptrdiff_t>(next - from_.begin() - 1, 0));
  const auto wall = utc + offsets_[index];
  const auto day = wall / kDay;
  return {.day = day,
          .weekday = static_cast<int>((day + 4) % 7),
          .minute = static_cast<int>(wall % kDay / 60)};
}

const std::int64_t* WallTime::any_transition(Random& random) const {
  if (from_.size() < 2) {
    return nullptr;
  }
  return &from_[1 + random.below(from_.size() - 1)];
}

bool DenyWindow::holds(Ticks time) const {
  const auto now = WallTime::of(zone).at(time);
  const auto on = [this](int weekday) {
    return ((days >> static_cast<unsigned>(weekday)) & 1U) != 0;
  };
  const auto yesterday = (now.weekday + 6) % 7;
  if (from < to) {
    return on(now.weekday) && now.minute >= from && now.minute < to;
  }
  return (on(now.weekday) && now.minute >= from) || (on(yesterday) && now.minute < to);
}

std::string DenyWindow::yaml() const {
  constexpr std::array<std::string_view, 7> kNames = {"sun", "mon", "tue", "wed",
                                                      "thu", "fri", "sat"};
  std::string list;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (((days >> i) & 1U) != 0) {
      list += fmt::format("{}{}", list.empty() ? "" : ", ", kNames[i]);
    }
  }
  return fmt::format("{{days: [{}], from: \"{:02}:{:02}\", to: \"{:02}:{:02}\", zone: {}}}", list,
                     from / 60, from % 60, to / 60, to % 60, zone);
}

}  // namespace verger::sim
