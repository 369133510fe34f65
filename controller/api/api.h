#pragma once

#include <expected>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "controller/api/access.h"
#include "controller/api/retention.h"
#include "controller/cluster/agent_book.h"
#include "controller/cluster/observer.h"
#include "controller/executor/executor.h"
#include "controller/journal/timed_journal.h"
#include "controller/scheduler/admission.h"
#include "controller/scheduler/scheduler.h"
#include "nodeagent/http/message.h"

namespace verger::controller {

/// The parts the API speaks for; they outlive it and every answer under way.
struct ApiParts {
  Executor& executor;
  Registry& registry;
  Journal& journal;
  Observer& observer;
  http::Timers& timers;
  ControllerEpoch epoch;
  /// What a request for a plan does not say.
  planner::Policy policy;
  PolicyBook& book;
  Scheduler& scheduler;
  Clock& clock;
  Access& access;
  Log& log;
  /// Null: agents cannot enrol here.
  AgentBook* agents = nullptr;
  /// Whether a notification may run this program; empty: any.
  std::function<Result<void>(const std::string& program)> admit_command = {};
  /// See ExecutorOptions::shared_journal.
  bool shared_journal = false;
  const CommitTimes* commits = nullptr;               ///< nullptr: not measured
  const NotificationCounts* notifications = nullptr;  ///< nullptr: none are sent
  Retention* retention = nullptr;                     ///< nullptr: the journal keeps everything
};

/// Answers /api/v1. All calls on the executor's thread.
class Api {
 public:
  explicit Api(ApiParts parts) : parts_(parts) {}
  /// May be called as often as wanted; the handler refers to this object.
  http::Handler handler();

 private:
  /// Route, token, role; then dispatch(), on record where something may change.
  net::awaitable<http::Response> answer(http::Request request);
  /// The caller, if allowed; anonymous where no identity is needed. The error is the answer.
  [[nodiscard]] std::expected<Principal, http::Response> principal_of(const http::Request& request,
                                                                      const std::string& path,
                                                                      ApiRole needed) const;
  /// With audit, and once only for one Idempotency-Key. `route`: its operationId.
  net::awaitable<http::Response> answer_on_record(http::Request request, http::Target target,
                                                  Principal principal, std::string_view route);
  net::awaitable<http::Response> dispatch(http::Request request, http::Target target,
                                          Principal principal);
  net::awaitable<http::Response> clusters(http::Request request, http::Target target,
                                          std::string by);
  net::awaitable<http::Response> add_cluster(std::string body);
  // cluster_overviews.cpp
  /// With `look=true` also what the nodes report now.
  net::awaitable<http::Response> list_clusters(http::Target target);
  // cluster_update.cpp
  net::awaitable<http::Response> update_cluster(std::string name, std::string body);
  net::awaitable<http::Response> make_plan(std::string cluster, std::string body, std::string by);
  /// With what is known beside the plan: where its estimates are from, the cluster's last run, and
  /// what stands between the plan and its run.
  nlohmann::json plan_view(const StoredPlan& stored);
  /// Of each node of the plan the newest work of that sort that reported what it freed, however its
  /// run ended.
  [[nodiscard]] nlohmann::json freed_before(const planner::Plan& plan) const;
  /// The policy that waits for an operator to apply this plan; null: none does.
  [[nodiscard]] nlohmann::json awaiting_policy(const std::string& cluster,
                                               const std::string& plan) const;
  net::awaitable<http::Response> plans(http::Request request, http::Target target, std::string by);
  net::awaitable<http::Response> runs(http::Request request, http::Target target, std::string by);
  net::awaitable<http::Response> run_intent(std::string id, std::string intent, std::string body,
                                            std::string by);
  // policy_routes.cpp
  http::Response policies(const http::Request& request, const http::Target& target,
                          const std::string& by);
  http::Response policy_text(const std::string& body, std::string_view what);
  /// The notes of a policy that may be applied; else the refusal.
  [[nodiscard]] std::expected<nlohmann::json, http::Response> admitted(
      const SchedulePolicy& policy) const;
  http::Response policy_diff(const SchedulePolicy& policy);
  /// What binds a policy's runs on the clusters that it selects now.
  [[nodiscard]] std::vector<Binding> bindings_of(const SchedulePolicy& policy) const;
  http::Response schedule(const std::string& cluster, const http::Target& target);
  net::awaitable<http::Response> cluster_intent(std::string cluster, std::string intent,
                                                std::string body, std::string by);
  [[nodiscard]] nlohmann::json view(const StoredPolicy& stored) const;

  // agent_routes.cpp
  http::Response agents(const http::Request& request, const http::Target& target,
                        const std::string& by);
  http::Response create_agent_token(const std::string& body, const std::string& by);
  http::Response enrol_agent(const http::Request& request);

  // access_routes.cpp
  http::Response tokens(const http::Request& request, const http::Target& target,
                        const std::string& by);
  net::awaitable<http::Response> audit(http::Target target);
  net::awaitable<http::Response> verify_audit();
  /// The answer to the same request with the same key, or a refusal; nullopt: carry it out.
  std::optional<http::Response> known_answer(const http::Request& request,
                                             const std::string& stream);
  void keep_answer(const http::Request& request, std::string_view route, const std::string& stream,
                   const http::Response& response);

  // journal_routes.cpp
  net::awaitable<http::Response> journal(http::Request request, http::Target target,
                                         std::string by);

  net::awaitable<http::Response> events(http::Request request, http::Target target, ApiRole role);
  /// The problem of what the executor refused for `cluster`: another controller has taken over, the
  /// cluster is paused, or a run is active.
  [[nodiscard]] http::Response refusal_of(const Error& error, const std::string& cluster) const;

  ApiParts parts_;
  std::set<std::string> under_way_;  ///< streams of idempotency keys
};

}  // namespace verger::controller
