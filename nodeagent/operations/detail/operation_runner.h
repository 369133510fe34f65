#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "nodeagent/client/node_client.h"
#include "nodeagent/http/task_group.h"
#include "nodeagent/operations/agent.h"
#include "nodeagent/operations/digests.h"
#include "nodeagent/operations/jobs/job_control.h"
#include "nodeagent/operations/lost_streams_watch.h"
#include "nodeagent/operations/operation.h"
#include "nodeagent/operations/operation_journal.h"
#include "nodeagent/operations/permits.h"

namespace verger::agent {

class CertificateDesk;
class NotedTextStore;
class ServerConfigFile;

using RunningOperation = std::shared_ptr<OperationRecord>;

/// The life of operations: accepted, looked at a last time, acted on once, observed to their end,
/// each state in the journal before what follows from it. Its coroutines keep it alive; once it is
/// abandoned they neither use the environment nor look into the journal.
class OperationRunner : public std::enable_shared_from_this<OperationRunner> {
 public:
  OperationRunner(AgentOptions options, AgentEnvironment environment,
                  std::unique_ptr<OperationJournal> journal,
                  const std::shared_ptr<CertificateDesk>& desk,
                  const std::shared_ptr<ServerConfigFile>& config);

  /// Resumes what has not ended. What was only accepted was certainly not sent; the rest is
  /// looked at.
  void start();
  /// Agent::stop().
  net::awaitable<void> stop();
  /// As a crash; the journal is closed.
  void abandon();
  [[nodiscard]] bool gone() const { return gone_; }

  /// A known id is answered to any caller: it is a query, nothing is begun by it. Errors:
  /// kInvalidArgument (kind, parameters), kRefused (no permit, an older controller), kConflict (the
  /// id with other content), kUnavailable (stopping), the journal's.
  Result<OperationJournal::Accepted> submit(const api::OperationRequest& asked);
  /// A controller with this epoch has registered: what older ones requested and what has not acted
  /// yet ends as failed.
  void superseded_by(std::int64_t epoch);
  /// nullptr: it is not known or has ended.
  [[nodiscard]] RunningOperation find_running(const std::string& id) const;
  /// Requests its stop; with `keep`, what its job has in memory is kept for the next one. False: it
  /// cannot be stopped.
  net::awaitable<bool> cancel(RunningOperation record, bool keep);
  /// From now on, and over restarts. False: its kind cannot be throttled.
  bool throttle(const RunningOperation& record, api::Throttle throttle);
  /// With its progress and throttle.
  [[nodiscard]] api::OperationStatus status_of(const OperationRecord& record);
  /// Of all that have not ended, and the newest ended ones; results that are long are left out.
  Result<std::vector<api::OperationStatus>> overview();
  /// A controller has queried the operation.
  void touch(const OperationRecord& record);

  [[nodiscard]] OperationJournal& journal() { return *journal_; }
  [[nodiscard]] Permits& permits() { return permits_; }
  [[nodiscard]] Digests& digests() { return digests_; }
  [[nodiscard]] NotedTextStore& noted_texts() { return *noted_texts_; }
  [[nodiscard]] std::int64_t lost_streams() const { return lost_streams_.count(); }

 private:
  using Self = std::shared_ptr<OperationRunner>;

  void add_kind(std::unique_ptr<Operation> kind);
  LocalNode local_node();
  /// With the control of this operation.
  LocalNode local_node(RunningOperation record);
  void add_running(const RunningOperation& record);
  /// How gently an operation's job begins, as was requested. Error: kInvalidArgument.
  static Result<api::Throttle> first_throttle(const std::string& parameters_json);
  [[nodiscard]] Result<void> permitted_now(const api::OperationRequest& request) const;
  void resume(RunningOperation record);
  static net::awaitable<void> begin(Self self, RunningOperation record);
  /// Why it must not act, as the outcome of the operation.
  struct Hindrance {
    std::string code;
    std::string text;
  };
  static net::awaitable<std::optional<Hindrance>> hindrance(Self self, RunningOperation record);
  /// The same, of what may have changed while the node was looked at; at once, right before acting.
  [[nodiscard]] std::optional<Hindrance> hindrance_now(const OperationRecord& record) const;
  [[nodiscard]] Result<void> check_instance(const api::OperationRequest& request) const;
  static net::awaitable<void> carry_out(Self self, RunningOperation record);
  static net::awaitable<Result<void>> act(Self self, RunningOperation record);
  /// `stored`: the record on disk is as in memory.
  static net::awaitable<void> watch(Self self, RunningOperation record, bool stored);
  /// Why it cannot work on the files now; empty: it can, or does not.
  [[nodiscard]] std::string in_the_way(const OperationRecord& record) const;
  net::awaitable<Result<void>> last_look(RunningOperation record);
  bool store(const OperationRecord& record);
  bool store_outcome(const OperationRecord& record);
  static net::awaitable<void> store_later(Self self, RunningOperation record);
  void finish(const RunningOperation& record, api::OperationState state, std::string code,
              std::string text);

  AgentOptions options_;
  AgentEnvironment environment_;
  std::unique_ptr<OperationJournal> journal_;
  Permits permits_;
  http::TaskGroup tasks_;
  client::NodeClient client_;
  std::map<std::string, std::unique_ptr<Operation>> kinds_;
  Digests digests_;
  std::shared_ptr<NotedTextStore> noted_texts_;
  LostStreamsWatch lost_streams_;
  std::map<std::string, RunningOperation> running_;
  std::map<std::string, std::shared_ptr<JobControl>> controls_;  ///< of the running ones
  std::set<std::string> given_up_;  ///< running ones that were cancelled, with nothing to keep
  /// Operations within an act() that must return before the agent ends.
  std::set<RunningOperation> blocking_shutdown_;
  bool stopping_ = false;
  bool gone_ = false;
};

}  // namespace verger::agent
