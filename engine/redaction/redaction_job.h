#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/job.h"
#include "engine/base/log.h"
#include "engine/base/random.h"
#include "engine/log/transaction_log.h"
#include "engine/redaction/redaction_plan.h"

namespace verger::redaction {

struct RedactionProgress {
  std::size_t chunks_done = 0;
  std::size_t chunks_total = 0;
  std::size_t records_done = 0;
  std::uint64_t bytes_done = 0;  ///< of chunk files, read and written
  std::uint64_t bytes_total = 0;
};

/// One chunk file that was replaced.
struct RedactedChunk {
  std::string from;  ///< file name
  std::string to;
  std::size_t records = 0;
  Md5Digest md5_before{};
  Md5Digest md5_after{};
  /// Over the records (detail/chunk_digests.h): the same on nodes that have the same ones.
  Sha256Digest digest_before{};
  Sha256Digest digest_after{};
};

/// Carries out a plan, on a log that is open for writing: nothing else writes to it. One chunk file
/// after the other is copied to `<guid>.redact.tmp` with its records blanked and its MD5 computed
/// anew, compared with its source while it is read, read back, synced, and switched in as the next
/// version; then the former file is removed. Whatever interrupts it, each chunk is as it was or
/// redacted, and what lies beside is removed by the next opening for writing; a new plan then
/// finishes what is left.
///
/// Errors: kNoSpace (before the first change, or with the copy removed again), kCorruption (the
/// source is not what its MD5 says: it is left as it is), kConflict (the log has changed since the
/// plan was made), kRefused (an active chunk without consent), kCancelled, kIo. One thread.
class RedactionJob final : public Job {
 public:
  /// All but plan and consent outlive it.
  RedactionJob(FileSystem& files, log::TransactionLog& log, RedactionPlan plan,
               const RedactionConsent& consent, Random& random, Log& out);
  ~RedactionJob() override;
  Result<StepOutcome> step(Budget budget) override;

  [[nodiscard]] const RedactionProgress& progress() const;
  /// Those that are replaced so far.
  [[nodiscard]] const std::vector<RedactedChunk>& chunks() const;
  /// Ends it with kCancelled before the next piece; a chunk is switched in whole or not at all.
  void request_stop();
  [[nodiscard]] std::atomic<bool>& stop_flag();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace verger::redaction
