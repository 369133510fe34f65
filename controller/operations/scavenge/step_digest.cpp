#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/operations/scavenge/digest_comparison.h"
#include "controller/operations/scavenge/digest_work.h"
#include "controller/operations/scavenge/scavenge_support.h"
#include "controller/operations/scavenge/step_kinds.h"

namespace verger::controller::scavenge {
namespace {

using nlohmann::json;
using steps::done;
using steps::not_needed;
using steps::ready;
using steps::text_parameter;

class DigestStep final : public NodeDigestStep {
 public:
  [[nodiscard]] std::string_view name() const override { return "digest"; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto point = shared_point(context);
    if (point < 0) {
      co_return not_needed(
          {{"computed", false}, {"reason", "the number of the shared point was not seen"}});
    }
    co_return ready({{"point", point}, {"readable", is_readable_wanted(context)}});
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const json memo = *context.state.memo;
    const auto point = memo.value("point", -1LL);
    const auto node = context.step.node;
    auto look = co_await look_at_digest(context, node, context.state.operation);
    if (!look.digest) {
      co_return std::move(look.verdict);
    }
    auto value = digest_value(*look.digest, point);
    auto out = done(value);
    out.values[digest_value_name(node)] = value.dump();
    co_return out;
  }

 private:
  static bool is_readable_wanted(const StepContext& context) {
    const auto wanted = text_parameter(context.step, "readable");
    return wanted == "always" ||
           (wanted == "if-recorded" && context.values.contains(kDigestBefore));
  }
};

}  // namespace

std::unique_ptr<StepKind> make_digest_step() { return std::make_unique<DigestStep>(); }

}  // namespace verger::controller::scavenge
