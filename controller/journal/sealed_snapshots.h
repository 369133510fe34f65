#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller/journal/journal.h"
#include "engine/base/log.h"

namespace verger::controller {

/// A journal whose snapshots are covered by its hash chain: each has a *seal*, an event of the
/// stream "snapshots" with the hashes of its summary and state, appended before it is kept. A
/// snapshot without its seal, or that is not what was sealed, counts as none, so that the events
/// decide, as they do for one that an earlier version kept. `log` names those that were changed.
class SealedSnapshots final : public Journal {
 public:
  static constexpr std::string_view kStream = "snapshots";
  static constexpr std::string_view kSealed =
      "snapshot-sealed";  ///< {stream, revision, summary, state}
  /// Of a stream, the newest that are looked at: a crash between a seal and its snapshot leaves the
  /// one before.
  static constexpr std::size_t kSealsOfStream = 2;

  /// `log` outlives it.
  SealedSnapshots(std::unique_ptr<Journal> inner, Log& log) : inner_(std::move(inner)), log_(log) {}

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
  Result<void> save_snapshot(const Snapshot& snapshot, ControllerEpoch epoch) override;
  Result<std::optional<Snapshot>> snapshot(std::string_view stream) override;
  Result<std::vector<Snapshot>> current_snapshots(std::string_view prefix) override;
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
  struct Seal {
    Revision revision;
    std::string summary;  ///< hexadecimal SHA-256
    std::string state;
  };
  enum class Of : std::uint8_t { kSummary, kAll };
  /// Reads the seals appended since the last look.
  Result<void> learn();
  /// Logs one that was changed.
  [[nodiscard]] bool is_sealed(const Snapshot& snapshot, Of what);

  std::unique_ptr<Journal> inner_;
  Log& log_;
  Revision read_to_{0};  ///< of kStream
  /// By stream, the newest kSealsOfStream.
  std::map<std::string, std::vector<Seal>, std::less<>> seals_;
};

}  // namespace verger::controller
