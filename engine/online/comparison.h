#pragma once

#include <memory>

#include "engine/index/stream_hash.h"
#include "engine/online/prepared_chunks.h"
#include "engine/online/shadow.h"

namespace verger::online_scavenge {

/// Compares each chunk that a native run made with the server's: the server takes any file whose
/// checksum is right for the range. Header, footer, checksum and position map are a scavenged
/// chunk's; its records are the server's, byte for byte at the same positions, in order; each
/// record that is missing is one that the rules remove, looked up in the state anew. Notes in the
/// preparation that this was so.
///
/// Errors: kCorruption: a chunk is not what it has to be; kConflict: the server's chunk is another
/// one by now; kIo. Nothing is changed but prepared.json.
class ComparisonJob final : public Job {
 public:
  ComparisonJob(const Machine& machine, DatabasePlace place, Preparation preparation,
                index::HashFunction hash = &index::hash_stream);
  ~ComparisonJob() override;
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] const WorkProgress& progress() const;
  [[nodiscard]] const Preparation& preparation() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace verger::online_scavenge
