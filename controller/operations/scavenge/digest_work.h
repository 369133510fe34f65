#pragma once

#include <optional>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "controller/executor/step_kind.h"
#include "nodeagent/api/agent.h"

/// What the steps share that have an agent compute a digest.
namespace verger::controller::scavenge {

struct DigestLook {
  std::optional<api::Digest> digest{};
  Verdict verdict{};  ///< where there is no digest: running, stopped as requested, or not known
};

/// Requests from the node's agent its digest up to the point: that begins it, and resumes it where
/// it was stopped. While the step is being interrupted it is stopped instead.
net::awaitable<DigestLook> look_at_digest(StepContext context, std::string node, std::int64_t point,
                                          bool readable);

/// A step whose work is one digest of its node: the look at it begins the agent's work, so there is
/// nothing to act on and nothing to undo. The step's memo has the "point".
class NodeDigestStep : public StepKind {
 public:
  net::awaitable<ActAnswer> act(StepContext context) final;
  [[nodiscard]] bool can_interrupt(const StepContext&, Interrupt) const final { return true; }
  net::awaitable<void> interrupt(StepContext context) final;
};

/// Stops it. It is kept where the run is to resume later.
net::awaitable<void> stop_digest(StepContext context, std::string node, std::int64_t point);

}  // namespace verger::controller::scavenge
