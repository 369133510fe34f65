#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/looking_step.h"
#include "controller/operations/certificates/change_support.h"
#include "controller/operations/certificates/proof.h"
#include "controller/operations/certificates/step_kinds.h"
#include "engine/base/clock.h"

namespace verger::controller::certificate_change {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using steps::done;
using steps::running;
using steps::text_parameter;
using steps::verdict;

/// New connections that are refused now will not be accepted later; but a node may be busy, or in
/// the middle of an election.
constexpr milliseconds kProveWithin{60'000};

/// Only looks; there is nothing to undo.
class ProveStep final : public steps::LookingStep {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kProve; }

 private:
  net::awaitable<Verdict> look(StepContext context) override {
    const bool before = text_parameter(context.step, "phase") == names::kTrustPhase;
    std::map<std::string, std::string> serials;
    for (const auto& [node, checked] : checked_nodes(context.values)) {
      serials[node] = before ? checked.serial_before : checked.serial;
    }
    const auto proof = co_await prove_certificates(context.peers, std::move(serials));
    const auto since = since_window_opened(context);
    if (proof.holds()) {
      json result{{"phase", text_parameter(context.step, "phase")},
                  {"handshakes", proof.handshakes},
                  {"proven_at", format_ticks(context.now)},
                  {"seconds_from_first_switch", json()},
                  {"not_proven", proof.not_proven}};
      if (since) {
        result["seconds_from_first_switch"] = static_cast<double>(since->count()) / 1'000.0;
      }
      co_return done(result);
    }
    const auto left = time_left(context, since);
    if (left <= milliseconds(0)) {
      co_return verdict(Verdict::Kind::kFailed, "not-proven",
                        fmt::format("{}", fmt::join(proof.problems, "; ")));
    }
    co_return running({{"phase", fmt::format("not proven yet: {}", proof.problems.front())}});
  }

  /// Of the window, half of what is left when the step begins is kept for the way back.
  static milliseconds time_left(const StepContext& context,
                                const std::optional<milliseconds>& since) {
    auto limit = kProveWithin;
    const milliseconds window(steps::int_parameter(context.step, "windowMs", 0));
    if (since && window.count() > 0) {
      limit = std::min(limit, (window - (*since - context.in_state)) / 2);
    }
    return limit - context.in_state;
  }
};

}  // namespace

std::unique_ptr<StepKind> make_prove_step() { return std::make_unique<ProveStep>(); }

}  // namespace verger::controller::certificate_change
