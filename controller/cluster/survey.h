#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "controller/cluster/observer.h"
#include "controller/cluster/registry.h"
#include "engine/base/log.h"
#include "nodeagent/http/timers.h"

namespace verger::controller {

struct SurveyParts {
  net::any_io_executor executor;
  const Registry& registry;
  Observer& observer;
  http::Timers& timers;
  Log& log;
  std::chrono::milliseconds every;  ///< between two looks at one cluster
  /// Gets what each look showed; empty: nothing does.
  std::function<void(const planner::ClusterSnapshot&)> seen{};
};

/// Looks at each registered cluster now and then, one after the other, so that what is shown of all
/// of them needs no look of its own: Observer::last_seen(). One executor; the parts outlive it.
class Survey {
 public:
  explicit Survey(SurveyParts parts);
  ~Survey();
  void start();
  /// Waits for the looks under way, a few seconds at most.
  net::awaitable<void> stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace verger::controller
