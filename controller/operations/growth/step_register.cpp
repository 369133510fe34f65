#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/step_support.h"
#include "controller/operations/growth/growth_support.h"
#include "controller/operations/growth/step_kinds.h"
#include "controller/operations/restore/restore_support.h"
#include "engine/base/clock.h"

namespace verger::controller::growth {
namespace {

using nlohmann::json;
using steps::verdict;

/// The line: the run's value that from here on nothing is undone is journaled with one look, and
/// the registration changes with a later one. A crash between them registers it after the next
/// start.
class JoinRegisterStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kRegister; }
  [[nodiscard]] bool looks_at_all_nodes() const override { return true; }
  [[nodiscard]] bool can_interrupt(const StepContext& context, Interrupt why) const override {
    return !cluster_restore::is_committed(context) &&
           (why == Interrupt::kCancel || why == Interrupt::kSkip);
  }

  net::awaitable<Readiness> prepare(StepContext) override { co_return steps::ready(); }
  net::awaitable<ActAnswer> act(StepContext) override {
    co_return ActAnswer{ActAnswer::Kind::kAccepted, ""};
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto& step = context.step;
    if (!cluster_restore::is_committed(context)) {
      if (context.state.interrupting) {
        co_return verdict(Verdict::Kind::kStopped, "stopped-by-us", "stopped on request");
      }
      if (auto why = why_not_a_member(context); !why.empty()) {
        co_return verdict(Verdict::Kind::kFailed, std::move(why));
      }
      if (auto why = not_yet(context); !why.empty()) {
        co_return steps::running({{"phase", why}});
      }
      auto out = steps::running({{"phase", "it is registered next"}});
      out.values[cluster_restore::committed_value(step)] =
          json{{"at", format_ticks(context.now)}}.dump();
      co_return out;
    }
    const auto* node = context.node();
    const auto replaces = steps::text_parameter(step, kReplacesParameter);
    auto out = steps::done({{"role", steps::text_parameter(step, "role")},
                            {"version", node == nullptr ? std::string() : node->version},
                            {"writer", node == nullptr ? -1 : node->writer_checkpoint}});
    out.values[std::string(kMembersValue)] = json{
        {"joined", json::array({{{"name", step.node},
                                 {"url", steps::text_parameter(step, "url")},
                                 {"agent_url", steps::text_parameter(step, "agent")}}})},
        {"left", replaces.empty()
                     ? json::array()
                     : json::array({replaces})}}.dump();
    co_return out;
  }

 private:
  /// Empty: it is a member that follows.
  static std::string not_yet(const StepContext& context) {
    const auto* node = context.node();
    const auto* leader = context.snapshot.leader();
    if (node == nullptr || !node->answered || !node->alive) {
      return fmt::format("{} does not answer", context.step.node);
    }
    if (leader == nullptr) {
      return "no single node leads";
    }
    if (node->wrong_identity) {
      return node->problem;
    }
    return node->role == planner::Role::kFollower || node->role == planner::Role::kReadOnlyReplica
               ? std::string()
               : fmt::format("{} is in state {}", node->name, node->state);
  }
};

}  // namespace

std::unique_ptr<StepKind> make_join_register_step() { return std::make_unique<JoinRegisterStep>(); }

}  // namespace verger::controller::growth
