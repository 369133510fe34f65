#pragma once

#include <chrono>
#include <optional>
#include <vector>

namespace verger::controller {

/// Whole seconds of UTC; windows and schedules know no finer time.
using Instant = std::chrono::sys_seconds;
/// What a wall clock shows, without a zone.
using LocalSeconds = std::chrono::local_seconds;

/// Half open: `from` belongs to it, `to` does not.
struct Interval {
  Instant from;
  Instant to;
  [[nodiscard]] std::chrono::seconds length() const { return to - from; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// A set of instants: disjoint intervals in order that do not touch each other. A plain value.
class IntervalSet {
 public:
  IntervalSet() = default;
  explicit IntervalSet(std::vector<Interval> intervals);

  /// Union with one interval; an empty one changes nothing.
  void add(Interval interval);
  [[nodiscard]] IntervalSet minus(const IntervalSet& other) const;
  [[nodiscard]] IntervalSet clipped_to(Interval range) const;
  [[nodiscard]] bool contains(Instant instant) const { return find(instant).has_value(); }
  /// The interval that holds `instant`.
  [[nodiscard]] std::optional<Interval> find(Instant instant) const;
  /// The first interval that begins after `instant`.
  [[nodiscard]] std::optional<Interval> next(Instant instant) const;
  [[nodiscard]] std::optional<Interval> longest() const;  ///< the first of several
  [[nodiscard]] std::chrono::seconds total() const;
  [[nodiscard]] const std::vector<Interval>& intervals() const { return intervals_; }
  [[nodiscard]] bool empty() const { return intervals_.empty(); }
  friend bool operator==(const IntervalSet&, const IntervalSet&) = default;

 private:
  std::vector<Interval> intervals_;
};

}  // namespace verger::controller
