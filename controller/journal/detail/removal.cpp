#include "controller/journal/detail/removal.h"

#include <algorithm>
#include <fmt/format.h>

namespace verger::controller::detail {

Result<void> check_removal(const Removal& removal, Sequence newest) {
  Sequence before{0};
  for (const auto& event : removal.events) {
    if (event.sequence <= before || event.sequence >= newest) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("event {} cannot be removed: {}", event.sequence.value(),
                               event.sequence >= newest ? "the journal's newest stays"
                                                        : "the list is not by sequence")};
    }
    before = event.sequence;
  }
  return {};
}

ChangeOfRanges change_of_ranges(const std::vector<RemovedRange>& known, const Removal& removal) {
  ChangeOfRanges out;
  auto old = known.begin();
  const auto joins = [&out](const RemovedRange& range) {
    return !out.now.empty() && out.now.back().last.value() + 1 == range.first.value();
  };
  const auto add = [&](const RemovedRange& range) {
    if (joins(range)) {
      out.now.back().last = range.last;
      out.now.back().hash = range.hash;
    } else {
      out.now.push_back(range);
    }
  };
  for (std::size_t i = 0; i < removal.events.size(); ++i) {
    const auto& event = removal.events[i];
    // Of the ranges before it only one that ends right there matters.
    old = std::lower_bound(old, known.end(), Sequence(event.sequence.value() - 1),
                           [](const RemovedRange& range, Sequence at) { return range.last < at; });
    if (old != known.end() && old->last.value() + 1 == event.sequence.value() &&
        (out.gone.empty() || out.gone.back() != old->last)) {
      out.gone.push_back(old->last);
      add(*old);
    }
    add(RemovedRange{event.sequence, event.sequence, event.hash});
    const auto next =
        std::lower_bound(old, known.end(), event.sequence,
                         [](const RemovedRange& range, Sequence at) { return range.first <= at; });
    if (next != known.end() && next->first.value() == event.sequence.value() + 1) {
      out.gone.push_back(next->last);
      add(*next);
    }
  }
  return out;
}

}  // namespace verger::controller::detail
