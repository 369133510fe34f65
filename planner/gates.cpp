#include "planner/gates.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <tuple>

#include "planner/detail/gate_checks.h"

namespace verger::planner {
namespace detail {

GateState closed(std::string_view gate, std::string code, std::string node, std::string reason,
                 std::string hint) {
  return GateState{.verdict = GateVerdict::kClosed,
                   .gate = std::string(gate),
                   .code = std::move(code),
                   .node = std::move(node),
                   .reason = std::move(reason),
                   .hint = std::move(hint),
                   .value = {},
                   .limit = {}};
}

GateState not_seen(std::string_view gate, std::string node, std::string reason) {
  auto state = closed(gate, "not-seen", std::move(node), std::move(reason), "");
  state.verdict = GateVerdict::kOpen;
  state.value = "not seen";
  return state;
}

GateState measured(GateState state, std::string value, std::string limit) {
  state.value = std::move(value);
  state.limit = std::move(limit);
  return state;
}

GateState opened(const Look& look, std::string value, std::string limit, std::string node) {
  auto state = closed(look.gate.name, "", std::move(node), "", "");
  state.verdict = GateVerdict::kOpen;
  return measured(std::move(state), std::move(value), std::move(limit));
}

/// major * 100 + minor of "24.10.3"; nullopt for anything else.
std::optional<int> version_number(std::string_view text) {
  int major = 0;
  int minor = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') {
    return std::nullopt;
  }
  if (std::from_chars(first.ptr + 1, end, minor).ec != std::errc()) {
    return std::nullopt;
  }
  return major * 100 + minor;
}

}  // namespace detail

namespace {

/// A step that does not fit into what is left of its window may fit into the next day's.
constexpr std::string_view kDoesNotFit = "does-not-fit";
constexpr std::int64_t kDoesNotFitAlertMs = std::int64_t{24} * 3'600'000;

detail::States states_of(const Gate& gate, const detail::Look& look) {
  detail::States out;
  const auto* entry = find_gate(gate.name);
  if (entry == nullptr) {
    out.push_back(detail::closed(gate.name, "unknown-gate", "",
                                 fmt::format("unknown gate {}", gate.name),
                                 "use a controller that knows it"));
    return out;
  }
  entry->check(look, out);
  if (out.empty()) {
    out.push_back(detail::closed(gate.name, "", "", "", ""));
    out.back().verdict = GateVerdict::kOpen;
  }
  std::ranges::sort(out, {}, [](const GateState& s) { return std::tie(s.node, s.code, s.reason); });
  return out;
}

}  // namespace

std::int64_t alert_after_ms(std::string_view gate, const RunLimits& limits) {
  const auto* entry = find_gate(gate);
  const auto severity = entry == nullptr ? GateSeverity::kUnsettled : entry->severity;
  if (severity == GateSeverity::kSchedule) {
    return 0;
  }
  if (limits.gate_deadline_ms > 0) {
    return limits.gate_deadline_ms;
  }
  return gate == kDoesNotFit ? kDoesNotFitAlertMs : alert_after_ms(severity);
}

std::vector<GateState> evaluate(const Gate& gate, const ClusterSnapshot& snapshot,
                                std::string_view node, std::int64_t lasts_ms,
                                std::int64_t threads) {
  return evaluate(gate, snapshot, snapshot.find(node), lasts_ms, threads);
}

std::vector<GateState> evaluate(const Gate& gate, const ClusterSnapshot& snapshot,
                                const NodeSnapshot* node, std::int64_t lasts_ms,
                                std::int64_t threads) {
  return states_of(gate, {gate, snapshot, node, lasts_ms, threads, /*values=*/true});
}

std::vector<GateState> evaluate_causes(const Gate& gate, const ClusterSnapshot& snapshot,
                                       const NodeSnapshot* node, std::int64_t lasts_ms,
                                       std::int64_t threads) {
  return states_of(gate, {gate, snapshot, node, lasts_ms, threads, /*values=*/false});
}

}  // namespace verger::planner
