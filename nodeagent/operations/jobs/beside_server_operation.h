#pragma once

#include <memory>

#include "nodeagent/operations/jobs/paced_job.h"
#include "nodeagent/operations/operation.h"

namespace verger::agent {

/// Runs a job on the files of a node beside its running server: it reads them, and changes nothing
/// that must be undone. A kind says what is checked, and which job it is; progress, throttle,
/// cancel and lease are the same for all. An agent that was restarted begins the job anew, or
/// resumes it from what it has on disk: that is the job's own. Codes: "stopped", or the name of the
/// job's error.
class BesideServerOperation : public Operation {
 public:
  [[nodiscard]] bool works_on_files() const final { return true; }
  [[nodiscard]] bool resumes_by_acting() const final { return true; }
  [[nodiscard]] bool has_job() const final { return true; }
  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& record) final;
  net::awaitable<Result<void>> act(LocalNode node, OperationRecord& record) final;
  net::awaitable<Observation> observe(LocalNode node, OperationRecord& record) final;
  net::awaitable<bool> cancel(LocalNode node, OperationRecord& record, bool keep) final;

 protected:
  /// The parameters, and a last look at the node, which runs.
  virtual Result<void> check(node::NodeInspection& inspection, const OperationRecord& record) = 0;
  /// The job, begun or resumed. Called again where the agent was restarted.
  virtual Result<std::shared_ptr<MeteredJob>> make_job(LocalNode node,
                                                       node::NodeInspection& inspection,
                                                       const OperationRecord& record) = 0;
  /// JSON object, once the job is done.
  virtual std::string result_of(const MeteredJob& job) = 0;
  /// The job ended without being done. `keep`: what it has may be of use to the next one.
  virtual void dropped(const OperationRecord& record, bool keep);
};

}  // namespace verger::agent
