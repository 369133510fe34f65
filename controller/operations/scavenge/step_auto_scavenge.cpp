#include <algorithm>
#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/operations/scavenge/scavenge_support.h"
#include "controller/operations/scavenge/step_kinds.h"

// The server's own scavenging by schedule (24.10 and later). Any node takes it: it passes the
// request to the leader, and its state is the cluster's.
namespace verger::controller::scavenge {
namespace {

using nlohmann::json;
using planner::AutoScavenge;
using steps::done;
using steps::not_needed;
using steps::ready;
using steps::running;
using steps::to_answer;
using steps::verdict;
using steps::wait;

constexpr const char* kValue = "auto_scavenge";
/// It stops a scavenge of its own first, which may take a while.
constexpr std::chrono::minutes kChangeGrace{5};

enum class AutoScavengeSeen : std::uint8_t { kActive, kStopping, kPaused, kNone, kUnknown };

/// What the nodes that answer say together: one that is at it counts for all.
AutoScavengeSeen look_at(const planner::ClusterSnapshot& snapshot) {
  const auto any = [&snapshot](AutoScavenge state) {
    return std::ranges::any_of(snapshot.nodes, [state](const auto& node) {
      return node.answered && node.auto_scavenge == state;
    });
  };
  if (any(AutoScavenge::kWaiting) || any(AutoScavenge::kInProgress)) {
    return AutoScavengeSeen::kActive;
  }
  if (any(AutoScavenge::kPausing)) {
    return AutoScavengeSeen::kStopping;
  }
  if (any(AutoScavenge::kPaused)) {
    return AutoScavengeSeen::kPaused;
  }
  return any(AutoScavenge::kNotConfigured) || any(AutoScavenge::kAbsent)
             ? AutoScavengeSeen::kNone
             : AutoScavengeSeen::kUnknown;
}

/// The node to query: the leader, or one that answers and has it; empty: none.
std::string node_to_ask(const planner::ClusterSnapshot& snapshot) {
  const auto has_it = [](const planner::NodeSnapshot& node) {
    return node.answered && node.auto_scavenge != AutoScavenge::kAbsent &&
           node.auto_scavenge != AutoScavenge::kUnknown;
  };
  if (const auto* leader = snapshot.leader(); leader != nullptr && has_it(*leader)) {
    return leader->name;
  }
  const auto found = std::ranges::find_if(snapshot.nodes, has_it);
  return found == snapshot.nodes.end() ? std::string() : found->name;
}

Verdict not_changed_yet(const StepContext& context, std::string_view wanted) {
  return context.in_state < kChangeGrace
             ? running({{"waiting_for", fmt::format("auto-scavenge to be {}", wanted)}})
             : verdict(Verdict::Kind::kNotHappened,
                       fmt::format("auto-scavenge is still not {}", wanted));
}

class PauseAutoScavengeStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return "pause_auto_scavenge"; }
  [[nodiscard]] bool looks_at_all_nodes() const override { return true; }
  [[nodiscard]] bool can_interrupt(const StepContext&, Interrupt) const override { return false; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    switch (look_at(context.snapshot)) {
      case AutoScavengeSeen::kActive:
        co_return ready();
      case AutoScavengeSeen::kStopping:
        co_return wait("auto-scavenge is being paused from outside Verger");
      case AutoScavengeSeen::kPaused:
      case AutoScavengeSeen::kNone:
        co_return not_needed({{"not_needed", "auto-scavenge is not at work"}});
      case AutoScavengeSeen::kUnknown:
        break;
    }
    co_return wait("no node reports the state of its auto-scavenge");
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    const auto peers = context.peers;
    co_return to_answer(co_await peers->pause_auto_scavenge(node_to_ask(context.snapshot)));
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto seen = look_at(context.snapshot);
    if (seen == AutoScavengeSeen::kPaused) {
      auto out = done(json::object());
      out.values[kValue] = json{{"paused", true}}.dump();
      co_return out;
    }
    co_return seen == AutoScavengeSeen::kUnknown
        ? verdict(Verdict::Kind::kUnknown, "no node reports the state of its auto-scavenge")
        : not_changed_yet(context, "paused");
  }
};

class ResumeAutoScavengeStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return "resume_auto_scavenge"; }
  [[nodiscard]] bool looks_at_all_nodes() const override { return true; }
  [[nodiscard]] bool closes_run() const override { return true; }
  [[nodiscard]] bool can_interrupt(const StepContext&, Interrupt) const override { return false; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    if (!context.values.contains(kValue)) {
      co_return not_needed({{"not_needed", "this run did not pause it"}});
    }
    switch (look_at(context.snapshot)) {
      case AutoScavengeSeen::kPaused:
        co_return ready();
      case AutoScavengeSeen::kActive:
      case AutoScavengeSeen::kNone:
        co_return not_needed({{"not_needed", "it is not paused"}});
      case AutoScavengeSeen::kStopping:
      case AutoScavengeSeen::kUnknown:
        break;
    }
    co_return wait(
        "auto-scavenge was paused for this run and cannot be resumed: no node reports its state; "
        "by "
        "hand: POST /auto-scavenge/resume");
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    const auto peers = context.peers;
    co_return to_answer(co_await peers->resume_auto_scavenge(node_to_ask(context.snapshot)));
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto seen = look_at(context.snapshot);
    if (seen == AutoScavengeSeen::kActive || seen == AutoScavengeSeen::kNone) {
      co_return done(json::object());
    }
    co_return seen == AutoScavengeSeen::kUnknown
        ? verdict(Verdict::Kind::kUnknown, "no node reports the state of its auto-scavenge")
        : not_changed_yet(context, "resumed");
  }
};

}  // namespace

std::unique_ptr<StepKind> make_pause_auto_scavenge_step() {
  return std::make_unique<PauseAutoScavengeStep>();
}
std::unique_ptr<StepKind> make_resume_auto_scavenge_step() {
  return std::make_unique<ResumeAutoScavengeStep>();
}

}  // namespace verger::controller::scavenge
