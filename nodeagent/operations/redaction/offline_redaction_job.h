#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/redaction/plaintext_search_job.h"
#include "engine/redaction/redaction_job.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/jobs/paced_job.h"
#include "nodeagent/operations/redaction/noted_texts.h"
#include "nodeagent/operations/redaction/redaction_result.h"

namespace verger::agent {

/// Redacts in the files of a stopped server what a list names: plan, note the texts, blank, search
/// all files, read the records again. Errors: kRefused (obstacles, records that are others here, a
/// pending truncation: nothing was changed), the engine's.
class OfflineRedactionJob final : public MeteredJob {
 public:
  /// `server` outlives the job; `store`: NotedTexts.
  OfflineRedactionJob(external::OfflineServer& server, std::vector<redaction::ListedRedaction> list,
                      std::shared_ptr<NotedTextStore> store);
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] JobProgress progress() const override;
  /// Once it is done.
  [[nodiscard]] const RedactionResult& result() const { return result_; }

 private:
  enum class Phase : std::uint8_t { kPlanning, kBlanking, kSearching, kDone };

  Result<void> make_plan();
  Result<void> begin_blanking();
  Result<void> end_blanking();
  void begin_searching();
  Result<void> end_searching();

  external::OfflineServer& server_;
  external::OfflineMachine machine_;
  std::vector<redaction::ListedRedaction> list_;
  NotedTexts texts_;
  redaction::RedactionPlan plan_{};
  std::unique_ptr<log::TransactionLog> log_;
  std::unique_ptr<redaction::RedactionJob> blanking_;
  std::unique_ptr<redaction::PlaintextSearchJob> search_;
  RedactionResult result_{};
  Phase phase_ = Phase::kPlanning;
};

}  // namespace verger::agent
