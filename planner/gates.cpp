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

using Check = void (*)(const detail::Look&, detail::States&);
constexpr std::pair<std::string_view, Check> kChecks[] = {
    {"right-cluster", detail::right_cluster},
    {"voters-alive", detail::voters_alive},
    {"one-leader", detail::one_leader},
    {"quorum-margin", detail::quorum_margin},
    {"lag-below", detail::lag_below},
    {"lag-falling", detail::lag_falling},
    {"nobody-scavenges", detail::nobody_scavenges},
    {"others-idle", detail::others_idle},
    {"idle", detail::idle},
    {"auto-scavenge-off", detail::auto_scavenge_off},
    {"disk", detail::disk},
    {"disk-reserve", detail::disk_reserve},
    {"agents-answer", detail::agents_answer},
    {"no-other-work", detail::no_other_work},
    {"index-idle", detail::index_idle},
    {"leader-settled", detail::leader_settled},
    {"clocks", detail::clocks},
    {"certificates", detail::certificates},
    {"queries", detail::queries},
    {"hours", detail::hours},
    {"not-leader", detail::not_leader},
};

/// What is wrong by itself is alerted within minutes; what usually ends by itself,
/// once it has lasted unusually long.
constexpr std::pair<std::string_view, std::int64_t> kAlertMinutes[] = {
    {"right-cluster", 5},
    {"voters-alive", 5},
    {"one-leader", 5},
    {"quorum-margin", 5},
    {"lag-below", 30},
    {"lag-falling", 30},
    {"nobody-scavenges", 60},
    {"others-idle", 60},
    {"idle", 60},
    {"auto-scavenge-off", 5},
    {"disk", 5},
    {"disk-reserve", 5},
    {"agents-answer", 5},
    {"no-other-work", 60},
    {"index-idle", 60},
    {"leader-settled", 15},
    {"clocks", 5},
    {"certificates", 5},
    {"queries", 30},
    {"does-not-fit", 24 * 60},
};
constexpr std::int64_t kOtherAlertMinutes = 15;

}  // namespace

std::int64_t alert_after_ms(std::string_view gate, const RunLimits& limits) {
  if (limits.gate_deadline_ms > 0) {
    return limits.gate_deadline_ms;
  }
  const auto name = gate.substr(0, gate.find(':'));  // "queries:write-latency"
  const auto* own =
      std::ranges::find(kAlertMinutes, name, &std::pair<std::string_view, std::int64_t>::first);
  return (own == std::end(kAlertMinutes) ? kOtherAlertMinutes : own->second) * 60'000;
}

std::vector<GateState> evaluate(const Gate& gate, const ClusterSnapshot& snapshot,
                                std::string_view node, std::int64_t lasts_ms,
                                std::int64_t threads) {
  return evaluate(gate, snapshot, snapshot.find(node), lasts_ms, threads);
}

std::vector<GateState> evaluate(const Gate& gate, const ClusterSnapshot& snapshot,
                                const NodeSnapshot* node, std::int64_t lasts_ms,
                                std::int64_t threads) {
  detail::States out;
  const auto* check =
      std::ranges::find(kChecks, gate.name, &std::pair<std::string_view, Check>::first);
  if (check == std::end(kChecks)) {
    out.push_back(detail::closed(gate.name, "unknown-gate", "",
                                 fmt::format("unknown gate {}", gate.name),
                                 "use a controller that knows it"));
    return out;
  }
  check->second({gate, snapshot, node, lasts_ms, threads}, out);
  if (out.empty()) {
    out.push_back(detail::closed(gate.name, "", "", "", ""));
    out.back().verdict = GateVerdict::kOpen;
  }
  std::ranges::sort(out, {}, [](const GateState& s) { return std::tie(s.node, s.code, s.reason); });
  return out;
}

}  // namespace verger::planner
