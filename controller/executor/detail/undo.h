#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controller/executor/detail/permits.h"
#include "controller/executor/detail/run_context.h"
#include "controller/executor/detail/step_end.h"

namespace verger::controller::detail {

/// What a stage needs of the way back.
class StageUndo {
 public:
  virtual ~StageUndo() = default;
  /// Undoes what the stage did or may have done. `why`: failure, pause or hours.
  virtual net::awaitable<void> undo(const planner::Stage& stage, std::string_view why) = 0;
};

/// Backwards: all nodes at once, of each its last step first. Nothing about one node waits for
/// another one: no gate, no look, no permit, no deadline.
///
/// A step that still waits for its node's answer to a request keeps the undo of that node, and of
/// no other, from beginning: until that request's own deadline. What has begun of it since then is
/// undone by a further call.
///
/// A step is first brought to where it has ended or its node cannot tell (StepRunner::settle), and
/// what was requested and never answered is shut out at the node's agent. Then the undo is
/// requested again and again, until it is seen or the step's deadline has passed: the stage's undo
/// deadline, counted from when it was its turn, also across restarts of the controller.
class Undo final : public StageUndo, public std::enable_shared_from_this<Undo> {
 public:
  Undo(std::shared_ptr<RunContext> run, std::shared_ptr<StepRunner> steps)
      : run_(run), permits_(run), steps_(std::move(steps)) {}
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;

  net::awaitable<void> undo(const planner::Stage& stage, std::string_view why) override;

 private:
  using Steps = std::vector<const planner::Step*>;
  static net::awaitable<bool> undo_node(std::shared_ptr<Undo> self, const planner::Stage* stage,
                                        Steps steps);
  /// `begins`: when it was its turn.
  net::awaitable<void> undo_step(const planner::Stage& stage, const planner::Step& step,
                                 Ticks begins);
  /// The permit and the request. Error: it was not accepted, for this reason.
  net::awaitable<Result<void>> request(const planner::Step& step, StepContext context);
  /// Raises an alert where the kind says that it should have been undone by now.
  void warn_if_overdue(const planner::Step& step, const StepContext& context,
                       const std::string& problem);
  void give_up(const planner::Step& step, std::string reason, std::string command);
  [[nodiscard]] Monotonic deadline(const planner::Stage& stage, Ticks begins) const;
  /// The stage is rolled back because of its hours, and they are closed still.
  [[nodiscard]] bool waits_for_hours(const planner::Stage& stage, const planner::Step& step) const;

  std::shared_ptr<RunContext> run_;
  Permits permits_;
  std::shared_ptr<StepRunner> steps_;
};

}  // namespace verger::controller::detail
