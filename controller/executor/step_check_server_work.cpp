#include <algorithm>
#include <fmt/format.h>
#include <ranges>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/detail/server_work.h"
#include "controller/executor/step_kinds.h"
#include "controller/executor/step_support.h"

// pending -> waiting (back within backMs?) -> [acting: started again, once] -> waiting, with an
// alert
// -> done, with what is not back in its result.
namespace verger::controller {
namespace {

using detail::look_at_work;
using detail::MissingWork;
using detail::NotedWork;
using nlohmann::json;
using steps::bool_parameter;
using steps::done;
using steps::int_parameter;
using steps::not_needed;
using steps::ready;
using steps::verdict;
using steps::wait;

std::string listed(const std::vector<MissingWork>& missing) {
  return fmt::format("{}", fmt::join(missing | std::views::transform(&MissingWork::text), "; "));
}

/// Does nothing to the nodes, unless the policy wants what is missing started again.
class CheckServerWorkStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return "check_server_work"; }
  [[nodiscard]] bool looks_at_all_nodes() const override { return true; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto value = context.values.find("server_work");
    if (value == context.values.end()) {
      co_return not_needed({{"not_needed", "nothing was noted before the move"}});
    }
    const auto noted = NotedWork::parse(value->second);
    if (noted.nothing()) {
      co_return not_needed({{"not_needed", noted.projections || noted.subscriptions
                                               ? "nothing ran before the move"
                                               : "not offered, or not for this user"}});
    }
    const auto* leader = context.snapshot.leader();
    if (leader == nullptr) {
      co_return wait("no node leads");
    }
    const auto peers = context.peers;
    const auto missing = noted.missing(co_await look_at_work(peers, leader->name), leader->url);
    if (missing.empty()) {
      co_return not_needed(result_of(context, missing));
    }
    const auto back = std::chrono::milliseconds(int_parameter(context.step, "backMs", 120'000));
    if (context.in_state < back && !was_started(context)) {
      co_return wait(
          fmt::format("not running again yet after the leader moved: {}", listed(missing)));
    }
    if (bool_parameter(context.step, "restart", false) && !was_started(context)) {
      auto restarted = json::array();
      for (const auto& each : missing) {
        restarted.push_back(each.to_json());
      }
      co_return ready({{"started", std::move(restarted)}});
    }
    std::vector<std::string> commands;
    for (const auto& each : missing) {
      if (std::ranges::find(commands, each.command) == commands.end()) {
        commands.push_back(each.command);
      }
    }
    const auto text = fmt::format("does not run since the leader moved: {}; start it: {}",
                                  listed(missing), fmt::join(commands, "; "));
    const auto limit =
        back + std::chrono::milliseconds(int_parameter(context.step, "waitMs", 3'600'000));
    auto out = context.in_state >= limit ? not_needed(result_of(context, missing)) : wait(text);
    out.alert = text;
    co_return out;
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    // Starting something that runs changes nothing, so a late request of an older controller does
    // no harm, and it needs no agent.
    const auto* leader = context.snapshot.leader();
    if (leader == nullptr) {
      co_return ActAnswer{ActAnswer::Kind::kNotSent, "no node leads"};
    }
    const auto peers = context.peers;
    const auto node = leader->name;
    bool subscriptions = false;
    ActAnswer out{ActAnswer::Kind::kAccepted, ""};
    for (const auto& each : started(context)) {
      const auto what = each.value("what", std::string());
      Result<void> answer;
      if (what == "projection") {
        answer = co_await peers->enable_projection(node, each.value("name", std::string()));
      } else if (what == "projections") {
        answer = co_await peers->restart_projections(node);
      } else if (!subscriptions) {
        subscriptions = true;
        answer = co_await peers->restart_subscriptions(node);
      }
      if (!answer) {
        out = steps::to_answer(answer);
      }
    }
    co_return out;
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto* leader = context.snapshot.leader();
    const auto value = context.values.find("server_work");
    if (leader == nullptr || value == context.values.end()) {
      co_return steps::running({{"leader", json()}});
    }
    const auto peers = context.peers;
    const auto missing = NotedWork::parse(value->second)
                             .missing(co_await look_at_work(peers, leader->name), leader->url);
    if (missing.empty()) {
      co_return done(result_of(context, missing));
    }
    if (context.in_state.count() < int_parameter(context.step, "backMs", 120'000)) {
      co_return steps::running({{"phase", fmt::format("started again: {}", listed(missing))}});
    }
    co_return verdict(Verdict::Kind::kNotHappened,
                      fmt::format("started again, and still not running: {}", listed(missing)));
  }

 private:
  static bool was_started(const StepContext& context) { return context.state.attempt > 0; }
  static json started(const StepContext& context) {
    const json memo = *context.state.memo;
    const auto found = memo.find("started");
    return found != memo.end() && found->is_array() ? *found : json::array();
  }

  static json result_of(const StepContext& context, const std::vector<MissingWork>& missing) {
    auto not_back = json::array();
    auto report = json::array();
    auto restarted = json::array();
    for (const auto& each : started(context)) {
      const auto text = fmt::format("{}{}{}", each.value("what", std::string()),
                                    each.value("name", std::string()).empty() ? "" : " ",
                                    each.value("name", std::string()));
      restarted.push_back(text);
      report.push_back(
          fmt::format("{}: did not run after the leader moved ({}); Verger started it again", text,
                      each.value("status", std::string())));
    }
    for (const auto& each : missing) {
      not_back.push_back(each.to_json());
      report.push_back(fmt::format("does not run since the leader moved: {}; start it: {}",
                                   each.text(), each.command));
    }
    return {{"back", missing.empty()},
            {"restarted", std::move(restarted)},
            {"not_back", std::move(not_back)},
            {"report", std::move(report)}};
  }
};

}  // namespace

std::unique_ptr<StepKind> make_check_server_work_step() {
  return std::make_unique<CheckServerWorkStep>();
}

}  // namespace verger::controller
