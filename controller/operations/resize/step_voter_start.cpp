#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>

#include "controller/operations/growth/step_kinds.h"
#include "controller/operations/resize/resize_support.h"
#include "controller/operations/resize/step_around.h"
#include "controller/operations/resize/step_kinds.h"

namespace verger::controller::resize {
namespace {

/// All members count to the larger size by now: where one of them is down, the new voters are what
/// makes a quorum, and stay until it is back.
class VoterStartStep final : public StepAround {
 public:
  VoterStartStep() : StepAround(growth::make_join_start_step()) {}
  [[nodiscard]] std::string_view name() const override { return names::kStart; }
  [[nodiscard]] bool can_undo() const override { return true; }

  net::awaitable<ActAnswer> undo(StepContext context) override {
    for (const auto& name : list_parameter(context.step, "nodes")) {
      const auto* node = context.snapshot.find(name);
      if (node == nullptr || !node->answered || !node->alive) {
        co_return ActAnswer{ActAnswer::Kind::kRefused,
                            fmt::format("{} does not answer: without it and {} there would be no "
                                        "quorum",
                                        name, context.step.node)};
      }
    }
    co_return co_await inner().undo(std::move(context));
  }
};

}  // namespace

std::unique_ptr<StepKind> make_voter_start_step() { return std::make_unique<VoterStartStep>(); }

}  // namespace verger::controller::resize
