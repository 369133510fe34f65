#include "controller/scheduler/intervals.h"

#include <algorithm>

namespace verger::controller {

IntervalSet::IntervalSet(std::vector<Interval> intervals) {
  std::ranges::sort(intervals, {}, &Interval::from);
  for (const auto& interval : intervals) {
    if (interval.from >= interval.to) {
      continue;
    }
    if (!intervals_.empty() && interval.from <= intervals_.back().to) {
      intervals_.back().to = std::max(intervals_.back().to, interval.to);
    } else {
      intervals_.push_back(interval);
    }
  }
}

void IntervalSet::add(Interval interval) {
  if (interval.from >= interval.to) {
    return;
  }
  // The first that ends at or after its begin may touch it; so may all up to the one behind its
  // end.
  const auto first = std::ranges::lower_bound(intervals_, interval.from, {}, &Interval::to);
  auto last = first;
  while (last != intervals_.end() && last->from <= interval.to) {
    interval.from = std::min(interval.from, last->from);
    interval.to = std::max(interval.to, last->to);
    ++last;
  }
  intervals_.insert(intervals_.erase(first, last), interval);
}

IntervalSet IntervalSet::minus(const IntervalSet& other) const {
  IntervalSet out;
  auto cut = other.intervals_.begin();
  for (auto left : intervals_) {
    while (cut != other.intervals_.end() && cut->to <= left.from) {
      ++cut;
    }
    for (auto each = cut; each != other.intervals_.end() && each->from < left.to; ++each) {
      if (each->from > left.from) {
        out.intervals_.push_back({left.from, each->from});
      }
      left.from = each->to;
    }
    if (left.from < left.to) {
      out.intervals_.push_back(left);
    }
  }
  return out;
}

IntervalSet IntervalSet::clipped_to(Interval range) const {
  IntervalSet out;
  for (const auto& each : intervals_) {
    const Interval common{std::max(each.from, range.from), std::min(each.to, range.to)};
    if (common.from < common.to) {
      out.intervals_.push_back(common);
    }
  }
  return out;
}

std::optional<Interval> IntervalSet::find(Instant instant) const {
  const auto found = std::ranges::upper_bound(intervals_, instant, {}, &Interval::to);
  if (found == intervals_.end() || found->from > instant) {
    return std::nullopt;
  }
  return *found;
}

std::optional<Interval> IntervalSet::next(Instant instant) const {
  const auto found = std::ranges::upper_bound(intervals_, instant, {}, &Interval::from);
  return found == intervals_.end() ? std::nullopt : std::optional(*found);
}

std::optional<Interval> IntervalSet::longest() const {
  const auto found = std::ranges::max_element(
      intervals_, [](const Interval& a, const Interval& b) { return a.length() < b.length(); });
  return found == intervals_.end() ? std::nullopt : std::optional(*found);
}

std::chrono::seconds IntervalSet::total() const {
  std::chrono::seconds out{0};
  for (const auto& each : intervals_) {
    out += each.length();
  }
  return out;
}

}  // namespace verger::controller
