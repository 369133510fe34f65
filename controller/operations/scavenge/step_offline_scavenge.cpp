#include <algorithm>
#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/stopped_server.h"
#include "controller/operations/scavenge/scavenge_support.h"
#include "controller/operations/scavenge/step_kinds.h"

namespace verger::controller::scavenge {
namespace {

using nlohmann::json;
using steps::act_through_agent;
using steps::ask_agent;
using steps::done;
using steps::impossible;
using steps::int_parameter;
using steps::judge_failed;
using steps::not_needed;
using steps::OperationNews;
using steps::policy_lets_stop;
using steps::ready;
using steps::running;
using steps::verdict;
using steps::wait;

bool reached(const api::NodeFacts& facts, std::int64_t point) {
  return facts.last_finished_point && facts.last_finished_point->number >= point &&
         !facts.unfinished;
}

class OfflineScavengeStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return "offline_scavenge"; }
  [[nodiscard]] bool can_undo() const override { return true; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto* node = context.node();
    if (node == nullptr || !node->agent) {
      co_return wait(silent_agent(node));
    }
    const auto& facts = *node->agent;
    const auto number = shared_point(context);
    if (number < 0) {
      co_return impossible("there is no shared point");
    }
    if (facts.last_finished && facts.last_finished->number >= number && !facts.unfinished) {
      co_return not_needed(
          {{"point", {{"number", number}, {"position", position_of(facts, number)}}},
           {"already", true}});
    }
    const auto position = position_of(facts, number);
    if (position < 0) {
      co_return wait(point_not_seen(facts, number));
    }
    // The stopped node cannot complete a chunk, and what is in the active one is not scavenged.
    if (!facts.chunk_is_complete(position)) {
      co_return wait(
          fmt::format("the chunk with scavenge point {} is not complete there yet", number));
    }
    json memo = *context.state.memo;
    memo["point"] = number;
    memo["position"] = position;
    if (!memo.contains("resumed")) {
      memo["resumed"] = facts.unfinished.has_value();  // what is left of another's
    }
    note_size_before(context, facts, memo);
    co_await note_size_up_to_point(context, memo);
    co_await steps::note_start_command(context, memo);
    co_return ready(memo);
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    const json memo = *context.state.memo;
    json parameters{{"point", memo.value("point", -1LL)},
                    {"threads", int_parameter(context.step, "threads", 1)}};
    if (const auto deadline = int_parameter(context.step, "serviceDeadlineMs", 0); deadline > 0) {
      parameters["serviceDeadlineMs"] = deadline;
    }
    co_return co_await act_through_agent(context, "offline_scavenge", std::move(parameters));
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto operation = context.state.operation;
    const auto news = co_await ask_agent(context, operation);
    switch (news.kind) {
      case OperationNews::Kind::kUnderWay:
        co_return running(news.progress.empty()
                              ? json{{"phase", "its server is stopping, stopped, or starting"}}
                              : news.progress);
      case OperationNews::Kind::kUnknown:
        co_return verdict(Verdict::Kind::kUnknown, news.reason);
      case OperationNews::Kind::kNotArrived:
        co_return verdict(Verdict::Kind::kNotArrived, "the agent never got it");
      case OperationNews::Kind::kFailed:
        if (news.code == "stopped") {
          co_return verdict(Verdict::Kind::kStopped,
                            context.state.interrupting ? "stopped-by-us" : "stopped-by-someone",
                            "it was stopped, and the server started again");
        }
        co_return judge_failed(news);
      case OperationNews::Kind::kDone:
        break;
    }
    // What the agent says is checked against what the node's files and the node itself show.
    const auto node_name = context.step.node;
    const auto peers = context.peers;
    const json memo = *context.state.memo;
    const auto facts = co_await peers->facts(node_name, chunks_below(memo));
    if (!facts) {
      co_return verdict(Verdict::Kind::kUnknown,
                        fmt::format("the agent of {} does not answer: {}", context.step.node,
                                    facts.error().message));
    }
    const auto* node = context.node();
    if (!facts->node_running || node == nullptr || !node->answered ||
        node->role == planner::Role::kOther) {
      co_return verdict(Verdict::Kind::kUnknown, "the node has not come back yet");
    }
    const auto number = memo.value("point", -1LL);
    if (!reached(*facts, number)) {
      co_return verdict(
          Verdict::Kind::kStopped, "other-point",
          fmt::format("it finished point {}, point {} is still to come",
                      facts->last_finished_point ? facts->last_finished_point->number : -1,
                      number));
    }
    if (const auto note = sizes_to_come(memo, *facts)) {
      auto almost = running({{"phase", "its agent reads its log"}});
      almost.memo = *note;
      co_return almost;
    }
    json result{{"point", {{"number", number}, {"position", memo.value("position", -1LL)}}},
                {"scavenge_id", json()},
                {"space_saved", news.result.value("space_saved", json())},
                {"records_removed", news.result.value("records_removed", json())}};
    add_sizes(memo, *facts, result);
    auto out = done(result);
    keep_size_before(context, memo, out);
    co_return out;
  }

  [[nodiscard]] bool can_interrupt(const StepContext& context, Interrupt why) const override {
    return policy_lets_stop(context.step, why);
  }

  net::awaitable<void> interrupt(StepContext context) override {
    const auto peers = context.peers;
    const auto node = context.step.node;
    const auto operation = context.state.operation;
    static_cast<void>(co_await peers->cancel_operation(node, operation));
  }

  net::awaitable<ActAnswer> undo(StepContext context) override {
    co_return co_await steps::start_server(context);
  }

  [[nodiscard]] std::string undo_command(const StepContext& context) const override {
    return steps::start_server_command(context);
  }

  net::awaitable<Verdict> observe_undo(StepContext context) override {
    co_return co_await steps::observe_start(context);
  }

 private:
  static std::int64_t position_of(const planner::AgentFacts& facts, std::int64_t number) {
    const auto found = std::ranges::find(facts.points, number, &planner::Point::number);
    return found == facts.points.end() ? -1 : found->position;
  }
};

}  // namespace

std::unique_ptr<StepKind> make_offline_scavenge_step() {
  return std::make_unique<OfflineScavengeStep>();
}

}  // namespace verger::controller::scavenge
