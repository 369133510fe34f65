#include "controller/operations/scavenge/digest_work.h"

#include <fmt/format.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "controller/operations/scavenge/scavenge_support.h"

namespace verger::controller::scavenge {
namespace {

using nlohmann::json;
using steps::int_parameter;
using steps::parsed_or_empty;
using steps::running;
using steps::verdict;

json progress_of(const StepContext& context, const std::string& name,
                 const api::DigestAnswer& answer) {
  json out{{"phase", fmt::format("digest of {}", name)}};
  const auto* node = context.snapshot.find(name);
  if (node != nullptr && node->agent && node->agent->chunk_size > 0 && answer.bytes_total > 0) {
    const auto size = node->agent->chunk_size;
    out["chunks_done"] = answer.bytes_done / size;
    out["chunks_total"] = (answer.bytes_total + size - 1) / size;
  }
  return out;
}

}  // namespace

net::awaitable<DigestLook> look_at_digest(StepContext context, std::string node, std::int64_t point,
                                          bool readable) {
  const auto peers = context.peers;
  DigestLook out;
  if (context.state.interrupting) {
    // A request for the digest would resume it.
    const auto stopped = co_await peers->stop_digest(node, point, /*keep=*/true);
    out.verdict = stopped ? verdict(Verdict::Kind::kStopped, "stopped-by-us", "stopped on request")
                          : verdict(Verdict::Kind::kUnknown,
                                    fmt::format("{}: {}", node, stopped.error().message));
    co_return out;
  }
  const client::DigestRequest request{
      .point = point,
      .readable = readable,
      .throttle_percent = int_parameter(context.step, "throttlePercent", 100)};
  auto answer = co_await peers->digest(node, request);
  if (!answer) {
    out.verdict =
        verdict(Verdict::Kind::kUnknown, fmt::format("{}: {}", node, answer.error().message));
  } else if (answer->digest) {
    out.digest = std::move(answer->digest);
  } else {
    out.verdict = running(progress_of(context, node, *answer));
  }
  co_return out;
}

net::awaitable<ActAnswer> NodeDigestStep::act(StepContext) {
  co_return ActAnswer{ActAnswer::Kind::kAccepted, "", "{}"};
}

net::awaitable<void> NodeDigestStep::interrupt(StepContext context) {
  const auto point = parsed_or_empty(context.state.memo).value("point", -1LL);
  const auto node = context.step.node;
  co_await stop_digest(std::move(context), node, point);
}

net::awaitable<void> stop_digest(StepContext context, std::string node, std::int64_t point) {
  const bool keep =
      context.interrupt != Interrupt::kCancel && context.interrupt != Interrupt::kSkip;
  const auto peers = context.peers;
  static_cast<void>(co_await peers->stop_digest(std::move(node), point, keep));
}

}  // namespace verger::controller::scavenge
