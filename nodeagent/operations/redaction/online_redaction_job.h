#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "nodeagent/external/online_access.h"
#include "nodeagent/operations/jobs/paced_job.h"
#include "nodeagent/operations/redaction/held_files.h"
#include "nodeagent/operations/redaction/noted_texts.h"
#include "nodeagent/operations/redaction/redaction_result.h"

namespace verger::agent {

/// The work of an online redaction that needs no calls of the server, in parts: each is begun, then
/// driven until step() says that it is done. Between them nothing runs. Errors: kRefused
/// (obstacles, records that are others here: nothing was changed), the engine's.
class OnlineRedactionJob final : public MeteredJob {
 public:
  /// What `machine` refers to outlives the job; `store`: NotedTexts.
  OnlineRedactionJob(external::DatabasePlace place, const external::OfflineMachine& machine,
                     std::vector<redaction::ListedRedaction> list,
                     std::shared_ptr<NotedTextStore> store);

  /// Finds the records of the list in the server's files. The first time, their texts are noted.
  void begin_look() { phase_ = Phase::kLook; }
  /// Searches all files below database and index, those that were written to meanwhile once more,
  /// up to three times; then reads the records again.
  void begin_search();
  /// Searches the removed files that processes hold open; held() then has those with a text, and
  /// those that cannot be read.
  void begin_held();

  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] JobProgress progress() const override;

  // Between two parts.

  /// Of the look: what the server is asked for. No events: the node has none of the records.
  [[nodiscard]] std::vector<redaction::EventName> events() const;
  [[nodiscard]] std::set<LogPosition> positions() const;
  [[nodiscard]] bool metadata() const;
  [[nodiscard]] bool has_texts() const { return texts_.can_search(); }
  [[nodiscard]] const std::vector<std::string>& held() const { return result_.held; }
  RedactionResult& result() { return result_; }
  [[nodiscard]] const RedactionResult& result() const { return result_; }

 private:
  enum class Phase : std::uint8_t { kIdle, kLook, kSearch, kReadAgain, kHeld };
  using Stamps = std::map<Path, std::string>;

  Result<void> look();
  Result<void> begin_round();
  Result<void> end_round();
  Result<void> read_again();
  Result<void> list_held();
  void end_held();
  [[nodiscard]] std::vector<Path> directories() const;
  /// By what a write to a file shows.
  Result<Stamps> stamps() const;

  external::DatabasePlace place_;
  external::OfflineMachine machine_;
  std::vector<redaction::ListedRedaction> list_;
  NotedTexts texts_;
  redaction::RedactionPlan plan_{};
  bool noted_ = false;
  std::unique_ptr<redaction::PlaintextSearchJob> search_;
  Stamps before_{};            ///< of the files, before the present round
  std::set<Path> in_round_{};  ///< of the rounds after the first
  std::map<Path, redaction::SearchedFile> searched_{};
  std::vector<HeldFile> holders_{};
  RedactionResult result_{};
  Phase phase_ = Phase::kIdle;
};

}  // namespace verger::agent
