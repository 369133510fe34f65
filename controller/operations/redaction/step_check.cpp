// Looking for the events, and agreeing on what they are.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/operations/redaction/agent_work.h"
#include "controller/operations/redaction/redaction_support.h"
#include "controller/operations/redaction/step_kinds.h"
#include "planner/redaction/redaction_policy.h"

namespace verger::controller::redactions {
namespace {

using nlohmann::json;
using steps::done;
using steps::OperationNews;
using steps::ready;
using steps::verdict;
using steps::wait;

std::vector<std::string> texts_of(const json& result, const char* name) {
  const auto found = result.find(name);
  return found == result.end() || !found->is_array() ? std::vector<std::string>()
                                                     : found->get<std::vector<std::string>>();
}

/// Has the node's agent look for the events.
class LookingForEvents : public AgentWork {
 public:
  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto* node = context.node();
    if (node == nullptr || !node->agent) {
      co_return wait("its agent does not report of its node");
    }
    co_return ready();
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    auto parameters = wanted(context);
    if (steps::bool_parameter(context.step, "online", false)) {
      parameters["online"] = true;
    }
    co_return co_await steps::act_through_agent(context, std::string(names::kCheck),
                                                std::move(parameters));
  }

  [[nodiscard]] bool can_interrupt(const StepContext& /*context*/,
                                   Interrupt /*why*/) const override {
    return true;
  }

 private:
  /// The operation's parameters that say which records.
  [[nodiscard]] virtual json wanted(const StepContext& context) const = 0;
  [[nodiscard]] std::string_view where_it_stopped() const override {
    return "it was stopped; nothing was changed";
  }
};

class RedactionCheckStep final : public LookingForEvents {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kCheck; }

 private:
  [[nodiscard]] json wanted(const StepContext& context) const override {
    const auto events = context.step.parameters.find("events");
    return {
        {"metadata", steps::bool_parameter(context.step, "metadata", false)},
        {"events", events == context.step.parameters.end() ? json::array()
                                                           : json::parse(events->second.text())}};
  }
  [[nodiscard]] Verdict judge_done(const StepContext& context, const json& result) const override {
    auto against = texts_of(result, "refused");
    const auto obstacles = texts_of(result, "obstacles");
    against.insert(against.end(), obstacles.begin(), obstacles.end());
    if (!against.empty()) {
      return verdict(Verdict::Kind::kFailed, "refused",
                     fmt::format("{}: {}; nothing was changed on any node", context.step.node,
                                 fmt::join(against, "; ")));
    }
    const auto text = result.value("list", std::string());
    const auto list = parse_list(text);
    if (!list) {
      return verdict(Verdict::Kind::kNotHappened, "unreadable-result",
                     fmt::format("its agent's answer cannot be read: {}", list.error().message));
    }
    const auto to_do = result.value("to_do", std::int64_t{0});
    const auto missing = texts_of(result, "missing");
    auto out = done({{"records", list->size()}, {"to_do", to_do}, {"missing", missing}});
    out.values[std::string(names::kFoundValue) + context.step.node] =
        json{{"list", text}, {"to_do", to_do}, {"missing", missing}}.dump();
    return out;
  }
};

class ConfirmStep final : public LookingForEvents {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kConfirm; }

 private:
  /// By position: of some records the node's index may have no entry.
  [[nodiscard]] json wanted(const StepContext& context) const override {
    return {{"list", list_text(agreed_list_of(context.values))}};
  }
  /// The other nodes are looked at all the same, and the run says what is not known.
  [[nodiscard]] Verdict judge_failure(const StepContext& context,
                                      const OperationNews& news) const override {
    auto out = steps::judge_failed(news);
    if (out.kind == Verdict::Kind::kStopped || context.state.attempt < context.step.attempts) {
      return out;
    }
    return done({{std::string(kDifferences),
                  json::array({fmt::format("{}: it was not looked at again at the end: {}",
                                           context.step.node, news.reason)})}});
  }
  [[nodiscard]] Verdict judge_done(const StepContext& context, const json& result) const override {
    const auto list = parse_list(result.value("list", std::string()));
    if (!list || !result.contains("to_do")) {
      return verdict(Verdict::Kind::kNotHappened, "unreadable-result",
                     fmt::format("its agent's answer cannot be read: {}",
                                 list ? "to_do is missing" : list.error().message));
    }
    const auto to_do = result.value("to_do", std::int64_t{0});
    json shown{{"records", list->size()}, {"to_do", to_do}};
    auto differences = json::array();
    if (to_do > 0) {
      differences.push_back(
          fmt::format("{}: {} of the records have their data again, as of a node that was filled "
                      "again from one that was not redacted yet: plan the redaction again with the "
                      "same events",
                      context.step.node, to_do));
    }
    // What is refused is not looked at: it may have its data.
    for (const auto& each : texts_of(result, "refused")) {
      differences.push_back(
          fmt::format("{}: the look at the end found another log: {}", context.step.node, each));
    }
    const bool confirmed = differences.empty();
    if (!confirmed) {
      shown[std::string(kDifferences)] = std::move(differences);
    }
    auto out = done(shown);
    if (confirmed) {
      out.values[std::string(names::kConfirmedValue) + context.step.node] =
          json{{"records", list->size()}}.dump();
    }
    return out;
  }
};

class AgreeStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kAgree; }
  net::awaitable<Readiness> prepare(StepContext /*context*/) override { co_return ready(); }
  net::awaitable<ActAnswer> act(StepContext /*context*/) override {
    co_return ActAnswer{ActAnswer::Kind::kAccepted, ""};
  }
  net::awaitable<Verdict> observe(StepContext context) override { co_return agree(context); }

 private:
  static Verdict agree(const StepContext& context) {
    std::map<std::string, std::vector<ListedEvent>> by_node;
    for (const auto& [key, value] : context.values) {
      if (!key.starts_with(names::kFoundValue)) {
        continue;
      }
      auto list = parse_list(list_member(value));
      if (!list) {
        return verdict(Verdict::Kind::kFailed, "unreadable-result", list.error().message);
      }
      by_node[key.substr(names::kFoundValue.size())] = *std::move(list);
    }
    const auto events = planner::listed_events(planner::redaction_of(context.policy).events);
    const auto agreed = agreed_list(by_node, events);
    if (!agreed) {
      return verdict(Verdict::Kind::kFailed, "refused",
                     fmt::format("{}; nothing was changed on any node", agreed.error().message));
    }
    auto out = done({{"records", agreed->size()}});
    out.values[std::string(names::kListValue)] = json{{"list", list_text(*agreed)}}.dump();
    return out;
  }
};

}  // namespace

std::unique_ptr<StepKind> make_check_step() { return std::make_unique<RedactionCheckStep>(); }
std::unique_ptr<StepKind> make_confirm_step() { return std::make_unique<ConfirmStep>(); }
std::unique_ptr<StepKind> make_agree_step() { return std::make_unique<AgreeStep>(); }

}  // namespace verger::controller::redactions
