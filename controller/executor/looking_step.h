#pragma once

#include "controller/executor/step_support.h"

namespace verger::controller::steps {

/// A step on the whole cluster that only looks: nothing is requested of a node, and there is
/// nothing to undo. A cancel or a skip ends it; a pause does not.
class LookingStep : public StepKind {
 public:
  [[nodiscard]] bool looks_at_all_nodes() const final { return true; }
  [[nodiscard]] bool can_interrupt(const StepContext&, Interrupt why) const final {
    return why == Interrupt::kCancel || why == Interrupt::kSkip;
  }
  net::awaitable<Readiness> prepare(StepContext) final { co_return steps::ready(); }
  net::awaitable<ActAnswer> act(StepContext) final {
    co_return ActAnswer{ActAnswer::Kind::kAccepted, ""};
  }
  net::awaitable<Verdict> observe(StepContext context) final {
    if (context.state.interrupting) {
      co_return steps::verdict(Verdict::Kind::kStopped, "stopped-by-us", "stopped on request");
    }
    co_return co_await look(std::move(context));
  }

 private:
  /// observe() of a step that is not to stop.
  virtual net::awaitable<Verdict> look(StepContext context) = 0;
};

}  // namespace verger::controller::steps
