#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "controller/journal/journal_decorator.h"

namespace verger::controller {

/// How long appends took, since this journal was opened.
struct CommitTimes {
  std::int64_t count = 0;
  std::chrono::nanoseconds total{0};
  std::chrono::nanoseconds longest{0};
};

/// A journal that measures another one's appends by `clock`.
class TimedJournal final : public JournalDecorator {
 public:
  TimedJournal(std::unique_ptr<Journal> inner, Clock& clock)
      : JournalDecorator(std::move(inner)), clock_(clock) {}
  [[nodiscard]] const CommitTimes& times() const { return times_; }

  Result<std::vector<JournalEvent>> append(std::string_view stream, Revision expected,
                                           std::vector<NewEvent> events,
                                           ControllerEpoch epoch) override {
    const auto began = clock_.monotonic();
    auto appended = inner().append(stream, expected, std::move(events), epoch);
    const std::chrono::nanoseconds took = clock_.monotonic() - began;
    ++times_.count;
    times_.total += took;
    times_.longest = std::max(times_.longest, took);
    return appended;
  }

 private:
  Clock& clock_;
  CommitTimes times_;
};

}  // namespace verger::controller
