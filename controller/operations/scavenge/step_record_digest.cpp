#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/operations/scavenge/digest_work.h"
#include "controller/operations/scavenge/scavenge_support.h"
#include "controller/operations/scavenge/step_kinds.h"

namespace verger::controller::scavenge {
namespace {

using nlohmann::json;
using steps::done;
using steps::not_needed;
using steps::ready;
using steps::wait;

class RecordDigestStep final : public NodeDigestStep {
 public:
  [[nodiscard]] std::string_view name() const override { return "record_digest"; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto point = shared_point(context);
    if (point < 0) {
      co_return not_needed(
          {{"recorded", false}, {"reason", "the number of the shared point was not seen"}});
    }
    const auto* node = context.node();
    if (node == nullptr || !node->agent) {
      co_return wait(fmt::format("the agent of {} does not answer", context.step.node));
    }
    const auto& facts = *node->agent;
    const bool begun = (facts.last_finished && facts.last_finished->number >= point) ||
                       (facts.unfinished && facts.unfinished->point.number >= point);
    if (begun) {
      co_return not_needed(
          {{"recorded", false}, {"reason", "the node was scavenged to the point before"}});
    }
    co_return ready({{"point", point}, {"readable", true}});
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto point = context.state.memo->value("point", -1LL);
    const auto node = context.step.node;
    auto look = co_await look_at_digest(context, node, context.state.operation);
    if (!look.digest) {
      co_return std::move(look.verdict);
    }
    const auto& seen = *look.digest;
    auto out = done({{"recorded", true},
                     {"point", point},
                     {"logical", seen.logical},
                     {"readable", seen.readable},
                     {"records", seen.records},
                     {"readable_events", seen.readable_events}});
    out.values[kDigestBefore] =
        json{{"node", context.step.node}, {"readable", seen.readable}}.dump();
    co_return out;
  }
};

}  // namespace

std::unique_ptr<StepKind> make_record_digest_step() { return std::make_unique<RecordDigestStep>(); }

}  // namespace verger::controller::scavenge
