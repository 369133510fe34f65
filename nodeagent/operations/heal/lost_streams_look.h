#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/verify/lost_streams_job.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/jobs/paced_job.h"

namespace verger::agent {

/// Counts the streams that a server's existence filter lacks, and finds out the names of some that
/// its log has: a reader must find these. Nothing is changed; the server may run. After a minute it
/// ends with what it has found by then.
class LostStreamsLook final : public MeteredJob {
 public:
  /// `server` outlives the job.
  explicit LostStreamsLook(external::OfflineServer& server);
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] JobProgress progress() const override;

  // once it is done
  [[nodiscard]] std::int64_t count() const { return job_.count(); }
  /// Hashes of the first of them.
  [[nodiscard]] std::vector<std::uint64_t> hashes() const;
  /// The newest event of lost streams that have some, one of each; at most kSample.
  static constexpr std::size_t kSample = 20;
  struct Sample {
    std::string stream;
    std::int64_t number = 0;
  };
  [[nodiscard]] const std::vector<Sample>& sample() const { return sample_; }

 private:
  Result<void> choose_sample();

  external::OfflineServer& server_;
  verify::LostStreamsJob job_;
  std::vector<Sample> sample_;
  std::optional<Monotonic> began_{};
};

/// Which of these streams have events now: one that a server does not find may have been deleted,
/// or have expired, since it was chosen.
class StreamsWithEvents final : public Job {
 public:
  /// `server` outlives the job.
  StreamsWithEvents(external::OfflineServer& server, std::vector<std::string> streams)
      : server_(server), streams_(std::move(streams)) {}
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] const std::vector<std::string>& left() const { return streams_; }

 private:
  external::OfflineServer& server_;
  std::vector<std::string> streams_;
};

}  // namespace verger::agent
