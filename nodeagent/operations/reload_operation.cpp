#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nodeagent/operations/operation.h"
#include "nodeagent/operations/waiting_limit.h"

namespace verger::agent {
namespace {

using nlohmann::json;

/// Only the log reports a reload that fails. The new certificate was served after half a second
/// at most where it succeeded (node-interface.md, 4.5).
constexpr std::chrono::seconds kReloadLimit{15};

class ReloadOperation final : public Operation {
 public:
  [[nodiscard]] std::string_view kind() const override { return "reload"; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override { return {}; }

  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& record) override {
    if (!node.served_serial || !node.serial_on_disk) {
      co_return Error{
          Errc::kUnsupported,
          "this agent cannot see which certificate its node shows, so it could not tell "
          "what became of a reload"};
    }
    VERGER_CO_TRY(const auto wanted, node.serial_on_disk());
    VERGER_CO_TRY(const auto before, co_await node.served_serial());
    record.memory_json = json{{"wanted", wanted}, {"before", before}}.dump();
    co_return Result<void>();
  }

  net::awaitable<Result<void>> act(LocalNode node, OperationRecord& /*record*/) override {
    const auto answer = co_await node.client.reload();
    if (answer.done() || (answer.unknown() && answer.code == "queued")) {
      co_return Result<void>();
    }
    co_return client::to_error(answer.verdict, answer.code, answer.why);
  }

  net::awaitable<Observation> observe(LocalNode node, OperationRecord& record) override {
    const auto memory = memory_of(record);
    if (!memory.contains("wanted") || !node.served_serial) {
      co_return Observation{.kind = Observation::Kind::kUnknown,
                            .code = {},
                            .text = "which certificate was meant is no longer known"};
    }
    const auto wanted = memory.value("wanted", std::string());
    const auto served = co_await node.served_serial();
    if (!served) {
      co_return Observation{
          .kind = Observation::Kind::kUnknown, .code = {}, .text = served.error().message};
    }
    if (*served == wanted) {
      co_return Observation{
          .kind = Observation::Kind::kDone,
          .code = {},
          .text = json{{"serial", *served}, {"serialBefore", memory.value("before", std::string())}}
                      .dump()};
    }
    if (waited_longer_than(kReloadLimit, node.clock.now(), record)) {
      co_return Observation{
          .kind = Observation::Kind::kFailed,
          .code = "no_effect",
          .text =
              fmt::format("the node still shows the certificate {}, its file has {}: it refused "
                          "the new set, its log says why",
                          *served, wanted)};
    }
    co_return Observation{.kind = Observation::Kind::kRunning, .code = {}, .text = {}};
  }
};

}  // namespace

std::unique_ptr<Operation> make_reload_operation() { return std::make_unique<ReloadOperation>(); }

}  // namespace verger::agent
