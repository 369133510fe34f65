#include "nodeagent/operations/jobs/beside_server_operation.h"

namespace verger::agent {
namespace {

constexpr std::chrono::milliseconds kServerLook{500};

}  // namespace

net::awaitable<Result<void>> BesideServerOperation::look(LocalNode node, OperationRecord& record) {
  auto* inspection = node.inspection();
  if (inspection == nullptr) {
    co_return Error{Errc::kUnavailable, "the server does not answer; this needs it running"};
  }
  co_return check(*inspection, record);
}

net::awaitable<Result<std::shared_ptr<MeteredJob>>> BesideServerOperation::prepare(
    LocalNode node, const OperationRecord& record) {
  const auto control = node.control;
  // After a restart of the agent its server may not have been seen yet.
  while (!control->stopping() && node.inspection() == nullptr) {
    control->report({.phase = "waiting for the server"});
    co_await node.timers.sleep_for(kServerLook);
  }
  if (control->stopping()) {
    co_return std::shared_ptr<MeteredJob>();
  }
  co_return make_job(node, *node.inspection(), record);
}

}  // namespace verger::agent
