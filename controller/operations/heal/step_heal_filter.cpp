#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/stopped_server.h"
#include "controller/operations/heal/step_kinds.h"

namespace verger::controller::healing {
namespace {

using nlohmann::json;
using steps::OperationNews;
using steps::verdict;

json differences_after(const std::string& node, const json& result) {
  auto out = json::array();
  if (const auto lost = result.value("lost_after", std::int64_t{0}); lost > 0) {
    out.push_back(fmt::format("{}: {} streams are still not in its existence filter", node, lost));
  } else if (lost < 0) {
    out.push_back(fmt::format(
        "{}: its server has not finished its existence filter; verger cluster show says later "
        "whether streams are lost",
        node));
  }
  const auto not_found = result.value("not_found", std::vector<std::string>());
  if (!not_found.empty()) {
    out.push_back(fmt::format("{}: the server does not find these streams: {}", node,
                              fmt::join(not_found, ", ")));
  }
  return out;
}

class HealFilterStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kHealFilter; }
  [[nodiscard]] bool can_undo() const override { return true; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto* node = context.node();
    if (node == nullptr || !node->agent) {
      co_return steps::wait("its agent does not report of its node");
    }
    json memo = *context.state.memo;
    co_await steps::note_start_command(context, memo);
    co_return steps::ready(memo);
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    json parameters = json::object();
    if (const auto deadline = steps::int_parameter(context.step, "serviceDeadlineMs", 0);
        deadline > 0) {
      parameters["serviceDeadlineMs"] = deadline;
    }
    co_return co_await steps::act_through_agent(context, std::string(names::kHealFilter),
                                                std::move(parameters));
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto operation = context.state.operation;
    const auto news = co_await steps::ask_agent(context, operation);
    switch (news.kind) {
      case OperationNews::Kind::kUnderWay:
        co_return steps::running(
            news.progress.empty() ? json{{"phase", "its server is stopping, stopped, or starting"}}
                                  : news.progress);
      case OperationNews::Kind::kUnknown:
        co_return verdict(Verdict::Kind::kUnknown, news.reason);
      case OperationNews::Kind::kNotArrived:
        co_return verdict(Verdict::Kind::kNotArrived, "the agent never got it");
      case OperationNews::Kind::kFailed:
        co_return steps::judge_failed(news);
      case OperationNews::Kind::kDone:
        break;
    }
    const auto* node = context.node();
    if (node == nullptr || !node->answered || node->role == planner::Role::kOther) {
      co_return verdict(Verdict::Kind::kUnknown, "the node has not come back yet");
    }
    auto result = news.result;
    if (auto differences = differences_after(context.step.node, result); !differences.empty()) {
      result[std::string(kDifferences)] = std::move(differences);
    }
    co_return steps::done(result);
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
};

}  // namespace

std::unique_ptr<StepKind> make_heal_filter_step() { return std::make_unique<HealFilterStep>(); }

}  // namespace verger::controller::healing
