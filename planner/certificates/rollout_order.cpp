#include "planner/certificates/rollout_order.h"

#include <algorithm>

#include "planner/certificates/certificate_steps.h"

namespace verger::planner::detail {
namespace {

namespace step_names = certificate_steps;

struct UsualDuration {
  std::string_view kind;
  DurationRange takes;
};

/// Until a cluster has a history of its own.
constexpr UsualDuration kUsual[] = {
    {step_names::kObtain, {2'000, 60'000}}, {step_names::kCheck, {500, 10'000}},
    {step_names::kStage, {200, 10'000}},    {step_names::kSwitch, {500, 15'000}},
    {step_names::kProve, {500, 15'000}},
};

/// A step took so long before; what is usual is its least upper bound, so that one quick run makes
/// no window look long enough.
DurationRange widened(DurationRange usual, std::int64_t past_ms) {
  return {std::min(usual.low_ms, past_ms), std::max(usual.high_ms, 2 * past_ms)};
}

}  // namespace

RolloutOrder::RolloutOrder(const ClusterSnapshot& seen, const Policy& of, const History& past,
                           std::optional<CertificateFacts> found)
    : snapshot(seen),
      policy(of),
      wanted(certificates_of(of)),
      history(past),
      facts(std::move(found)) {
  const auto* leader = snapshot.leader();
  for (const bool replicas : {false, true}) {
    for (const auto& node : snapshot.nodes) {
      if (&node != leader && node.read_only_replica == replicas) {
        nodes.push_back(&node);
      }
    }
  }
  if (leader != nullptr) {
    nodes.push_back(leader);
  }
  for (const auto* node : nodes) {
    const auto* own = facts ? facts->find(node->name) : nullptr;
    if (own == nullptr || own->leaf_changes) {
      switched.push_back(node);
    }
  }
}

DurationRange RolloutOrder::expected(std::string_view kind, std::string_view node) const {
  const auto* usual = std::ranges::find(kUsual, kind, &UsualDuration::kind);
  auto out = usual == std::end(kUsual) ? DurationRange{} : usual->takes;
  for (const auto& past : history.durations) {
    if (past.kind == kind && past.node == node) {
      out = widened(out, past.duration_ms);
    }
  }
  return out;
}

std::int64_t RolloutOrder::needed_window_ms() const {
  auto needed = expected(step_names::kProve, "").high_ms + kRestoreMs;
  for (const auto* node : switched) {
    needed += expected(step_names::kSwitch, node->name).high_ms;
  }
  return needed;
}

std::int64_t RolloutOrder::begin_within_ms(const NodeSnapshot& node) const {
  auto after = expected(step_names::kProve, "").high_ms + kRestoreMs;
  for (auto each = switched.rbegin(); each != switched.rend(); ++each) {
    after += expected(step_names::kSwitch, (*each)->name).high_ms;
    if (*each == &node) {
      break;
    }
  }
  return std::max<std::int64_t>(wanted.window_ms - after, 0);
}

std::vector<Gate> RolloutOrder::first_gates() const {
  // Not the gate "certificates": those that end soon are what is to be changed.
  std::vector<Gate> out{{"cluster-identity", 0}, {"agents-answer", 0},
                        {"voters-alive", 0},     {"replicas-alive", 0},
                        {"one-leader", 0},       {"lag-below", policy.gates.lag_limit_bytes},
                        {"lag-falling", 0},      {"clocks", policy.gates.clock_skew_limit_ms},
                        {"no-other-work", 0}};
  if (!policy.gates.queries.empty()) {
    out.push_back({"queries", 0});
  }
  out.push_back({"leader-settled", policy.limits.election_settle_ms});
  out.push_back({"maintenance-window", 0});
  return out;
}

std::vector<Gate> RolloutOrder::later_gates() const {
  return {{"cluster-identity", 0},
          {"agents-answer", 0},
          {"voters-alive", 0},
          {"replicas-alive", 0},
          {"one-leader", 0}};
}

std::int32_t RolloutOrder::margin(const NodeSnapshot& node) const {
  const auto voters = snapshot.voters();
  const auto others = voters - (node.read_only_replica ? 0U : 1U);
  return static_cast<std::int32_t>(others) - static_cast<std::int32_t>(voters / 2 + 1);
}

}  // namespace verger::planner::detail
