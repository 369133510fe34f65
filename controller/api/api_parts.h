#pragma once

#include <functional>
#include <string>

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
  Network network;
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
  const CommitTimes* commits = nullptr;  ///< nullptr: not measured
  bool sends_mail = false;               ///< whether a notification may be a mail
  Notifier* notifier = nullptr;          ///< nullptr: no notifications are sent
  Retention* retention = nullptr;        ///< nullptr: the journal keeps everything
  std::string reached_at{};              ///< the API's URL as it is configured; empty: it is not
  /// The API's certificate is one of the agents' authority, with that root behind it.
  bool api_of_agents_authority = false;
};

/// The problem of what the executor refused for `cluster`: another controller has taken over, the
/// cluster is paused, or a run is active.
http::Response refusal_of(const ApiParts& parts, const Error& error, const std::string& cluster);

}  // namespace verger::controller
