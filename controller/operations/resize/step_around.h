#pragma once

#include <memory>
#include <utility>

#include "controller/executor/step_kind.h"

namespace verger::controller::resize {

/// Another kind under another name, of which a class derived from this changes something.
class StepAround : public StepKind {
 public:
  explicit StepAround(std::unique_ptr<StepKind> inner) : inner_(std::move(inner)) {}

  net::awaitable<Readiness> prepare(StepContext context) override {
    return inner_->prepare(std::move(context));
  }
  net::awaitable<ActAnswer> act(StepContext context) override {
    return inner_->act(std::move(context));
  }
  net::awaitable<Verdict> observe(StepContext context) override {
    return inner_->observe(std::move(context));
  }
  [[nodiscard]] bool looks_at_all_nodes() const override { return true; }
  [[nodiscard]] std::string too_late(const StepContext& context) const override {
    return inner_->too_late(context);
  }
  [[nodiscard]] bool can_interrupt(const StepContext& context, Interrupt why) const override {
    return inner_->can_interrupt(context, why);
  }
  net::awaitable<void> interrupt(StepContext context) override {
    return inner_->interrupt(std::move(context));
  }
  net::awaitable<ActAnswer> undo(StepContext context) override {
    return inner_->undo(std::move(context));
  }
  net::awaitable<Verdict> observe_undo(StepContext context) override {
    return inner_->observe_undo(std::move(context));
  }
  [[nodiscard]] std::string must_stay(const StepContext& context) const override {
    return inner_->must_stay(context);
  }
  [[nodiscard]] bool stops_server() const override { return inner_->stops_server(); }
  [[nodiscard]] std::string undo_overdue(const StepContext& context) const override {
    return inner_->undo_overdue(context);
  }
  [[nodiscard]] std::string undo_command(const StepContext& context) const override {
    return inner_->undo_command(context);
  }
  [[nodiscard]] bool restores(const planner::Step& step) const override {
    return inner_->restores(step);
  }
  [[nodiscard]] bool can_undo() const override { return inner_->can_undo(); }

 protected:
  [[nodiscard]] StepKind& inner() const { return *inner_; }

 private:
  std::unique_ptr<StepKind> inner_;
};

}  // namespace verger::controller::resize
