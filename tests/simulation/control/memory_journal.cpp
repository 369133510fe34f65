#include "tests/simulation/control/memory_journal.h"

#include <algorithm>
#include <fmt/format.h>
#include <list>

namespace verger::sim {
namespace {

using namespace controller;

class MemoryJournal final : public Journal {
 public:
  MemoryJournal(std::shared_ptr<JournalStore> store, Clock& clock, WriteFates fates)
      : store_(std::move(store)), clock_(clock), fates_(std::move(fates)) {}

  Result<std::vector<JournalEvent>> append(std::string_view stream, Revision expected,
                                           std::vector<NewEvent> events,
                                           ControllerEpoch epoch) override {
    VERGER_RETURN_IF_ERROR(check_epoch(stream, epoch));
    auto& indices = store_->streams[std::string(stream)];
    const auto current = static_cast<std::int64_t>(indices.size());
    if (expected != kAnyRevision && expected.value() != current) {
      return Error{Errc::kConflict, fmt::format("{}: expected revision {}, it is at {}", stream,
                                                expected.value(), current)};
    }
    if (events.empty()) {
      return std::vector<JournalEvent>();
    }
    const auto fate = fates_(false);
    switch (fate) {
      case WriteFate::kDead:
        return Error{Errc::kIo, "the process has ended"};
      case WriteFate::kNoSpace:
        return Error{Errc::kNoSpace, "journal: no space left"};
      case WriteFate::kUnknownLost:
        return Error{Errc::kUnknownOutcome, "journal: it may be written or not"};
      case WriteFate::kUnknownWritten:
      case WriteFate::kDone:
        break;
    }
    const auto first = store_->events.size();
    auto revision = current;
    for (auto& event : events) {
      const auto sequence = static_cast<std::int64_t>(store_->events.size()) + 1;
      indices.push_back(store_->events.size());
      store_->events.push_back({Sequence(sequence), std::string(stream), Revision(++revision),
                                std::move(event.type), std::move(event.data), clock_.now(), epoch,
                                "-"});
    }
    if (store_->on_event) {
      for (auto i = first; i < store_->events.size(); ++i) {
        store_->on_event(store_->events[i]);
      }
    }
    if (fates_(true) == WriteFate::kDead) {
      return Error{Errc::kIo, "the process has ended"};
    }
    if (fate == WriteFate::kUnknownWritten) {
      return Error{Errc::kUnknownOutcome, "journal: it may be written or not"};
    }
    tell_listeners();
    return std::vector(store_->events.begin() + static_cast<std::ptrdiff_t>(first),
                       store_->events.end());
  }

  Result<std::vector<JournalEvent>> read(std::string_view stream, Revision after,
                                         std::size_t limit) override {
    std::vector<JournalEvent> out;
    const auto found = store_->streams.find(stream);
    if (found != store_->streams.end()) {
      for (auto i = static_cast<std::size_t>(after.value());
           i < found->second.size() && out.size() < limit; ++i) {
        out.push_back(store_->events[found->second[i]]);
      }
    }
    return out;
  }

  Result<std::vector<JournalEvent>> read_all(Sequence after, std::size_t limit) override {
    const auto begin = std::min(static_cast<std::size_t>(after.value()), store_->events.size());
    const auto end = std::min(begin + limit, store_->events.size());
    return std::vector(store_->events.begin() + static_cast<std::ptrdiff_t>(begin),
                       store_->events.begin() + static_cast<std::ptrdiff_t>(end));
  }

  Result<Revision> revision(std::string_view stream) override {
    const auto found = store_->streams.find(stream);
    return Revision(
        found == store_->streams.end() ? 0 : static_cast<std::int64_t>(found->second.size()));
  }

  Result<Sequence> last_sequence() override {
    return Sequence(static_cast<std::int64_t>(store_->events.size()));
  }

  Result<std::vector<std::string>> streams(std::string_view prefix) override {
    std::vector<std::string> out;
    for (auto at = store_->streams.lower_bound(prefix);
         at != store_->streams.end() && at->first.starts_with(prefix); ++at) {
      if (!at->second.empty()) {
        out.push_back(at->first);
      }
    }
    return out;
  }

  Result<void> save_snapshot(const Snapshot& snapshot, ControllerEpoch epoch) override {
    VERGER_RETURN_IF_ERROR(check_epoch(snapshot.stream, epoch));
    VERGER_TRY(const auto at, revision(snapshot.stream));
    if (at != snapshot.revision) {
      return Error{Errc::kConflict,
                   fmt::format("{}: a snapshot of revision {}, it is at {}", snapshot.stream,
                               snapshot.revision.value(), at.value())};
    }
    switch (fates_(false)) {
      case WriteFate::kDead:
        return Error{Errc::kIo, "the process has ended"};
      case WriteFate::kNoSpace:
        return Error{Errc::kNoSpace, "journal: no space left"};
      case WriteFate::kUnknownLost:
        return Error{Errc::kIo, "journal: the snapshot may be kept or not"};
      case WriteFate::kUnknownWritten:
      case WriteFate::kDone:
        break;
    }
    store_->snapshots[snapshot.stream] = snapshot;
    if (fates_(true) == WriteFate::kDead) {
      return Error{Errc::kIo, "the process has ended"};
    }
    return {};
  }

  /// The simulation keeps all that ever happened: it is what its judge looks at.
  Result<void> remove(const Removal&, ControllerEpoch) override {
    return Error{Errc::kUnsupported, "this journal keeps every event"};
  }
  Result<std::vector<RemovedRange>> removed() override { return std::vector<RemovedRange>(); }
  Result<void> reclaim() override { return {}; }
  Result<JournalSize> size() override {
    return JournalSize{.events = static_cast<std::int64_t>(store_->events.size())};
  }

  Result<std::optional<Snapshot>> snapshot(std::string_view stream) override {
    const auto found = store_->snapshots.find(stream);
    return found == store_->snapshots.end() ? std::nullopt : std::optional(found->second);
  }

  Result<std::vector<Snapshot>> current_snapshots(std::string_view prefix) override {
    std::vector<Snapshot> out;
    for (auto at = store_->snapshots.lower_bound(prefix);
         at != store_->snapshots.end() && at->first.starts_with(prefix); ++at) {
      VERGER_TRY(const auto newest, revision(at->first));
      if (newest == at->second.revision) {
        out.push_back(at->second);
        out.back().state.clear();
      }
    }
    return out;
  }

  Result<ControllerEpoch> begin_epoch(std::string_view /*owner*/) override {
    switch (fates_(false)) {
      case WriteFate::kDead:
        return Error{Errc::kIo, "the process has ended"};
      case WriteFate::kNoSpace:
        return Error{Errc::kNoSpace, "journal: no space left"};
      default:
        break;
    }
    store_->epoch = ControllerEpoch(store_->epoch.value() + 1);
    return store_->epoch;
  }

  Result<ControllerEpoch> epoch() override { return store_->epoch; }
  Result<Sequence> verify() override { return last_sequence(); }

  Subscription subscribe(Listener listener) override {
    auto kept = std::make_shared<Listener>(std::move(listener));
    listeners_.push_back(kept);
    return kept;
  }

 private:
  Result<void> check_epoch(std::string_view stream, ControllerEpoch epoch) const {
    if (epoch != store_->epoch) {
      return Error{Errc::kRefused,
                   fmt::format("{}: epoch {} is over, the journal is at {}: another controller has "
                               "taken over",
                               stream, epoch.value(), store_->epoch.value())};
    }
    return {};
  }

  void tell_listeners() {
    std::erase_if(listeners_, [](const auto& weak) { return weak.expired(); });
    const Sequence last(static_cast<std::int64_t>(store_->events.size()));
    for (const auto& weak : std::vector(listeners_.begin(), listeners_.end())) {
      if (const auto listener = weak.lock()) {
        (*listener)(last);
      }
    }
  }

  std::shared_ptr<JournalStore> store_;
  Clock& clock_;
  WriteFates fates_;
  std::list<std::weak_ptr<Listener>> listeners_;
};

}  // namespace

std::unique_ptr<Journal> open_memory_journal(std::shared_ptr<JournalStore> store, Clock& clock,
                                             WriteFates fates) {
  return std::make_unique<MemoryJournal>(std::move(store), clock, std::move(fates));
}

}  // namespace verger::sim
