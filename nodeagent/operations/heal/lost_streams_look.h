#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/verify/lost_streams_job.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/jobs/paced_job.h"

namespace verger::agent {

/// Counts the streams that a server's existence filter lacks, and finds out the names of some that
/// its log has: a reader must find these. Nothing is changed; the server may run.
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
  /// Names of streams with events, lost ones first; at most kSample.
  static constexpr std::size_t kSample = 20;
  [[nodiscard]] const std::vector<std::string>& sample() const { return sample_; }

 private:
  Result<void> choose_sample();

  external::OfflineServer& server_;
  verify::LostStreamsJob job_;
  std::vector<std::string> sample_;
};

}  // namespace verger::agent
