#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/step_support.h"
#include "controller/operations/resize/resize_support.h"
#include "controller/operations/resize/step_kinds.h"
#include "engine/base/clock.h"
#include "planner/restore/restore_steps.h"

namespace verger::controller::resize {
namespace {

using nlohmann::json;
using steps::verdict;

/// One that is to be registered.
struct NewMember {
  std::string name;
  std::string url;
  std::string agent;
};

std::vector<NewMember> new_members(const planner::Step& step) {
  std::vector<NewMember> out;
  const auto found = step.parameters.find("joined");
  const auto* list = found == step.parameters.end() ? nullptr : found->second.as_array();
  for (const auto& each : list == nullptr ? planner::Json::Array() : *list) {
    const auto* members = each.as_object();
    const auto text = [members](const char* name) {
      const auto at = members->find(name);
      const auto* value = at == members->end() ? nullptr : at->second.as_string();
      return value == nullptr ? std::string() : *value;
    };
    if (members != nullptr) {
      out.push_back({.name = text("name"), .url = text("url"), .agent = text("agent")});
    }
  }
  return out;
}

/// The line: that from here on nothing is undone is journaled with one look, and the registration
/// changes with a later one. A crash between them registers it after the next start.
class ResizeCommitStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kCommit; }
  [[nodiscard]] bool looks_at_all_nodes() const override { return true; }
  [[nodiscard]] bool can_interrupt(const StepContext& context, Interrupt why) const override {
    return !is_committed(context) && (why == Interrupt::kCancel || why == Interrupt::kSkip);
  }

  net::awaitable<Readiness> prepare(StepContext) override { co_return steps::ready(); }
  net::awaitable<ActAnswer> act(StepContext) override {
    co_return ActAnswer{ActAnswer::Kind::kAccepted, ""};
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto& step = context.step;
    const auto joined = new_members(step);
    if (!is_committed(context)) {
      if (context.state.interrupting) {
        co_return verdict(Verdict::Kind::kStopped, "stopped-by-us", "stopped on request");
      }
      if (auto why = who_must_not_run(context); !why.empty()) {
        co_return verdict(Verdict::Kind::kFailed, "runs-again", std::move(why));
      }
      if (auto why = not_members_yet(context, joined); !why.empty()) {
        co_return steps::running({{"phase", why}});
      }
      auto out = steps::running({{"phase", "the registration changes next"}});
      const auto at = json{{"at", format_ticks(context.now)}}.dump();
      out.values[std::string(names::kCommittedValue)] = at;
      for (const auto& node : joined) {
        out.values[fmt::format("{}/{}", planner::restore_steps::kCommittedValue, node.name)] = at;
      }
      co_return out;
    }
    const auto* leader = context.snapshot.leader();
    auto out = steps::done(
        {{"leader", leader == nullptr ? new_one_that_leads(context, joined) : leader->name},
         {"size", steps::int_parameter(step, "to", 0)}});
    auto added = json::array();
    for (const auto& node : joined) {
      added.push_back({{"name", node.name}, {"url", node.url}, {"agent_url", node.agent}});
    }
    out.values[std::string(kMembersValue)] =
        json{{"joined", std::move(added)}, {"left", steps::list_parameter(step, "left")}}.dump();
    co_return out;
  }

 private:
  /// A member that fails now is one of those of which some may fail: it is not waited for.
  static std::string not_members_yet(const StepContext& context,
                                     const std::vector<NewMember>& joined) {
    if (joined.empty()) {
      return not_settled(context);
    }
    if (context.snapshot.leader() == nullptr && new_one_that_leads(context, joined).empty()) {
      return "no single node leads";
    }
    for (const auto& each : joined) {
      const auto* node = context.snapshot.find(each.name);
      if (node == nullptr || !node->answered || !node->alive) {
        return fmt::format("{} does not answer", each.name);
      }
      if (node->wrong_identity) {
        return node->problem;
      }
      if (node->role != planner::Role::kFollower && node->role != planner::Role::kLeader) {
        return fmt::format("{} is in state {}", each.name, node->state);
      }
    }
    return {};
  }

  /// It follows, so it may be elected like the others. Empty: none of them leads.
  static std::string new_one_that_leads(const StepContext& context,
                                        const std::vector<NewMember>& joined) {
    for (const auto& each : joined) {
      const auto* node = context.snapshot.find(each.name);
      if (node != nullptr && node->answered && node->alive &&
          node->role == planner::Role::kLeader) {
        return each.name;
      }
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<StepKind> make_commit_step() { return std::make_unique<ResizeCommitStep>(); }

}  // namespace verger::controller::resize
