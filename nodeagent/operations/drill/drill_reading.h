#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "engine/backup/manifest.h"
#include "engine/streams/event_store.h"
#include "nodeagent/operations/jobs/paced_job.h"

namespace verger::agent {

/// What was found when a restored database was read.
struct DrillFindings {
  Sha256Digest logical{};
  Sha256Digest readable{};
  std::int64_t streams = 0;
  std::int64_t events = 0;  ///< of these streams
};

/// Reads a restored database with the engine's readers, below the end of its backup: every record
/// for the digests, and, with `streams`, $all from its beginning and each stream as a whole, found
/// by the index. The database must not be open elsewhere. Errors: kCorruption and others of
/// reading.
class DrillReading final : public MeteredJob {
 public:
  struct Environment {
    FileSystem& files;
    Clock& clock;
    Random& random;
    Log& log;
  };
  enum class Scope : std::uint8_t { kDigests, kEverything };
  DrillReading(Path database, const backup::Manifest& manifest, Scope scope,
               Environment environment);
  ~DrillReading() override;
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] JobProgress progress() const override;
  /// Once it is done.
  [[nodiscard]] const DrillFindings& findings() const { return findings_; }

 private:
  Result<void> open();
  Result<StepOutcome> read_digests(Budget budget);
  Result<StepOutcome> read_all(Budget budget);
  /// The newest event number; looked up once a stream, as far as the memory for it goes.
  Result<EventNumber> last_event_of(const std::string& stream);
  Result<void> begin_stream(const std::string& stream);
  Result<void> read_stream();

  Path directory_;
  LogPosition end_;
  Ticks readable_now_;
  Scope scope_;
  Environment env_;
  std::unique_ptr<streams::Database> database_;
  std::unique_ptr<streams::DigestJob> digest_;
  bool digest_done_ = false;
  streams::AllPosition at_{.commit = LogPosition(0), .prepare = LogPosition(0)};
  streams::AllSlice page_;
  std::size_t next_in_page_ = 0;
  std::string stream_;  ///< that is being read; empty: none
  EventNumber next_in_stream_{0};
  std::unordered_map<std::string, EventNumber> last_events_;
  DrillFindings findings_;
};

}  // namespace verger::agent
