#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "nodeagent/operations/jobs/job_operation.h"
#include "nodeagent/operations/operation.h"
#include "nodeagent/operations/server_return.h"

namespace verger::agent {

/// The bracket around work on the files of a stopped server: stop the service, run a job on the
/// files, start the service, wait until the server has caught up, verify. A kind says what is
/// checked before, which job it is, and what shows that it was done.
///
/// act() starts the server again however the job ended. A server that is still on its way down is
/// not started: that would do nothing. observe() goes by the files: as long as nothing answers and
/// no process has them open it starts the server, also after an agent that died in the middle.
/// Refused on a leader. Codes: "stopped", "interrupted", "no_answer" (the server did not come back
/// within the deadline).
class StoppedServerOperation : public Operation {
 public:
  /// {"serviceDeadlineMs"}, for the server's stop, and again until it answers after its start;
  /// {"healFilter"} (heal/drop_filter_job.h), once the job has ended without an error; and the
  /// kind's own.
  [[nodiscard]] std::vector<std::string_view> parameters() const final;
  [[nodiscard]] bool works_on_files() const final { return true; }
  [[nodiscard]] bool blocks_shutdown() const final { return true; }
  [[nodiscard]] bool has_job() const final { return true; }
  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& record) final;
  net::awaitable<Result<void>> act(LocalNode node, OperationRecord& record) final;
  net::awaitable<Observation> observe(LocalNode node, OperationRecord& record) final;
  /// The job stops between two steps; then the server is started as after a whole job.
  net::awaitable<bool> cancel(LocalNode node, OperationRecord& record, bool keep) final;

 protected:
  [[nodiscard]] virtual std::vector<std::string_view> own_parameters() const = 0;
  /// The kind's parameters, and a last look at the node, which runs and does not lead. What
  /// verify() is to know goes into `memory`. `self`: the node's own entry in its gossip.
  virtual net::awaitable<Result<void>> check(LocalNode node, const api::GossipMember& self,
                                             const OperationRecord& record,
                                             nlohmann::json& memory) = 0;
  /// Works on the files of the stopped server; nothing of it is left when it is destroyed.
  virtual Result<std::shared_ptr<MeteredJob>> make_job(LocalNode node,
                                                       const OperationRecord& record) = 0;
  /// What the job did, into `memory`; called where it ended without an error.
  virtual void keep_result(const MeteredJob& job, nlohmann::json& memory) = 0;
  /// A look at the server that is back and has caught up, before verify(); into `memory`. Errors:
  /// kUnavailable (not yet: it is called again), others end the operation.
  virtual net::awaitable<Result<void>> look_after(LocalNode node, const OperationRecord& record,
                                                  nlohmann::json& memory);
  /// Whether the files show that it was done; the server is back and has caught up. Done, or
  /// nullopt: it was not.
  virtual std::optional<Observation> verify(const node::NodeInspection& inspection,
                                            const OperationRecord& record,
                                            const nlohmann::json& memory) = 0;
  /// Of an operation that was not done, and left no reason: the agent died in the middle.
  [[nodiscard]] virtual std::string_view left_in_the_middle() const {
    return "the agent ended in the middle";
  }
};

}  // namespace verger::agent
