#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "nodeagent/http/task_group.h"
#include "nodeagent/http/timers.h"
#include "nodeagent/node/inspection.h"
#include "nodeagent/node/job_runner.h"

namespace verger::agent {

/// Counts, from time to time and gently, the streams that the node's existence filter lacks: some
/// minutes after each start of the server, and then once a period. One executor.
class LostStreamsWatch {
 public:
  /// All outlive it.
  struct Environment {
    node::JobRunner& jobs;
    Clock& clock;
    http::Timers& timers;
    FileSystem& files;
    Log& log;
  };
  explicit LostStreamsWatch(Environment environment);
  /// `inspection` gives nullptr while the node is stopped. A period of 0: it never counts.
  void start(http::TaskGroup& tasks, std::chrono::milliseconds period,
             std::function<node::NodeInspection*()> inspection);
  void stop();
  /// The filter was made anew: what was counted is not so any longer, and is counted again some
  /// minutes later.
  void forget();
  /// -1: not counted yet.
  [[nodiscard]] std::int64_t count() const;

 private:
  struct State;
  static net::awaitable<void> watch(Environment environment, std::chrono::milliseconds period,
                                    std::shared_ptr<State> state);
  Environment environment_;
  std::shared_ptr<State> state_;
};

}  // namespace verger::agent
