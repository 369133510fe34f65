#pragma once

#include <memory>
#include <utility>

#include "controller/journal/journal.h"

namespace verger::controller {

/// Forwards every call to another journal, which it owns. What adds to a journal derives
/// from it and overrides only what it changes.
class JournalDecorator : public Journal {
 public:
  explicit JournalDecorator(std::unique_ptr<Journal> inner) : inner_(std::move(inner)) {}

  Result<std::vector<JournalEvent>> append(std::string_view stream, Revision expected,
                                           std::vector<NewEvent> events,
                                           ControllerEpoch epoch) override {
    return inner_->append(stream, expected, std::move(events), epoch);
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

 protected:
  [[nodiscard]] Journal& inner() { return *inner_; }

 private:
  std::unique_ptr<Journal> inner_;
};

}  // namespace verger::controller
