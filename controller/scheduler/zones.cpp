#include "controller/scheduler/zones.h"

#include <algorithm>
#include <date/tz.h>
#include <fmt/format.h>

namespace verger::controller {
namespace {

using std::chrono::seconds;

date::local_seconds to_date(LocalSeconds local) {
  return date::local_seconds(local.time_since_epoch());
}

}  // namespace

Zone::Zone() : zone_(date::locate_zone("Etc/UTC")), name_("UTC") {}

Result<Zone> Zone::find(std::string_view name) {
  try {
    Zone out;
    out.zone_ = date::locate_zone(name);
    out.name_ = std::string(name);
    return out;
  } catch (const std::exception&) {
    std::vector<std::string> names;
    try {
      for (const auto& zone : date::get_tzdb().zones) {
        names.push_back(zone.name());
      }
    } catch (const std::exception& error) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("zone \"{}\": the machine's zone database cannot be read: {}; "
                               "install the package tzdata",
                               name, error.what())};
    }
    const auto near = nearest_name(name, names);
    return Error{Errc::kInvalidArgument,
                 fmt::format("zone \"{}\" is not in the IANA database{}", name,
                             near.empty() ? "" : fmt::format("; did you mean {}?", near))};
  }
}

LocalSeconds Zone::to_local(Instant instant) const {
  return LocalSeconds(zone_->to_local(instant).time_since_epoch());
}

Instant Zone::due_at(LocalSeconds local) const {
  const auto info = zone_->get_info(to_date(local));
  if (info.result == date::local_info::nonexistent) {
    return info.first.end;
  }
  return Instant(local.time_since_epoch() - info.first.offset);
}

void Zone::add_instants(LocalSeconds from, LocalSeconds to, IntervalSet& into) const {
  if (from >= to) {
    return;
  }
  // No offset is as much as a day, so the pieces of equal offset around it all lie in between.
  const Instant last(to.time_since_epoch() + std::chrono::days(1));
  for (Instant at(from.time_since_epoch() - std::chrono::days(1)); at < last;) {
    const auto info = zone_->get_info(at);
    const Instant begin = std::max(Instant(from.time_since_epoch() - info.offset), info.begin);
    const Instant end = std::min(Instant(to.time_since_epoch() - info.offset), info.end);
    into.add({begin, end});
    if (info.end >= last) {
      break;
    }
    at = info.end;
  }
}

std::string Zone::format(Instant instant) const {
  const auto info = zone_->get_info(instant);
  const auto local = to_local(instant);
  const auto day = std::chrono::floor<std::chrono::days>(local);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(local - day);
  return fmt::format(
      "{} {:04}-{:02}-{:02} {:02}:{:02} {}", kDayNames[std::chrono::weekday(day).c_encoding()],
      static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
      static_cast<unsigned>(date.day()), time.hours().count(), time.minutes().count(), info.abbrev);
}

Instant to_instant(Ticks ticks) {
  const auto since = ticks.value() - kUnixEpoch.value();
  const auto whole = since / kTicksPerSecond - (since % kTicksPerSecond < 0 ? 1 : 0);
  return Instant(seconds(whole));
}

Ticks to_ticks(Instant instant) {
  return Ticks(kUnixEpoch.value() + instant.time_since_epoch().count() * kTicksPerSecond);
}

std::string format_length(seconds length) {
  const auto total = length.count();
  const auto days = total / 86'400;
  const auto hours = total / 3'600 % 24;
  const auto minutes = total / 60 % 60;
  std::string out;
  const auto add = [&out](std::int64_t count, std::string_view unit) {
    if (count != 0) {
      out += fmt::format("{}{} {}", out.empty() ? "" : " ", count, unit);
    }
  };
  add(days, "d");
  add(hours, "h");
  add(minutes, "min");
  if (days == 0 && hours == 0) {
    add(total % 60, "s");
  }
  return out.empty() ? "0 s" : out;
}

}  // namespace verger::controller
