#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/redaction/redaction_plan.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/jobs/paced_job.h"
#include "nodeagent/operations/operation_journal.h"

namespace verger::agent {

/// What the files of the node have of a request, as the engine would redact it. A server may have
/// them open; nothing is changed. One step. Errors: those of opening and reading.
class RedactionLook final : public MeteredJob {
 public:
  /// What `machine` refers to outlives the job.
  RedactionLook(external::DatabasePlace place, const external::OfflineMachine& machine,
                redaction::RedactionRequest request);
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] JobProgress progress() const override;
  /// Once it is done.
  [[nodiscard]] const redaction::RedactionPlan& plan() const { return plan_; }

 private:
  external::DatabasePlace place_;
  external::OfflineMachine machine_;
  redaction::RedactionRequest request_;
  redaction::RedactionPlan plan_{};
};

/// Opens the server's files for reading. Errors: those of streams::Database::open.
Result<std::unique_ptr<streams::Database>> open_for_reading(
    const external::DatabasePlace& place, const external::OfflineMachine& machine);

/// The parameter kListMember of an operation. Error: kInvalidArgument.
Result<std::vector<redaction::ListedRedaction>> list_in(const OperationRecord& record);

/// Why the plan could not be carried out on the files as they are, a sentence each, apart from what
/// is refused or missing: an active chunk, an unfinished scavenge. Superseded and temporary files
/// are none: the server's next start removes them.
std::vector<std::string> obstacles_of(const redaction::RedactionPlan& plan);

}  // namespace verger::agent
