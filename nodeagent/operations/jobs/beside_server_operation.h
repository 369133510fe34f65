#pragma once

#include <memory>

#include "nodeagent/operations/jobs/job_operation.h"

namespace verger::agent {

/// Runs a job on the files of a node beside its running server: it reads them, and changes nothing
/// that must be undone. After a restart of the agent the job waits until its server was seen.
class BesideServerOperation : public JobOperation {
 public:
  [[nodiscard]] bool works_on_files() const final { return true; }
  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& record) override;

 protected:
  net::awaitable<Result<std::shared_ptr<MeteredJob>>> prepare(LocalNode node,
                                                              const OperationRecord& record) final;
  /// The parameters, and a last look at the node, which runs.
  virtual Result<void> check(node::NodeInspection& inspection, const OperationRecord& record) = 0;
  /// The job, begun or resumed. Called again where the agent was restarted.
  virtual Result<std::shared_ptr<MeteredJob>> make_job(LocalNode node,
                                                       node::NodeInspection& inspection,
                                                       const OperationRecord& record) = 0;
};

}  // namespace verger::agent
