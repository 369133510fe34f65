#include <fmt/format.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "nodeagent/operations/jobs/job_control.h"
#include "nodeagent/operations/online_scavenge/online_scavenge_work.h"
#include "nodeagent/operations/scavenge/scavenge_operations.h"

namespace verger::agent {
namespace {

using nlohmann::json;

/// What the memory has once it has ended: {"state", "text", "code"}.
constexpr const char* kEnd = "end";

/// The files show how far it is: an agent that is started again acts again.
class OnlineScavengeOperation final : public Operation {
 public:
  explicit OnlineScavengeOperation(QuerySettings settings) : settings_(std::move(settings)) {}
  [[nodiscard]] std::string_view kind() const override { return "online_scavenge"; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override {
    return {"point", "threads", kThrottleParameter, kBytesParameter};
  }
  [[nodiscard]] bool works_on_files() const override { return true; }
  [[nodiscard]] bool has_job() const override { return true; }
  [[nodiscard]] bool resumes_by_acting() const override { return true; }

  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& record) override {
    VERGER_CO_TRY([[maybe_unused]] const auto parameters,
                  parse_online_parameters(record.request.parameters_json));
    if (node.inspection() == nullptr) {
      co_return Error{Errc::kUnavailable, "the server does not answer; this needs it running"};
    }
    co_return Result<void>();
  }

  net::awaitable<Result<void>> act(LocalNode node, OperationRecord& record) override {
    if (memory_of(record).contains(kEnd)) {
      co_return Result<void>();  // the agent ended before it reported that
    }
    VERGER_CO_TRY(const auto parameters, parse_online_parameters(record.request.parameters_json));
    std::optional<OnlineEnd> end;
    if (node.online == nullptr) {
      end = OnlineEnd{.code = "not_supported",
                      .text =
                          "this agent's node has no database directory of its own that can be "
                          "worked on beside it"};
    } else {
      end = co_await scavenge_online(node, settings_, parameters, memory_of(record));
    }
    if (end) {
      auto memory = memory_of(record);
      memory[kEnd] = {{"done", end->done}, {"code", end->code}, {"text", end->text}};
      record.memory_json = memory.dump();
    }
    co_return Result<void>();
  }

  net::awaitable<Observation> observe(LocalNode /*node*/, OperationRecord& record) override {
    const auto memory = memory_of(record);
    if (!memory.contains(kEnd)) {
      co_return Observation{.kind = Observation::Kind::kRunning, .code = {}, .text = {}};
    }
    const auto& end = memory.at(kEnd);
    co_return Observation{
        .kind = end.value("done", false) ? Observation::Kind::kDone : Observation::Kind::kFailed,
        .code = end.value("code", std::string()),
        .text = end.value("text", std::string())};
  }

  net::awaitable<bool> cancel(LocalNode node, OperationRecord& /*record*/, bool keep) override {
    node.control->cancel(keep);
    co_return true;
  }

 private:
  QuerySettings settings_;
};

}  // namespace

std::unique_ptr<Operation> make_online_scavenge_operation(QuerySettings settings) {
  return std::make_unique<OnlineScavengeOperation>(std::move(settings));
}

}  // namespace verger::agent
