#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/operations/scavenge/scavenge_support.h"
#include "controller/operations/scavenge/scavenge_without_agent.h"
#include "controller/operations/scavenge/step_kinds.h"
#include "engine/base/mutation.h"

namespace verger::controller::scavenge {
namespace {

using nlohmann::json;
using steps::act_through_agent;
using steps::ask_agent;
using steps::bool_parameter;
using steps::done;
using steps::impossible;
using steps::int_parameter;
using steps::judge_failed;
using steps::not_needed;
using steps::OperationNews;
using steps::policy_lets_stop;
using steps::ready;
using steps::running;
using steps::text_parameter;
using steps::verdict;
using steps::wait;

constexpr const char* kSharedPoint = "shared_point";

json point_json(std::int64_t number, std::int64_t position) {
  return {{"number", number}, {"position", position}};
}

bool reached(const planner::AgentFacts& facts, std::int64_t point) {
  return facts.last_finished && facts.last_finished->number >= point &&
         !(facts.unfinished && facts.unfinished->point.number <= point);
}

json progress_of(const planner::NodeSnapshot& node) {
  json out{{"phase", node.running.phase},
           {"done", node.running.chunks_done},
           {"total", node.running.chunks_total},
           {"unit", "chunks"},
           {"chunks_done", node.running.chunks_done},
           {"chunks_total", node.running.chunks_total},
           {"bytes_saved", node.running.bytes_saved},
           {"scavenge_id", node.running.scavenge_id}};
  if (node.agent && node.agent->unfinished) {
    out["point"] = node.agent->unfinished->point.number;
    out["stage"] = node.agent->unfinished->stage;
  }
  return out;
}

json result_of(const json& agent_result, const planner::Point& point, const json& memo,
               const api::NodeFacts& facts) {
  json out{{"point", point_json(point.number, point.position)},
           {"scavenge_id", agent_result.value("scavenge_id", json())},
           {"space_saved", agent_result.value("space_saved", json())},
           {"records_removed", agent_result.value("records_removed", json())}};
  add_sizes(memo, facts, out);
  return out;
}

class ScavengeStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return "scavenge"; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    auto readiness = bool_parameter(context.step, "agent", false)
                         ? prepare_with_agent(context)
                         : co_await prepare_without_agent(context);
    if (readiness.kind == Readiness::Kind::kReady) {
      // A scavenge that another party started is taken for this step's, where the policy says so.
      json memo = *readiness.memo;
      memo.erase("adopted");
      const auto* node = context.node();
      if (text_parameter(context.step, "foreign") == "adopt" && node != nullptr &&
          node->scavenge_running.value_or(false) && !node->running.scavenge_id.empty()) {
        memo["adopted"] = node->running.scavenge_id;
        memo["scavenge_id"] = node->running.scavenge_id;
      }
      if (bool_parameter(context.step, "agent", false)) {
        co_await note_size_up_to_point(context, memo);
      }
      readiness.memo = memo;
    }
    co_return readiness;
  }

  static Readiness prepare_with_agent(const StepContext& context) {
    const auto* node = context.node();
    if (node == nullptr || !node->agent) {
      return wait(silent_agent(node));
    }
    const auto& facts = *node->agent;
    const auto target = text_parameter(context.step, "target");
    const bool makes = makes_point(context);
    json memo = *context.state.memo;
    memo["makes_point"] = makes;
    // One that was to make the point, and finds it made, takes it; and the other way round.
    memo["sync_only"] = target == "new" || target == "shared"
                            ? !makes
                            : bool_parameter(context.step, "syncOnly", true);
    // Of the first attempt: one that resumes finds the chunks rewritten already.
    if (!memo.contains("resumed")) {
      memo["resumed"] = facts.unfinished.has_value();  // what is left of another's
    }
    note_size_before(context, facts, memo);
    if (makes) {
      if (!memo.contains("latest_before")) {
        const auto latest = context.snapshot.latest_point();
        const auto reached_by_itself = facts.last_finished ? facts.last_finished->number : -1;
        // In another's place: what that one may have made unreported is the point.
        memo["latest_before"] = target == "shared" ? reached_by_itself
                                : latest           ? latest->number
                                                   : -1;
      }
      return prepare_new(context, facts, std::move(memo));
    }
    const auto point =
        target == "number" ? int_parameter(context.step, "point", -1) : shared_point(context);
    if (point < 0) {
      if (target != "number" && context.values.contains(kSharedPoint)) {
        // The point was made by a node without an agent: it is there, but its number was not seen.
        const auto latest = context.snapshot.latest_point();
        if (latest) {
          memo["point"] = latest->number;
          return reached(facts, latest->number)
                     ? not_needed({{"point", point_json(latest->number, latest->position)}})
                     : ready(memo);
        }
      }
      return impossible("there is no shared point: the node that was to create it did not");
    }
    if (reached(facts, point)) {
      const auto position =
          facts.last_finished->number == point ? facts.last_finished->position : -1;
      return not_needed({{"point", point_json(point, position)}, {"already", true}});
    }
    const bool visible = std::ranges::any_of(
        facts.points, [point](const auto& each) { return each.number == point; });
    if (!visible && !facts.unfinished) {
      return wait(point_not_seen(facts, point));
    }
    memo["point"] = point;
    return ready(memo);
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    if (!adopted(context).empty()) {
      co_return ActAnswer{ActAnswer::Kind::kAccepted, "adopted"};
    }
    if (!bool_parameter(context.step, "agent", false)) {
      co_return co_await start_without_agent(std::move(context));
    }
    const json memo = *context.state.memo;
    json parameters{
        {"threads", int_parameter(context.step, "threads", 1)},
        {"threshold", int_parameter(context.step, "threshold", 0)},
        {"throttlePercent", int_parameter(context.step, "throttlePercent", 100)},
        {"syncOnly", memo.value("sync_only", bool_parameter(context.step, "syncOnly", true))}};
    co_return co_await act_through_agent(context, "scavenge", std::move(parameters));
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    if (!bool_parameter(context.step, "agent", false)) {
      co_return co_await observe_without_agent(std::move(context));
    }
    // First the operation, then the node: what the node shows is newer than what the agent said.
    const auto operation = context.state.operation;
    const json memo = *context.state.memo;
    const bool is_adopted = !adopted(memo).empty();
    OperationNews news;  // an adopted scavenge is no operation of the agent's
    if (!is_adopted) {
      news = co_await ask_agent(context, operation);
      if (news.kind == OperationNews::Kind::kFailed && news.code == "gate_closed") {
        co_return judge_failed(news);  // regardless of the node's fate: nothing was done to it
      }
      if (const auto* node = context.node();
          news.kind == OperationNews::Kind::kUnderWay && node != nullptr && node->agent) {
        co_return judge_under_way(context, *node, memo);  // what the look showed is new enough
      }
    }
    const auto node_name = context.step.node;
    const auto peers = context.peers;
    const auto fresh = co_await peers->facts(node_name, chunks_below(memo));
    if (!fresh) {
      co_return verdict(Verdict::Kind::kUnknown, fmt::format("the agent of {} does not answer: {}",
                                                             node_name, fresh.error().message));
    }
    if (!fresh->node_running) {
      co_return verdict(
          Verdict::Kind::kUnknown,
          fresh->node_problem.empty()
              ? std::string("the node is stopped")
              : fmt::format("the node does not answer its agent: {}", fresh->node_problem));
    }
    auto out =
        is_adopted ? judge_adopted(context, *fresh, memo) : judge(context, news, *fresh, memo);
    if (out.kind == Verdict::Kind::kDone) {
      if (const auto note = sizes_to_come(memo, *fresh)) {
        auto almost = running({{"phase", "its agent reads its log"}});
        almost.values = out.values;
        almost.memo = *note;
        co_return almost;
      }
    }
    co_return out;
  }

  /// Where others wait for the point, it is looked for as well.
  [[nodiscard]] bool waits_for_agent(const StepContext& context) const override {
    const auto* policy = std::get_if<planner::ScavengePolicy>(&context.policy.operation);
    const bool others_wait = policy != nullptr &&
                             policy->strategy == planner::Strategy::kConcurrent &&
                             makes_point(context) && !context.values.contains(kSharedPoint);
    return bool_parameter(context.step, "agent", false) && adopted(context).empty() && !others_wait;
  }

  [[nodiscard]] bool can_interrupt(const StepContext& context, Interrupt why) const override {
    return policy_lets_stop(context.step, why);
  }

  net::awaitable<void> interrupt(StepContext context) override {
    if (!bool_parameter(context.step, "agent", false)) {
      co_await stop_without_agent(std::move(context));
      co_return;
    }
    const auto peers = context.peers;
    const auto node = context.step.node;
    if (const auto id = adopted(context); !id.empty()) {
      static_cast<void>(co_await peers->stop_scavenge(node, id));
      co_return;
    }
    const auto operation = context.state.operation;
    static_cast<void>(co_await peers->cancel_operation(node, operation));
  }

 private:
  /// Id of the scavenge that this attempt took over; empty: it started its own.
  static std::string adopted(const StepContext& context) { return adopted(*context.state.memo); }
  static std::string adopted(const json& memo) { return memo.value("adopted", std::string()); }

  /// By the node's state alone: no matter who started it, the point is reached or it is not.
  static Verdict judge_adopted(const StepContext& context, const api::NodeFacts& facts,
                               const json& memo) {
    const auto id = adopted(memo);
    const auto* node = context.node();
    if (facts.running) {
      return running(node != nullptr ? progress_of(*node) : json::object());
    }
    const auto point = point_of(context, facts, memo);
    const bool finished = point && point->number >= 0 && facts.last_finished_point &&
                          facts.last_finished_point->number >= point->number;
    if (finished) {
      auto out = result_of({{"scavenge_id", id}},
                           planner::Point{point->number, point->position, point->threshold, ""},
                           memo, facts);
      out["adopted"] = id;
      auto ended = done(out);
      keep_size_before(context, memo, ended);
      if (makes_point(context, memo)) {
        ended.values[kSharedPoint] = point_json(point->number, point->position).dump();
      }
      return ended;
    }
    if (context.state.interrupting) {
      return verdict(Verdict::Kind::kStopped, "stopped-by-us", "the adopted scavenge was stopped");
    }
    return verdict(Verdict::Kind::kStopped, "adopted-ended",
                   fmt::format("the adopted scavenge {} ended without reaching the point", id));
  }

  static Readiness prepare_new(const StepContext& context, const planner::AgentFacts& facts,
                               json memo) {
    const auto before = memo.value("latest_before", -1LL);
    // The point may have been written although no node reported it: then it is used, not made
    // again.
    for (const auto& node : context.snapshot.nodes) {
      if (!node.agent) {
        continue;
      }
      for (const auto& point : node.agent->points) {
        if (point.number > before) {
          memo["sync_only"] = true;
        }
      }
    }
    if (facts.last_finished && facts.last_finished->number > before) {
      const auto point = point_json(facts.last_finished->number, facts.last_finished->position);
      auto out = not_needed({{"point", point}, {"already", true}});
      out.values[kSharedPoint] = point.dump();
      return out;
    }
    return ready(memo);
  }

  static Verdict judge_under_way(const StepContext& context, const planner::NodeSnapshot& node,
                                 const json& memo) {
    auto out = running(progress_of(node));
    if (!makes_point(context, memo)) {
      return out;
    }
    const auto before = memo.value("latest_before", -1LL);
    const auto& facts = *node.agent;
    const auto take = [&](const planner::Point& point) {
      out.values[kSharedPoint] = point_json(point.number, point.position).dump();
    };
    if (facts.unfinished && facts.unfinished->point.number > before) {
      take(facts.unfinished->point);
    } else if (facts.last_finished && facts.last_finished->number > before) {
      take(*facts.last_finished);
    }
    return out;
  }

  /// The point this intent is about, as far as the node shows it.
  static std::optional<api::ScavengePoint> point_of(const StepContext& context,
                                                    const api::NodeFacts& facts, const json& memo) {
    if (makes_point(context, memo)) {
      const auto before = memo.value("latest_before", -1LL);
      if (facts.unfinished && facts.unfinished->point.number > before) {
        return facts.unfinished->point;
      }
      if (facts.last_finished_point && facts.last_finished_point->number > before) {
        return facts.last_finished_point;
      }
      return std::nullopt;
    }
    api::ScavengePoint point;
    point.number = memo.value("point", -1LL);
    point.position = -1;
    for (const auto& each : facts.points) {
      if (each.number == point.number) {
        point = each;
      }
    }
    return point;
  }

  static Verdict judge(const StepContext& context, const OperationNews& news,
                       const api::NodeFacts& facts, const json& memo) {
    const auto point = point_of(context, facts, memo);
    const bool makes = makes_point(context, memo);
    const bool finished = point && facts.last_finished_point &&
                          facts.last_finished_point->number >= point->number &&
                          !(facts.unfinished && facts.unfinished->point.number <= point->number);
    const auto with_value = [&](Verdict out) {
      if (makes && point) {
        out.values[kSharedPoint] = point_json(point->number, point->position).dump();
      }
      if (out.kind == Verdict::Kind::kDone) {
        keep_size_before(context, memo, out);
      }
      return out;
    };
    if (finished && !facts.running && news.kind != OperationNews::Kind::kUnderWay &&
        news.kind != OperationNews::Kind::kUnknown) {
      auto reached_point = planner::Point{point->number, point->position, point->threshold, ""};
      if (facts.last_finished_point->number != point->number) {
        auto out = result_of(news.result, reached_point, memo, facts);
        out["finished_later_point"] = facts.last_finished_point->number;
        return with_value(done(out));
      }
      reached_point.position = facts.last_finished_point->position;
      return with_value(done(result_of(news.result, reached_point, memo, facts)));
    }
    const auto* node = context.node();
    switch (news.kind) {
      case OperationNews::Kind::kUnderWay:
        return with_value(running(node != nullptr ? progress_of(*node) : json::object()));
      case OperationNews::Kind::kUnknown:
        return with_value(verdict(Verdict::Kind::kUnknown, news.reason));
      case OperationNews::Kind::kNotArrived:
        return verdict(Verdict::Kind::kNotArrived, "the agent never got it");
      case OperationNews::Kind::kDone:
        if (facts.running) {
          return with_value(running(node != nullptr ? progress_of(*node) : json::object()));
        }
        // It ended well, but at another point: an older one came first.
        return with_value(verdict(
            facts.last_finished_point ? Verdict::Kind::kStopped : Verdict::Kind::kNotHappened,
            "other-point",
            fmt::format("it finished point {}, {} is still to come",
                        facts.last_finished_point ? facts.last_finished_point->number : -1,
                        point ? fmt::format("point {}", point->number) : "the new one")));
      case OperationNews::Kind::kFailed:
        if (news.code == "stopped" && context.state.interrupting) {
          return with_value(
              verdict(Verdict::Kind::kStopped, "stopped-by-us", "stopped on request"));
        }
        if (news.code == "errored" && is_mutated("errored-is-done")) {
          return with_value(done(result_of(
              news.result, planner::Point{point ? point->number : -1, -1, 0, ""}, memo, facts)));
        }
        if (news.code == "stopped") {
          return with_value(verdict(Verdict::Kind::kNotHappened, "stopped-by-someone",
                                    "it was stopped from outside Verger"));
        }
        return with_value(judge_failed(news));
    }
    return verdict(Verdict::Kind::kUnknown, "no news");
  }
};

}  // namespace

std::unique_ptr<StepKind> make_scavenge_step() { return std::make_unique<ScavengeStep>(); }

}  // namespace verger::controller::scavenge
