#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/redaction/plaintext_search_job.h"
#include "engine/redaction/redaction_job.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/jobs/paced_job.h"

namespace verger::agent {

/// What was done on a node, and what the search showed. Nothing of what the events held is in it.
struct RedactionResult {
  std::size_t records = 0;                         ///< of the list, that the node has
  std::size_t blanked = 0;                         ///< by this job
  std::size_t already = 0;                         ///< before
  std::vector<std::string> missing{};              ///< of the list, that the node does not have
  std::vector<redaction::RedactedChunk> chunks{};  ///< files that were replaced
  std::vector<std::string> removed{};              ///< files beside the live ones
  std::size_t texts = 0;                           ///< that were searched for
  std::size_t unsearchable = 0;                    ///< too short, or nothing but repetitions
  std::size_t searched_files = 0;                  ///< 0: no text was known, nothing was searched
  std::uint64_t searched_bytes = 0;
  std::vector<std::string> found{};  ///< where text is left, or why a file was not searched
  std::vector<std::string> held{};   ///< removed files that a process has open
};

/// JSON object: the members in camelCase, a chunk as {"from", "to", "records", "md5Before",
/// "md5After"}, and "proven": a text was searched for, and none was found or may be held.
nlohmann::json to_json(const RedactionResult& result);

/// Redacts in the files of a stopped server what a list names: plan, note the texts, blank, search
/// all files, read the records again. The texts are kept as keyed digests, in memory, while the job
/// lives. Errors: kRefused (obstacles, records that are others here, a pending truncation: nothing
/// was changed), the engine's.
class OfflineRedactionJob final : public MeteredJob {
 public:
  /// `server` outlives the job.
  OfflineRedactionJob(external::OfflineServer& server,
                      std::vector<redaction::ListedRedaction> list);
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] JobProgress progress() const override;
  /// Once it is done.
  [[nodiscard]] const RedactionResult& result() const { return result_; }

 private:
  enum class Phase : std::uint8_t { kPlanning, kBlanking, kSearching, kDone };

  Result<void> make_plan();
  Result<void> note_texts(const log::TransactionLog& log);
  void note_text(ByteView text);
  Result<void> begin_blanking();
  Result<void> end_blanking();
  void begin_searching();
  Result<void> end_searching();
  void keep_found(const std::vector<redaction::SearchedFile>& files);

  external::OfflineServer& server_;
  external::OfflineMachine machine_;
  std::vector<redaction::ListedRedaction> list_;
  redaction::PlaintextDigests texts_;
  redaction::RedactionPlan plan_{};
  std::unique_ptr<log::TransactionLog> log_;
  std::unique_ptr<redaction::RedactionJob> blanking_;
  std::unique_ptr<redaction::PlaintextSearchJob> search_;
  RedactionResult result_{};
  Phase phase_ = Phase::kPlanning;
};

}  // namespace verger::agent
