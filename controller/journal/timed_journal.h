#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "controller/journal/journal.h"

namespace verger::controller {

/// How long appends took, since this journal was opened.
struct CommitTimes {
  std::int64_t count = 0;
  std::chrono::nanoseconds total{0};
  std::chrono::nanoseconds longest{0};
};

/// A journal that measures another one's appends by `clock`.
class TimedJournal final : public Journal {
 public:
  TimedJournal(std::unique_ptr<Journal> inner, Clock& clock)
      : inner_(std::move(inner)), clock_(clock) {}
  [[nodiscard]] const CommitTimes& times() const { return times_; }

  Result<std::vector<JournalEvent>> append(std::string_view stream, Revision expected,
                                           std::vector<NewEvent> events,
                                           ControllerEpoch epoch) override {
    const auto began = clock_.monotonic();
    auto appended = inner_->append(stream, expected, std::move(events), epoch);
    const std::chrono::nanoseconds took = clock_.monotonic() - began;
    ++times_.count;
    times_.total += took;
    times_.longest = std::max(times_.longest, took);
    return appended;
  }
  Result<std::vector<JournalEvent>> read(std::string_view stream, Revision after,
                                         std::size_t limit) override {
    return inner_->read(stream, after, limit);
  }
  Result<std::vector<JournalEvent>> read_all(Sequence after, std::size_t limit) override {
    return inner_->read_all(after, limit);
  }
  Result<Revision> revision(std::string_view stream) override { return inner_->revision(stream); }
  Result<Sequence> last_sequence() override { return inner_->last_sequence(); }
  Result<std::vector<std::string>> streams(std::string_view prefix) override {
    return inner_->streams(prefix);
  }
  Result<void> save_snapshot(const Snapshot& snapshot, ControllerEpoch epoch) override {
    return inner_->save_snapshot(snapshot, epoch);
  }
  Result<std::optional<Snapshot>> snapshot(std::string_view stream) override {
    return inner_->snapshot(stream);
  }
  Result<std::vector<Snapshot>> current_snapshots(std::string_view prefix) override {
    return inner_->current_snapshots(prefix);
  }
  Result<void> remove(const Removal& removal, ControllerEpoch epoch) override {
    return inner_->remove(removal, epoch);
  }
  Result<std::vector<RemovedRange>> removed() override { return inner_->removed(); }
  Result<void> reclaim() override { return inner_->reclaim(); }
  Result<JournalSize> size() override { return inner_->size(); }
  Result<ControllerEpoch> begin_epoch(std::string_view owner) override {
    return inner_->begin_epoch(owner);
  }
  Result<ControllerEpoch> epoch() override { return inner_->epoch(); }
  Result<Sequence> verify() override { return inner_->verify(); }
  [[nodiscard]] Subscription subscribe(Listener listener) override {
    return inner_->subscribe(std::move(listener));
  }

 private:
  std::unique_ptr<Journal> inner_;
  Clock& clock_;
  CommitTimes times_;
};

}  // namespace verger::controller
