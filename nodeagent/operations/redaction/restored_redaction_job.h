#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/redaction/plaintext_search_job.h"
#include "engine/redaction/redacted_copy.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/jobs/paced_job.h"
#include "nodeagent/operations/redaction/noted_texts.h"
#include "nodeagent/operations/redaction/redaction_result.h"

namespace verger::agent {

/// Redacts in files that were just restored, whose server has not run since, what a list of
/// redactions names and they have, searches all files for the texts that they held, and reads the
/// records again. Where all of them were blank already no text is known, and nothing is searched. A
/// truncation of the log that is pending stays so. What cannot be redacted is no error and is in
/// the result's `found`: records in the chunk that is written to, and those that are others here.
/// Interrupted anywhere, each chunk file is the former or the
/// redacted one, and the job is done anew. Errors: the engine's.
class RestoredRedactionJob final : public MeteredJob {
 public:
  /// `server` outlives the job; `store`: NotedTexts.
  RestoredRedactionJob(external::OfflineServer& server,
                       std::vector<redaction::ListedRedaction> list,
                       std::shared_ptr<NotedTextStore> store);
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] JobProgress progress() const override;
  /// Once it is done.
  [[nodiscard]] const RedactionResult& result() const { return result_; }

 private:
  Result<void> make_plan();
  Result<void> take_copies(const log::TransactionLog& log, const redaction::RedactionPlan& plan);
  Result<StepOutcome> copy(Budget budget);
  Result<void> end_copy();
  Result<StepOutcome> search(Budget budget);
  Result<void> check_all(std::vector<redaction::SearchedFile> searched);

  external::DatabasePlace place_;
  external::OfflineMachine machine_;
  std::vector<redaction::ListedRedaction> list_;
  bool planned_ = false;
  std::vector<redaction::CopyRequest> copies_{};  ///< one for each chunk file that changes
  std::size_t next_ = 0;
  std::size_t active_ = 0;  ///< records that have to stay as they are
  std::unique_ptr<redaction::RedactedCopyJob> copying_;
  NotedTexts texts_;
  std::unique_ptr<redaction::PlaintextSearchJob> search_;
  RedactionResult result_{};
};

}  // namespace verger::agent
