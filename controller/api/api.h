#pragma once

#include "controller/cluster/observer.h"
#include "controller/executor/executor.h"
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
};

/// Answers /api/v1. All calls on the executor's thread.
class Api {
 public:
  explicit Api(ApiParts parts) : parts_(parts) {}
  /// May be called as often as wanted; the handler refers to this object.
  http::Handler handler();

 private:
  net::awaitable<http::Response> answer(http::Request request);
  net::awaitable<http::Response> clusters(http::Request request, http::Target target);
  net::awaitable<http::Response> add_cluster(std::string body);
  net::awaitable<http::Response> make_plan(std::string cluster, std::string body, std::string by);
  net::awaitable<http::Response> plans(http::Request request, http::Target target);
  net::awaitable<http::Response> runs(http::Request request, http::Target target);
  net::awaitable<http::Response> run_intent(std::string id, std::string intent, std::string body,
                                            std::string by);
  net::awaitable<http::Response> events(http::Request request, http::Target target);

  ApiParts parts_;
};

}  // namespace verger::controller
