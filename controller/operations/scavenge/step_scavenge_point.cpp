#include <algorithm>
#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/operations/scavenge/scavenge_support.h"
#include "controller/operations/scavenge/step_kinds.h"

namespace verger::controller::scavenge {
namespace {

using nlohmann::json;
using steps::act_through_agent;
using steps::ask_agent;
using steps::done;
using steps::int_parameter;
using steps::judge_failed;
using steps::OperationNews;
using steps::ready;
using steps::running;
using steps::verdict;
using steps::wait;

std::optional<planner::Point> find_point(const planner::ClusterSnapshot& snapshot,
                                         std::int64_t number) {
  for (const auto& node : snapshot.nodes) {
    if (node.agent) {
      const auto found = std::ranges::find(node.agent->points, number, &planner::Point::number);
      if (found != node.agent->points.end()) {
        return *found;
      }
    }
  }
  return std::nullopt;
}

/// The point is what is looked for, before and after: a lost reply makes no second one.
class ScavengePointStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return "scavenge_point"; }
  [[nodiscard]] bool looks_at_all_nodes() const override { return true; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto* node = context.node();
    if (node == nullptr || !node->agent) {
      co_return wait("its agent does not tell what is in the log");
    }
    json memo = *context.state.memo;
    const auto wanted = int_parameter(context.step, "point", -1);
    const auto latest = context.snapshot.latest_point();
    if (wanted >= 0) {
      if (!find_point(context.snapshot, wanted)) {
        co_return wait(fmt::format("no node shows scavenge point {}", wanted));
      }
      memo["point"] = wanted;
      co_return ready(memo);
    }
    if (!memo.contains("latest_before")) {
      memo["latest_before"] = latest ? latest->number : -1;
    }
    if (latest && latest->number > memo["latest_before"].get<std::int64_t>()) {
      memo["point"] = latest->number;  // of an attempt whose answer was lost
    }
    co_return ready(memo);
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    if (context.state.memo->contains("point")) {
      co_return ActAnswer{ActAnswer::Kind::kAccepted, ""};
    }
    co_return co_await act_through_agent(
        context, "scavenge_point", {{"threshold", int_parameter(context.step, "threshold", 0)}});
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const json memo = *context.state.memo;
    if (memo.contains("point")) {
      const auto number = memo["point"].get<std::int64_t>();
      const auto point = find_point(context.snapshot, number);
      co_return point ? made(point->number, point->position)
                      : verdict(Verdict::Kind::kUnknown,
                                fmt::format("no node shows scavenge point {} now", number));
    }
    const auto operation = context.state.operation;
    const auto news = co_await ask_agent(context, operation);
    switch (news.kind) {
      case OperationNews::Kind::kUnderWay:
        co_return running(json::object());
      case OperationNews::Kind::kUnknown:
        co_return verdict(Verdict::Kind::kUnknown, news.reason);
      case OperationNews::Kind::kNotArrived:
        co_return verdict(Verdict::Kind::kNotArrived, "the agent never got it");
      case OperationNews::Kind::kFailed:
        co_return judge_failed(news);
      case OperationNews::Kind::kDone:
        break;
    }
    const auto* node = context.node();
    if (node == nullptr || !node->answered || node->scavenge_running.value_or(true)) {
      co_return running({{"waiting_for", "the scavenge that made the point to stop"}});
    }
    const auto point = news.result.value("point", json::object());
    co_return made(point.value("number", -1LL), point.value("position", -1LL));
  }

 private:
  static Verdict made(std::int64_t number, std::int64_t position) {
    const json point{{"number", number}, {"position", position}};
    auto out = done({{"point", point}});
    out.values["shared_point"] = point.dump();
    return out;
  }
};

}  // namespace

std::unique_ptr<StepKind> make_scavenge_point_step() {
  return std::make_unique<ScavengePointStep>();
}

}  // namespace verger::controller::scavenge
