#include "controller/operations/scavenge/digest_work.h"

#include <fmt/format.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "controller/operations/scavenge/scavenge_support.h"

namespace verger::controller::scavenge {
namespace {

using nlohmann::json;
using steps::act_through_agent;
using steps::ask_agent;
using steps::int_parameter;
using steps::OperationNews;
using steps::running;
using steps::verdict;

}  // namespace

json digest_parameters(const StepContext& context, std::int64_t point, bool readable) {
  return {{"point", point},
          {"readable", readable},
          {"throttlePercent", int_parameter(context.step, "throttlePercent", 100)}};
}

net::awaitable<DigestLook> look_at_digest(StepContext context, std::string node,
                                          std::string operation) {
  DigestLook out;
  const auto news = co_await ask_agent(context, node, std::move(operation));
  switch (news.kind) {
    case OperationNews::Kind::kUnderWay: {
      auto progress = news.progress;
      progress["phase"] =
          fmt::format("digest of {}: {}", node, progress.value("phase", std::string("begins")));
      out.verdict = running(progress);
      break;
    }
    case OperationNews::Kind::kUnknown:
      out.verdict = verdict(Verdict::Kind::kUnknown, fmt::format("{}: {}", node, news.reason));
      break;
    case OperationNews::Kind::kNotArrived:
      out.verdict = verdict(Verdict::Kind::kNotArrived, "the agent never got it");
      break;
    case OperationNews::Kind::kFailed:
      if (news.code == "stopped") {
        out.verdict = verdict(Verdict::Kind::kStopped,
                              context.state.interrupting ? "stopped-by-us" : "stopped-by-someone",
                              context.state.interrupting ? "stopped on request"
                                                         : fmt::format("{}: it was stopped", node));
      } else {
        out.verdict =
            verdict(Verdict::Kind::kStopped, news.code, fmt::format("{}: {}", node, news.reason));
      }
      break;
    case OperationNews::Kind::kDone: {
      auto digest = api::parse_digest(news.result_text);
      if (digest) {
        out.digest = *std::move(digest);
      } else {
        out.verdict =
            verdict(Verdict::Kind::kUnknown, fmt::format("{}: {}", node, digest.error().message));
      }
      break;
    }
  }
  co_return out;
}

net::awaitable<void> stop_digest(StepContext context, std::string node, std::string operation) {
  const bool keep =
      context.interrupt != Interrupt::kCancel && context.interrupt != Interrupt::kSkip;
  const auto peers = context.peers;
  static_cast<void>(co_await peers->cancel_operation(std::move(node), std::move(operation), keep));
}

net::awaitable<ActAnswer> NodeDigestStep::act(StepContext context) {
  const json memo = *context.state.memo;
  const auto parameters =
      digest_parameters(context, memo.value("point", -1LL), memo.value("readable", true));
  auto answer = co_await act_through_agent(context, "digest", parameters);
  if (answer.kind == ActAnswer::Kind::kRefused) {
    // Nothing was begun: the step waits, and says for what. It costs no attempt.
    answer.kind = ActAnswer::Kind::kNotSent;
    answer.reason += fmt::format(
        "; an agent of an older version computes no digests for this "
        "vergerd: upgrade verger-agent on {}",
        context.step.node);
  }
  co_return answer;
}

net::awaitable<void> NodeDigestStep::interrupt(StepContext context) {
  auto node = context.step.node;
  auto operation = context.state.operation;
  co_await stop_digest(std::move(context), std::move(node), std::move(operation));
}

}  // namespace verger::controller::scavenge
