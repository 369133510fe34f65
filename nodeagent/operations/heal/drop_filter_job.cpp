#include "nodeagent/operations/heal/drop_filter_job.h"

#include <memory>
#include <string>

#include "engine/verify/lost_streams_job.h"

namespace verger::agent {

Result<bool> heals_filter(const OperationRecord& record) {
  return flag_of(record, kHealFilterParameter);
}

Result<StepOutcome> DropFilterJob::step(Budget /*budget*/) {
  VERGER_RETURN_IF_ERROR(verify::drop_existence_checkpoint(server_.machine().files,
                                                           server_.place().index_directory()));
  return StepOutcome{.kind = StepOutcome::Kind::kDone};
}

net::awaitable<void> drop_filter_if_asked(LocalNode node, const OperationRecord& record) {
  if (!heals_filter(record).value_or(false)) {
    co_return;
  }
  const auto dropped = co_await node.offline->run(std::make_shared<DropFilterJob>(*node.offline),
                                                  std::make_shared<node::StopFlag>());
  if (dropped) {
    node.log.info("the server makes its existence filter anew when it starts");
  } else {
    node.log.warning("the existence filter was not healed", {{"reason", dropped.error().message}});
  }
}

}  // namespace verger::agent
