#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "nodeagent/api/scavenge_estimate.h"
#include "nodeagent/http/router.h"
#include "nodeagent/node/inspection.h"
#include "nodeagent/node/job_runner.h"

namespace verger::agent {

/// What the next scavenge of the node would remove, for those who choose how it is done. One count
/// at a time; what was counted is kept for some minutes. One executor.
class ScavengeEstimates {
 public:
  using Self = std::shared_ptr<ScavengeEstimates>;
  /// All outlive it, as AgentEnvironment says.
  struct Environment {
    FileSystem& files;
    Clock& clock;
    node::JobRunner& jobs;
    Log& log;
    std::function<node::NodeInspection*()> inspection;
    Path scratch;
  };
  struct Question {
    std::int32_t threshold = 0;
    std::int64_t enough = 0;
    friend bool operator==(const Question&, const Question&) = default;
  };
  explicit ScavengeEstimates(Environment environment) : environment_(std::move(environment)) {}

  /// Errors: kUnavailable: the node is stopped, scavenges, or another count is under way; those of
  /// EstimateRunningJob.
  static net::awaitable<Result<api::ScavengeEstimate>> ask(Self self, Question question);
  /// A count that is under way ends between two of its steps.
  void stop() { flag_->request(); }

 private:
  struct Known {
    Question question;
    std::string instance;
    Monotonic at{};
    Result<api::ScavengeEstimate> answer;
  };
  Environment environment_;
  std::optional<Known> known_;
  bool is_counting_ = false;
  std::shared_ptr<node::StopFlag> flag_ = std::make_shared<node::StopFlag>();
};

/// GET /agent/v1/scavenge/estimate (nodeagent/api/scavenge_estimate.h).
void add_estimate_routes(http::Router& router, ScavengeEstimates::Self estimates);

}  // namespace verger::agent
