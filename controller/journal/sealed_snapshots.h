#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller/journal/journal_decorator.h"
#include "engine/base/log.h"

namespace verger::controller {

/// A journal whose snapshots are covered by its hash chain: each has a *seal*, an event of the
/// stream "snapshots" with the hashes of its summary and state, appended before it is kept. A
/// snapshot without its seal, or that is not what was sealed, counts as none, so that the events
/// decide, as they do for one that an earlier version kept. `log` names those that were changed.
class SealedSnapshots final : public JournalDecorator {
 public:
  static constexpr std::string_view kStream = "snapshots";
  static constexpr std::string_view kSealed =
      "snapshot-sealed";  ///< {stream, revision, summary, state}
  /// Of a stream, the newest that are looked at: a crash between a seal and its snapshot leaves the
  /// one before.
  static constexpr std::size_t kSealsOfStream = 2;

  /// `log` outlives it.
  SealedSnapshots(std::unique_ptr<Journal> inner, Log& log)
      : JournalDecorator(std::move(inner)), log_(log) {}

  Result<void> save_snapshot(const Snapshot& snapshot, ControllerEpoch epoch) override;
  Result<std::optional<Snapshot>> snapshot(std::string_view stream) override;
  Result<std::vector<Snapshot>> current_snapshots(std::string_view prefix) override;

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

  Log& log_;
  Revision read_to_{0};  ///< of kStream
  /// By stream, the newest kSealsOfStream.
  std::map<std::string, std::vector<Seal>, std::less<>> seals_;
};

}  // namespace verger::controller
