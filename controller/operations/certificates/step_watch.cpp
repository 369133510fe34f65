#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/looking_step.h"
#include "controller/operations/certificates/change_support.h"
#include "controller/operations/certificates/step_kinds.h"
#include "engine/base/clock.h"

namespace verger::controller::certificate_change {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using steps::done;
using steps::running;
using steps::verdict;

/// An election, a late answer: what lasts no longer is none of the certificates'.
constexpr milliseconds kTroubleMayLast{20'000};
/// A follower that is behind may catch up.
constexpr milliseconds kLagMayLast{60'000};

struct Trouble {
  std::string what{};  ///< empty: all is well
  milliseconds may_last{kTroubleMayLast};
};

Trouble trouble_of(const StepContext& context) {
  const auto& snapshot = context.snapshot;
  for (const auto& node : snapshot.nodes) {
    if (!node.answered || !node.alive) {
      return {fmt::format("{} is not alive{}{}", node.name, node.problem.empty() ? "" : ": ",
                          node.problem)};
    }
    if (!node.sees_dead.empty()) {
      return {fmt::format("{} sees {} dead", node.name, node.sees_dead.front())};
    }
  }
  if (snapshot.leader() == nullptr) {
    return {"there is no leader, or more than one"};
  }
  for (const auto& node : snapshot.nodes) {
    if (snapshot.lag(node) > context.policy.gates.lag_limit_bytes) {
      return {fmt::format("{} does not keep up: {} bytes behind", node.name, snapshot.lag(node)),
              kLagMayLast};
    }
  }
  return {};
}

/// Only looks. The memo has how long something has been wrong, how often something was, and what
/// was last: {"trouble_since", "troubles", "last_trouble"}.
class WatchStep final : public steps::LookingStep {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kWatch; }

 private:
  net::awaitable<Verdict> look(StepContext context) override {
    const json memo = *context.state.memo;
    const auto since = parse_ticks(memo.value("trouble_since", std::string()));
    const auto troubles = memo.value("troubles", 0);
    const auto trouble = trouble_of(context);
    const auto watch_ms = steps::int_parameter(context.step, "watchMs", 0);
    if (trouble.what.empty()) {
      if (context.in_state.count() >= watch_ms) {
        co_return done({{"watched_seconds", context.in_state.count() / 1'000},
                        {"troubles", troubles},
                        {"last_trouble", memo.value("last_trouble", std::string())}});
      }
      auto out = running(progress(context, "watching gossip, leader and replication"));
      if (since) {
        out.memo = json{{"trouble_since", ""}};
      }
      co_return out;
    }
    if (since &&
        context.now.value() - since->value() > trouble.may_last.count() * kTicksPerMillisecond) {
      co_return verdict(Verdict::Kind::kFailed, "cluster-unwell", trouble.what);
    }
    auto out = running(progress(context, trouble.what));
    if (!since) {
      out.memo = json{{"trouble_since", format_ticks(context.now)},
                      {"troubles", troubles + 1},
                      {"last_trouble", trouble.what}};
    }
    co_return out;
  }

  static json progress(const StepContext& context, const std::string& phase) {
    return {{"phase", phase},
            {"done", context.in_state.count() / 1'000},
            {"total", steps::int_parameter(context.step, "watchMs", 0) / 1'000},
            {"unit", "seconds"}};
  }
};

}  // namespace

std::unique_ptr<StepKind> make_watch_step() { return std::make_unique<WatchStep>(); }

}  // namespace verger::controller::certificate_change
