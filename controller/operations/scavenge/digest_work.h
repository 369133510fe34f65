#pragma once

#include <optional>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json_fwd.hpp>

#include "controller/executor/step_kind.h"
#include "nodeagent/api/agent.h"

/// What the steps share that have an agent compute a digest: an operation of kind "digest".
namespace verger::controller::scavenge {

struct DigestLook {
  std::optional<api::Digest> digest{};
  /// Where there is no digest: running, stopped, not known, or kNotArrived.
  Verdict verdict{};
};

/// Of the operation: {"point", "readable", "throttlePercent"}.
nlohmann::json digest_parameters(const StepContext& context, std::int64_t point, bool readable);
/// What has become of the operation with this id. One that failed is as one that was stopped: the
/// step returns to its gates, and tries again later.
net::awaitable<DigestLook> look_at_digest(StepContext context, std::string node,
                                          std::string operation);
/// Has the agent stop it. What it has read is kept where the run is to resume later.
net::awaitable<void> stop_digest(StepContext context, std::string node, std::string operation);

/// A step whose work is one digest of its node: it only reads, so there is nothing to undo. Its
/// memo has "point" and "readable".
class NodeDigestStep : public StepKind {
 public:
  net::awaitable<ActAnswer> act(StepContext context) final;
  [[nodiscard]] bool waits_for_agent(const StepContext&) const final { return true; }
  [[nodiscard]] bool can_interrupt(const StepContext&, Interrupt) const final { return true; }
  net::awaitable<void> interrupt(StepContext context) final;
};

}  // namespace verger::controller::scavenge
