#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>

#include "controller/executor/other_steps.h"
#include "controller/executor/stopped_server.h"
#include "controller/operations/resize/resize_support.h"
#include "controller/operations/resize/step_around.h"
#include "controller/operations/resize/step_kinds.h"
#include "controller/operations/restore/step_kinds.h"

namespace verger::controller::resize {
namespace {

/// Started again only where no other voter has the smaller size.
class LeaveStep final : public StepAround {
 public:
  LeaveStep() : StepAround(cluster_restore::make_stop_step()) {}
  [[nodiscard]] std::string_view name() const override { return names::kLeave; }
  [[nodiscard]] bool can_undo() const override { return true; }

  [[nodiscard]] std::string must_stay(const StepContext& context) const override {
    if (is_committed(context)) {
      return "the registration has changed: it stays stopped";
    }
    for (const auto& size : steps::list_parameter(context.step, "sizes")) {
      if (steps::was_given_up(context, size)) {
        return fmt::format(
            "{} was not undone, and it must not run beside a voter of the smaller "
            "size",
            size);
      }
    }
    return inner().must_stay(context);
  }

  net::awaitable<ActAnswer> undo(StepContext context) override {
    for (const auto& size : steps::list_parameter(context.step, "sizes")) {
      if (steps::stands(context, size)) {
        co_return ActAnswer{ActAnswer::Kind::kRefused, fmt::format("{} is undone first", size)};
      }
    }
    co_return co_await inner().undo(std::move(context));
  }

  [[nodiscard]] std::string undo_command(const StepContext& context) const override {
    const auto start = steps::start_server_command(context);
    return is_committed(context) || must_stay(context).empty()
               ? start
               : start + "  # once ClusterSize is the former one on all others";
  }
};

}  // namespace

std::unique_ptr<StepKind> make_leave_step() { return std::make_unique<LeaveStep>(); }

}  // namespace verger::controller::resize
