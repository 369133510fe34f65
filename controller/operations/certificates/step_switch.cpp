#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/cluster/gather.h"
#include "controller/operations/certificates/change_support.h"
#include "controller/operations/certificates/nodes_seen.h"
#include "controller/operations/certificates/step_kinds.h"
#include "engine/base/clock.h"
#include "planner/certificates/certificates_policy.h"

namespace verger::controller::certificate_change {
namespace {

using api::CertificatePhase;
using nlohmann::json;
using std::chrono::milliseconds;
using steps::act_through_agent;
using steps::ask_agent;
using steps::done;
using steps::int_parameter;
using steps::OperationNews;
using steps::parsed_or_empty;
using steps::ready;
using steps::running;
using steps::text_parameter;
using steps::verdict;

/// A node's agent has shown the new leaf in a handshake of its own: vergerd's shows the same, or
/// does not reach the node.
constexpr milliseconds kServedGrace{10'000};

struct PhaseOfNode {
  std::string node{};
  bool known = false;     ///< its agent answered
  bool switched = false;  ///< its files are not those before the phase, or it is at them
};

/// How far each node is with a phase of this change.
net::awaitable<PhaseOfNode> look_at_phase(std::shared_ptr<Peers> peers, std::string node,
                                          std::string change, CertificatePhase phase) {
  PhaseOfNode out{.node = node};
  const auto seen = co_await peers->certificates(std::move(node));
  if (!seen) {
    co_return out;
  }
  out.known = true;
  if (seen->change && seen->change->change == change) {
    out.switched = std::ranges::any_of(seen->change->phases, [phase](const auto& each) {
      return each.phase == phase && each.files > 0 &&
             (each.state == "switching" || each.state == "switched" || each.state == "restoring");
    });
  }
  co_return out;
}

class SwitchStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kSwitch; }
  [[nodiscard]] bool can_undo() const override { return true; }

  [[nodiscard]] std::string too_late(const StepContext& context) const override {
    const auto since = since_window_opened(context);
    const milliseconds within(int_parameter(context.step, "beginWithinMs", 0));
    if (phase_of(context) != CertificatePhase::kLeaf || !since || within.count() <= 0 ||
        *since <= within) {
      return {};
    }
    return fmt::format(
        "the first certificate was switched {} s ago: the others can no longer follow within the "
        "window of {} s",
        since->count() / 1'000, int_parameter(context.step, "windowMs", 0) / 1'000);
  }

  net::awaitable<Readiness> prepare(StepContext context) override {
    auto out = ready(*context.state.memo);
    if (phase_of(context) == CertificatePhase::kLeaf && !window_opened(context.values)) {
      out.values[std::string(names::kWindowValue)] =
          json{{"opened_at", format_ticks(context.now)}}.dump();
    }
    co_return out;
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    api::CertificateSwitch parameters{.change = context.run, .phase = phase_of(context)};
    if (const auto reload = api::parse_reload_by(text_parameter(context.step, "reload"))) {
      parameters.reload = *reload;
    }
    co_return co_await act_through_agent(context, std::string(names::kSwitch),
                                         parameters_of(parameters));
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto operation = context.state.operation;
    const auto news = co_await ask_agent(context, operation);
    if (auto open = unless_done(news, /*may_repeat=*/false)) {
      const bool ends = open->kind != Verdict::Kind::kRunning &&
                        open->kind != Verdict::Kind::kUnknown &&
                        open->kind != Verdict::Kind::kNotArrived;
      if (auto why = ends ? std::string() : window_missed(context); !why.empty()) {
        co_return verdict(Verdict::Kind::kFailed, "window",
                          open->reason.empty() ? why : fmt::format("{}; {}", why, open->reason));
      }
      co_return *std::move(open);
    }
    const auto switched = api::parse_certificate_switched(news.result_text);
    if (!switched) {
      co_return verdict(Verdict::Kind::kUnknown, switched.error().message);
    }
    if (phase_of(context) == CertificatePhase::kLeaf) {
      const auto wanted = checked(context).serial;
      if (const auto other = co_await not_served(context, wanted); !other.empty()) {
        co_return wait_for_handshake(context, other);
      }
    }
    co_return done({{"phase", api::to_string(switched->phase)},
                    {"files", switched->files},
                    {"serial", switched->serial},
                    {"serial_before", switched->serial_before},
                    {"proven", switched->proven},
                    {"not_proven", switched->not_proven}});
  }

  net::awaitable<ActAnswer> undo(StepContext context) override {
    if (auto why = co_await keeps_back(context); !why.empty()) {
      co_return ActAnswer{ActAnswer::Kind::kRefused, std::move(why)};
    }
    co_return co_await act_through_agent(
        context, "certificate_restore",
        parameters_of(api::CertificateRestore{.change = context.run, .phase = phase_of(context)}));
  }

  net::awaitable<Verdict> observe_undo(StepContext context) override {
    const auto operation = context.state.undo_operation;
    const auto news = co_await ask_agent(context, operation);
    switch (news.kind) {
      case OperationNews::Kind::kNotArrived:
        co_return verdict(Verdict::Kind::kNotHappened, "the agent never got it");
      case OperationNews::Kind::kFailed:
        co_return verdict(Verdict::Kind::kNotHappened,
                          fmt::format("{}: {}", news.code, news.reason));
      case OperationNews::Kind::kUnderWay:
        co_return verdict(Verdict::Kind::kRunning, "its former files are being restored");
      case OperationNews::Kind::kUnknown:
        co_return verdict(Verdict::Kind::kRunning, news.reason);
      case OperationNews::Kind::kDone:
        break;
    }
    if (phase_of(context) == CertificatePhase::kLeaf) {
      if (auto other = co_await not_served(context, checked(context).serial_before);
          !other.empty()) {
        co_return verdict(Verdict::Kind::kRunning, std::move(other));
      }
    }
    co_return done(json::object());
  }

  [[nodiscard]] std::string undo_overdue(const StepContext& context) const override {
    const auto since = since_window_opened(context);
    const auto window = planner::certificates_of(context.policy).window_ms;
    return since && since->count() > window
               ? fmt::format("the window of {} s is over", window / 1'000)
               : std::string();
  }

  [[nodiscard]] std::string undo_command(const StepContext& context) const override {
    const auto found = context.values.find(restore_value(context.step.node));
    if (found == context.values.end()) {
      return {};
    }
    const auto phases = parsed_or_empty(found->second);
    const auto commands = phases.value(text_parameter(context.step, "phase"), json::array());
    std::vector<std::string> texts;
    for (const auto& each : commands) {
      if (each.is_string()) {
        texts.push_back(each.get<std::string>());
      }
    }
    return texts.empty() ? std::string()
                         : fmt::format("on {}: {}", context.step.node, fmt::join(texts, " && "));
  }

 private:
  static CertificatePhase phase_of(const StepContext& context) {
    return api::parse_certificate_phase(text_parameter(context.step, "phase"))
        .value_or(CertificatePhase::kLeaf);
  }

  static CheckedNode checked(const StepContext& context) {
    const auto nodes = checked_nodes(context.values);
    const auto found = nodes.find(context.step.node);
    return found == nodes.end() ? CheckedNode() : found->second;
  }

  /// A step that is not seen to end gets half of the time that is kept for proof and way back.
  static std::string window_missed(const StepContext& context) {
    const auto since = since_window_opened(context);
    const milliseconds within(int_parameter(context.step, "beginWithinMs", 0));
    const milliseconds window(int_parameter(context.step, "windowMs", 0));
    if (phase_of(context) != CertificatePhase::kLeaf || !since || window.count() <= 0 ||
        *since < within + (window - within) / 2) {
      return {};
    }
    return fmt::format(
        "{} s after the first switch, of a window of {} s, it is not seen to have followed",
        since->count() / 1'000, window.count() / 1'000);
  }

  static Verdict wait_for_handshake(const StepContext& context, const std::string& other) {
    const auto noted = context.state.memo->value("done_at", std::string());
    const auto since = parse_ticks(noted);
    if (since &&
        context.now.value() - since->value() > kServedGrace.count() * kTicksPerMillisecond) {
      return verdict(Verdict::Kind::kFailed, "not-served", other);
    }
    auto out = running({{"phase", other}});
    if (!since) {
      out.memo = json{{"done_at", format_ticks(context.now)}};
    }
    return out;
  }

  /// Empty: a new connection of vergerd's shows that certificate, or any where none is known.
  static net::awaitable<std::string> not_served(StepContext context, std::string wanted) {
    const auto serial = co_await served_serial(context.peers, context.step.node);
    if (!serial) {
      co_return serial.error().message;
    }
    co_return wanted.empty() || *serial == wanted
        ? std::string()
        : fmt::format("a new connection shows the certificate {}, not {}", *serial, wanted);
  }

  /// All nodes are undone side by side, so each looks at the others: a leaf comes back once all
  /// that can be reached trust the old roots again, and the new roots go once no node shows a leaf
  /// of them. Empty: nothing does.
  static net::awaitable<std::string> keeps_back(StepContext context) {
    const auto phase = phase_of(context);
    const bool leaf = phase == CertificatePhase::kLeaf;
    if (phase == CertificatePhase::kDrop || (leaf && !drops_old_roots(context.values))) {
      co_return std::string();
    }
    std::vector<net::awaitable<PhaseOfNode>> looks;
    looks.reserve(context.cluster.nodes.size());
    for (const auto& node : context.cluster.nodes) {
      looks.push_back(look_at_phase(context.peers, node.name, context.run,
                                    leaf ? CertificatePhase::kDrop : CertificatePhase::kLeaf));
    }
    for (const auto& each : co_await gather(std::move(looks))) {
      if (leaf && each.switched) {
        co_return fmt::format("{} does not trust the former roots yet", each.node);
      }
      if (!leaf && (each.switched || !each.known)) {
        co_return each.known
            ? fmt::format("{} still shows its new certificate", each.node)
            : fmt::format("it keeps both roots: whether {} shows its new certificate is not known",
                          each.node);
      }
    }
    co_return std::string();
  }
};

}  // namespace

std::unique_ptr<StepKind> make_switch_step() { return std::make_unique<SwitchStep>(); }

}  // namespace verger::controller::certificate_change
