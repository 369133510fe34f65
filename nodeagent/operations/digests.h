#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>

#include "nodeagent/api/agent.h"
#include "nodeagent/http/task_group.h"
#include "nodeagent/node/inspection.h"
#include "nodeagent/node/job_runner.h"

namespace verger::agent {

/// Digests of the node's log up to a scavenge point, computed one at a time and kept until the node
/// or its chunks change. One executor.
class Digests {
 public:
  Digests(node::JobRunner& jobs, http::TaskGroup& tasks) : jobs_(jobs), tasks_(tasks) {}

  /// The digest, nullopt while it is being computed (ask again), or why it cannot be had:
  /// kNotFound (no such point in this node's log), kRefused (another one is being computed), the
  /// job's own errors, once.
  Result<std::optional<api::Digest>> ask(node::NodeInspection& node, std::int64_t point);
  /// Ends what is being computed, between two of its steps.
  void stop();

 private:
  struct Work;
  static net::awaitable<void> compute(std::shared_ptr<Work> work, node::JobRunner& jobs);

  node::JobRunner& jobs_;
  http::TaskGroup& tasks_;
  std::shared_ptr<Work> work_;
};

}  // namespace verger::agent
