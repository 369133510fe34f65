#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/operation.h"
#include "nodeagent/operations/patience.h"

namespace verger::agent {
namespace {

using nlohmann::json;

constexpr std::chrono::minutes kServicePatience{10};

class StartServiceOperation final : public Operation {
 public:
  [[nodiscard]] std::string_view kind() const override { return "start_service"; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override { return {}; }

  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& /*record*/) override {
    if (node.offline == nullptr || !node.offline->configured()) {
      co_return Error{Errc::kUnsupported,
                      "the agent was not told how to start and stop its server (--service-unit, or "
                      "--start-command and --stop-command)"};
    }
    co_return Result<void>();
  }

  net::awaitable<Result<void>> act(LocalNode node, OperationRecord& /*record*/) override {
    if (node.inspection() != nullptr) {
      co_return Result<void>();
    }
    // A server that is still opening its database does not answer, and must not be started twice.
    VERGER_CO_TRY(const auto free, co_await node.offline->files_are_free());
    if (free) {
      VERGER_CO_CHECK(co_await node.offline->start());
    }
    co_return Result<void>();
  }

  net::awaitable<Observation> observe(LocalNode node, OperationRecord& record) override {
    if (const auto* inspection = node.inspection()) {
      co_return Observation{.kind = Observation::Kind::kDone,
                            .code = {},
                            .text = json{{"instance", inspection->instance_id()}}.dump()};
    }
    if (waited_longer_than(kServicePatience, node.clock.now(), record)) {
      co_return Observation{.kind = Observation::Kind::kFailed,
                            .code = "no_answer",
                            .text = "the server was started and does not answer"};
    }
    co_return Observation{.kind = Observation::Kind::kRunning, .code = {}, .text = {}};
  }
};

}  // namespace

std::unique_ptr<Operation> make_start_service_operation() {
  return std::make_unique<StartServiceOperation>();
}

}  // namespace verger::agent
