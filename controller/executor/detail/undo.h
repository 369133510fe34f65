#pragma once

#include <memory>
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

/// Backwards: each node by itself, its last step first. A node that cannot be reached does not
/// hold up the others.
class Undo final : public StageUndo, public std::enable_shared_from_this<Undo> {
 public:
  explicit Undo(std::shared_ptr<RunContext> run) : run_(run), permits_(run) {}
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;

  net::awaitable<void> undo(const planner::Stage& stage, std::string_view why) override;

 private:
  using Steps = std::vector<const planner::Step*>;
  static net::awaitable<bool> undo_node(std::shared_ptr<Undo> self, const planner::Stage* stage,
                                        Steps steps);
  net::awaitable<void> undo_step(const planner::Stage& stage, const planner::Step& step);
  /// The stage is rolled back because of its hours, and they are closed still.
  [[nodiscard]] bool waits_for_hours(const planner::Stage& stage, const planner::Step& step) const;

  std::shared_ptr<RunContext> run_;
  Permits permits_;
};

}  // namespace verger::controller::detail
