#include "controller/operations/redaction/agent_work.h"

#include <string>

namespace verger::controller::redactions {

using nlohmann::json;
using steps::OperationNews;
using steps::verdict;

net::awaitable<Verdict> AgentWork::observe(StepContext context) {
  const auto operation = context.state.operation;
  const auto news = co_await steps::ask_agent(context, operation);
  switch (news.kind) {
    case OperationNews::Kind::kUnderWay:
      co_return steps::running(news.progress.empty() ? json{{"phase", without_progress()}}
                                                     : news.progress);
    case OperationNews::Kind::kUnknown:
      co_return verdict(Verdict::Kind::kUnknown, news.reason);
    case OperationNews::Kind::kNotArrived:
      co_return verdict(Verdict::Kind::kNotArrived, "the agent never got it");
    case OperationNews::Kind::kFailed:
      if (news.code == "stopped") {
        co_return verdict(Verdict::Kind::kStopped,
                          context.state.interrupting ? "stopped-by-us" : "stopped-by-someone",
                          std::string(where_it_stopped()));
      }
      co_return judge_failure(context, news);
    case OperationNews::Kind::kDone:
      break;
  }
  co_return judge_done(context, news.result);
}

net::awaitable<void> AgentWork::interrupt(StepContext context) {
  const auto peers = context.peers;
  const auto node = context.step.node;
  const auto operation = context.state.operation;
  // Of a run that ends here nothing searches later: what the agent has noted of the texts goes.
  const bool keep = context.interrupt != Interrupt::kCancel;
  static_cast<void>(co_await peers->cancel_operation(node, operation, keep));
}

Verdict AgentWork::judge_failure(const StepContext& /*context*/, const OperationNews& news) const {
  return steps::judge_failed(news);
}

}  // namespace verger::controller::redactions
