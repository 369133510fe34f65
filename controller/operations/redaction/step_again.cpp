// Files of a backup, before their server runs: what was redacted since is redacted in them.
#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/operations/redaction/redaction_support.h"
#include "controller/operations/redaction/step_kinds.h"
#include "controller/operations/restore/restore_support.h"

namespace verger::controller::redactions {
namespace {

using nlohmann::json;

static_assert(names::kRedactAgain == planner::restore_steps::kRedactAgain);

constexpr std::string_view kRestoredRedaction = "restored_redaction";  // of the agent

class RedactAgainStep final : public StepKind {
 public:
  explicit RedactAgainStep(std::shared_ptr<const OperationSettings> settings)
      : settings_(std::move(settings)) {}
  [[nodiscard]] std::string_view name() const override { return names::kRedactAgain; }
  [[nodiscard]] bool looks_at_all_nodes() const override { return true; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    if (redacted_by_runs(*settings_, context.cluster.name).empty()) {
      co_return steps::not_needed({{"not_needed", "no run of the cluster has redacted anything"}});
    }
    if (auto why = cluster_restore::why_not_seen_stopped(context.node(), context.step.node);
        !why.empty()) {
      co_return steps::wait(std::move(why));
    }
    co_return steps::ready();
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    const auto list = redacted_by_runs(*settings_, context.cluster.name);
    co_return co_await cluster_restore::act_on_server(
        std::move(context), std::string(kRestoredRedaction), json{{"list", list_text(list)}});
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto operation = context.state.operation;
    const auto news = co_await steps::ask_agent(context, operation);
    if (auto open = cluster_restore::unless_done(context, news, "its files are being redacted")) {
      co_return *std::move(open);
    }
    auto result = news.result;
    auto left = json::array();
    for (const auto& each : result.value("found", json::array())) {
      left.push_back(fmt::format("{}: {}", context.step.node, each.get<std::string>()));
    }
    if (!left.empty()) {
      result[std::string(kDifferences)] = std::move(left);
    }
    co_return steps::done(result);
  }

 private:
  std::shared_ptr<const OperationSettings> settings_;
};

}  // namespace

std::unique_ptr<StepKind> make_redact_again_step(
    std::shared_ptr<const OperationSettings> settings) {
  return std::make_unique<RedactAgainStep>(std::move(settings));
}

}  // namespace verger::controller::redactions
