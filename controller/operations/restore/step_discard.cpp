#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/operations/restore/restore_support.h"
#include "controller/operations/restore/step_kinds.h"
#include "nodeagent/api/backup_operations.h"

namespace verger::controller::cluster_restore {
namespace {

using nlohmann::json;

class DiscardStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kDiscard; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto* node = context.node();
    if (node == nullptr || !node->agent_answered) {
      co_return steps::wait(node == nullptr || node->agent_problem.empty()
                                ? "its agent does not answer"
                                : node->agent_problem);
    }
    co_return steps::ready();
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    const api::RestoredGeneration parameters{steps::text_parameter(context.step, "generation")};
    co_return co_await act_on_server(std::move(context), std::string(api::kRestoreDiscardOldKind),
                                     steps::parsed_or_empty(api::to_text(parameters)));
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto operation = context.state.operation;
    const auto news = co_await steps::ask_agent(context, operation);
    if (auto open = unless_done(context, news, "its former files are being removed")) {
      co_return *std::move(open);
    }
    co_return steps::done({{"bytes", news.result.value("bytes", json())}});
  }
};

}  // namespace

std::unique_ptr<StepKind> make_discard_step() { return std::make_unique<DiscardStep>(); }

}  // namespace verger::controller::cluster_restore
