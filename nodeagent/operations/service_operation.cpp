#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/operation.h"
#include "nodeagent/operations/server_return.h"

namespace verger::agent {
namespace {

using nlohmann::json;

class StartServiceOperation final : public Operation {
 public:
  [[nodiscard]] std::string_view kind() const override { return "start_service"; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override { return {}; }

  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& /*record*/) override {
    VERGER_CO_RETURN_IF_ERROR(needs_service_control(node));
    co_return node.offline->may_start();
  }

  net::awaitable<Result<void>> act(LocalNode node, OperationRecord& record) override {
    // What keeps it stopped ends here, also where it was started by hand meanwhile.
    VERGER_CO_RETURN_IF_ERROR(node.offline->allow_start());
    if (node.inspection() != nullptr) {
      co_return Result<void>();
    }
    // A server that is still opening its database does not answer, and must not be started twice.
    VERGER_CO_TRY(const auto free, co_await node.offline->files_are_free());
    if (free) {
      auto memory = memory_of(record);
      VERGER_CO_RETURN_IF_ERROR(co_await start_server(node, memory));
      record.memory_json = memory.dump();
    }
    co_return Result<void>();
  }

  net::awaitable<Observation> observe(LocalNode node, OperationRecord& record) override {
    if (const auto* inspection = node.inspection()) {
      co_return Observation{.kind = Observation::Kind::kDone,
                            .code = {},
                            .text = json{{"instance", inspection->instance_id()}}.dump()};
    }
    if (node.offline == nullptr) {
      co_return Observation{.kind = Observation::Kind::kUnknown,
                            .code = {},
                            .text =
                                "the server does not answer, and the agent no longer knows "
                                "how to start it"};
    }
    if (const auto by = node.offline->kept_stopped_by(); !by.empty()) {
      co_return Observation{.kind = Observation::Kind::kFailed,
                            .code = "interrupted",
                            .text = fmt::format("{} has stopped the server meanwhile", by)};
    }
    auto memory = memory_of(record);
    auto seen = co_await await_server(node, memory, kServiceDeadline);
    record.memory_json = memory.dump();
    co_return seen;
  }
};

}  // namespace

std::unique_ptr<Operation> make_start_service_operation() {
  return std::make_unique<StartServiceOperation>();
}

}  // namespace verger::agent
