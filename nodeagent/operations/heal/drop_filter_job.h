#pragma once

#include <string_view>

#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/jobs/paced_job.h"
#include "nodeagent/operations/operation.h"

namespace verger::agent {

/// A parameter of every operation that stops its server and starts it again, true or false: the
/// server makes its existence filter anew when it starts.
inline constexpr std::string_view kHealFilterParameter = "healFilter";
/// Error: kInvalidArgument.
Result<bool> heals_filter(const OperationRecord& record);

/// Removes the checkpoint of the stopped server's existence filter: it makes the filter anew when
/// it starts, from its index, and finds every stream again. To be run once nothing else has the
/// database open: closing it may write the checkpoint.
class DropFilterJob final : public MeteredJob {
 public:
  /// `server` outlives the job.
  explicit DropFilterJob(external::OfflineServer& server) : server_(server) {}
  Result<StepOutcome> step(Budget budget) override;
  [[nodiscard]] JobProgress progress() const override {
    return {.phase = "removing the checkpoint of the existence filter"};
  }

 private:
  external::OfflineServer& server_;
};

/// Runs it where the operation is to heal the filter. What the operation itself has done stands
/// where that fails: it is logged, and the streams that are lost are still counted afterwards.
net::awaitable<void> drop_filter_if_asked(LocalNode node, const OperationRecord& record);

}  // namespace verger::agent
