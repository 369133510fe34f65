#pragma once

#include <memory>
#include <string>

#include "nodeagent/operations/jobs/paced_job.h"
#include "nodeagent/operations/operation.h"

namespace verger::agent {

/// Runs a job of the agent itself that changes nothing which would have to be undone. A kind says
/// what is checked, and which job it is; progress, throttle, cancel and lease are the same for all.
/// An agent that was restarted begins the job anew, or resumes it from what it has on disk: that is
/// the job's own. Codes: "stopped", or the name of the job's error.
class JobOperation : public Operation {
 public:
  [[nodiscard]] bool resumes_by_acting() const final { return true; }
  [[nodiscard]] bool has_job() const final { return true; }
  net::awaitable<Result<void>> act(LocalNode node, OperationRecord& record) final;
  net::awaitable<Observation> observe(LocalNode node, OperationRecord& record) final;
  net::awaitable<bool> cancel(LocalNode node, OperationRecord& record, bool keep) final;

 protected:
  /// Waits for what the job needs, and makes it, begun or resumed; nullptr: the operation was
  /// stopped meanwhile. Called again where the agent was restarted.
  virtual net::awaitable<Result<std::shared_ptr<MeteredJob>>> prepare(
      LocalNode node, const OperationRecord& record) = 0;
  /// Where its steps run, and where it is destroyed.
  virtual node::JobRunner& runner(const LocalNode& node) const { return *node.jobs; }
  /// Drives it to its end. Errors: the job's; kCancelled once the operation is stopped.
  virtual net::awaitable<Result<void>> run(LocalNode node, std::shared_ptr<MeteredJob> job,
                                           const OperationRecord& record);
  /// JSON object, once the job is done.
  virtual std::string result_of(const MeteredJob& job) = 0;
  /// The job ended without being done. `keep`: what it has may be of use to the next one.
  virtual void dropped(const OperationRecord& record, bool keep);

  /// For run(): paced as the operation's control says.
  net::awaitable<Result<void>> run_paced(LocalNode node, std::shared_ptr<MeteredJob> job) const;
};

/// A job whose step destroys `job`: what that does may take as long as one of its own steps, and
/// belongs where these run. The caller keeps no reference of its own.
std::shared_ptr<Job> last_reference_to(std::shared_ptr<MeteredJob> job);

}  // namespace verger::agent
