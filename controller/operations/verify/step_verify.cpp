#include <fmt/format.h>
#include <set>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/step_support.h"
#include "controller/operations/verify/step_kinds.h"

namespace verger::controller::verifications {
namespace {

using nlohmann::json;
using steps::OperationNews;
using steps::verdict;

/// More findings of a node are only counted among the run's differences; its report has more.
constexpr std::size_t kFindingsNamed = 10;

/// What an operator does about damage of one kind.
std::string remedy_text(std::string_view remedy, std::string_view cluster, std::string_view node) {
  if (remedy == "index") {
    return fmt::format(
        "{}: its index: stop it and rebuild (verger-db index rebuild DIRECTORY), or refill the "
        "node from a peer",
        node);
  }
  if (remedy == "filter") {
    return fmt::format("{}: its existence filter: verger heal {} --existence-filter --nodes {}",
                       node, cluster, node);
  }
  if (remedy == "scavenge-state") {
    return fmt::format(
        "{}: its scavenge state: stop it and remove index/scavenging; the next scavenge begins "
        "anew",
        node);
  }
  return fmt::format(
      "{0}: its log: while the other voters are sound, refill the node from a peer (empty its "
      "directory and start it; verger cluster show says whether streams are lost then), or restore "
      "it: verger restore plan {1} --repository R --scope node --nodes {0}",
      node, cluster);
}

json remedies_of(const StepContext& context, const json& damage) {
  std::set<std::string> kinds;
  for (const auto& each : damage) {
    kinds.insert(each.value("remedy", std::string("refill")));
  }
  auto out = json::array();
  for (const auto& kind : kinds) {
    out.push_back(remedy_text(kind, context.cluster.name, context.step.node));
  }
  return out;
}

json differences_in(const StepContext& context, const json& result) {
  auto out = json::array();
  const auto damage = result.value("damage", json::array());
  for (const auto& each : damage) {
    if (out.size() == kFindingsNamed) {
      break;
    }
    const auto offset = each.value("offset", json());
    out.push_back(fmt::format(
        "{}: {}{}: {}", context.step.node, each.value("file", std::string()),
        offset.is_number() ? fmt::format(" at {}", offset.get<std::int64_t>()) : std::string(),
        each.value("text", std::string())));
  }
  const auto count = result.value("damaged", std::int64_t{0});
  if (count > static_cast<std::int64_t>(out.size())) {
    out.push_back(fmt::format("{}: {} findings more", context.step.node,
                              count - static_cast<std::int64_t>(out.size())));
  }
  return out;
}

/// It changes nothing, so there is nothing to undo.
class VerifyStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kVerify; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto* node = context.node();
    if (node == nullptr || !node->agent) {
      co_return steps::wait("its agent does not report of its node");
    }
    co_return steps::ready();
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    json parameters{
        {"throttlePercent", steps::int_parameter(context.step, "throttlePercent", 100)}};
    if (const auto rate = steps::int_parameter(context.step, "bytesPerSecond", 0); rate > 0) {
      parameters["bytesPerSecond"] = rate;
    }
    co_return co_await steps::act_through_agent(context, std::string(names::kVerify),
                                                std::move(parameters));
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto operation = context.state.operation;
    const auto news = co_await steps::ask_agent(context, operation);
    switch (news.kind) {
      case OperationNews::Kind::kUnderWay:
        co_return steps::running(news.progress.empty() ? json{{"phase", "at work"}}
                                                       : news.progress);
      case OperationNews::Kind::kUnknown:
        co_return verdict(Verdict::Kind::kUnknown, news.reason);
      case OperationNews::Kind::kNotArrived:
        co_return verdict(Verdict::Kind::kNotArrived, "the agent never got it");
      case OperationNews::Kind::kFailed:
        if (news.code == "stopped") {
          co_return verdict(Verdict::Kind::kStopped,
                            context.state.interrupting ? "stopped-by-us" : "stopped-by-someone",
                            "it was stopped; it begins anew");
        }
        co_return steps::judge_failed(news);
      case OperationNews::Kind::kDone:
        break;
    }
    auto result = news.result;
    result["remedies"] = remedies_of(context, result.value("damage", json::array()));
    if (auto differences = differences_in(context, result); !differences.empty()) {
      result[std::string(kDifferences)] = std::move(differences);
    }
    co_return steps::done(result);
  }

  [[nodiscard]] bool waits_for_agent(const StepContext&) const override { return true; }

  [[nodiscard]] bool can_interrupt(const StepContext& context, Interrupt why) const override {
    return steps::policy_lets_stop(context.step, why);
  }
  net::awaitable<void> interrupt(StepContext context) override {
    const auto peers = context.peers;
    const auto node = context.step.node;
    const auto operation = context.state.operation;
    static_cast<void>(co_await peers->cancel_operation(node, operation));
  }
};

}  // namespace

std::unique_ptr<StepKind> make_verify_step() { return std::make_unique<VerifyStep>(); }

}  // namespace verger::controller::verifications
