#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/looking_step.h"
#include "controller/operations/resize/resize_support.h"
#include "controller/operations/resize/step_kinds.h"

namespace verger::controller::resize {
namespace {

using nlohmann::json;

class SettledStep final : public steps::LookingStep {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kSettled; }

 private:
  net::awaitable<Verdict> look(StepContext context) override {
    if (auto why = who_must_not_run(context); !why.empty()) {
      co_return steps::verdict(Verdict::Kind::kFailed, "runs-again", std::move(why));
    }
    if (auto why = not_settled(context); !why.empty()) {
      co_return steps::running({{"phase", why}});
    }
    if (context.snapshot.leader_stable_ms < steps::int_parameter(context.step, "holdMs", 5'000)) {
      co_return steps::running({{"phase", "the leader is not seen for long enough"}});
    }
    auto positions = json::object();
    for (const auto& node : steps::list_parameter(context.step, "nodes")) {
      positions[node] = context.snapshot.find(node)->writer_checkpoint;
    }
    const auto* leader = context.snapshot.leader();
    co_return steps::done({{"epoch", leader->epoch_number},
                           {"leader", leader->name},
                           {"positions", std::move(positions)}});
  }
};

}  // namespace

std::unique_ptr<StepKind> make_settled_step() { return std::make_unique<SettledStep>(); }

}  // namespace verger::controller::resize
