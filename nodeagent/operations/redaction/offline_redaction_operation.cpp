#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "nodeagent/operations/backup/scavenge_absence.h"
#include "nodeagent/operations/jobs/stopped_server_operation.h"
#include "nodeagent/operations/redaction/noted_texts.h"
#include "nodeagent/operations/redaction/offline_redaction_job.h"
#include "nodeagent/operations/redaction/redaction_look.h"
#include "nodeagent/operations/redaction/redaction_operations.h"

namespace verger::agent {
namespace {

using nlohmann::json;

constexpr const char* kRedacted = "redacted";  // in the memory: the job's result

/// Done once the job has read every record as redacted; that it did is in the memory.
class OfflineRedactionOperation final : public StoppedServerOperation {
 public:
  explicit OfflineRedactionOperation(std::shared_ptr<NotedTextStore> texts)
      : texts_(std::move(texts)) {}
  [[nodiscard]] std::string_view kind() const override { return "offline_redaction"; }

 protected:
  [[nodiscard]] std::vector<std::string_view> own_parameters() const override {
    return {kListMember};
  }

  net::awaitable<Result<void>> check(LocalNode node, const api::GossipMember& /*self*/,
                                     const OperationRecord& record, json& /*memory*/) override {
    VERGER_CO_TRY(auto list, list_in(record));
    VERGER_CO_RETURN_IF_ERROR(co_await see_that_no_scavenge_runs(node));
    // What is refused is refused while the server still runs.
    const auto look =
        std::make_shared<RedactionLook>(node.offline->place(), node.offline->machine(),
                                        redaction::RedactionRequest{.listed = std::move(list)});
    VERGER_CO_RETURN_IF_ERROR(co_await node.offline->run(look, std::make_shared<node::StopFlag>()));
    auto against = look->plan().refused;
    const auto obstacles = obstacles_of(look->plan());
    against.insert(against.end(), obstacles.begin(), obstacles.end());
    if (!against.empty()) {
      co_return Error{Errc::kRefused, fmt::format("not redacted: {}", fmt::join(against, "; "))};
    }
    co_return Result<void>();
  }

  Result<std::shared_ptr<MeteredJob>> make_job(LocalNode node,
                                               const OperationRecord& record) override {
    VERGER_TRY(auto list, list_in(record));
    return std::shared_ptr<MeteredJob>(
        std::make_shared<OfflineRedactionJob>(*node.offline, std::move(list), texts_));
  }

  void keep_result(const MeteredJob& job, json& memory) override {
    memory[kRedacted] = to_json(dynamic_cast<const OfflineRedactionJob&>(job).result());
  }

  std::optional<Observation> verify(const node::NodeInspection& /*inspection*/,
                                    const OperationRecord& /*record*/,
                                    const json& memory) override {
    if (!memory.contains(kRedacted)) {
      return std::nullopt;
    }
    return Observation{
        .kind = Observation::Kind::kDone, .code = {}, .text = memory.at(kRedacted).dump()};
  }

  [[nodiscard]] std::string_view left_in_the_middle() const override {
    return "the agent ended in the middle; the next attempt finishes what is left, and searches "
           "for all of the texts";
  }

 private:
  std::shared_ptr<NotedTextStore> texts_;
};

}  // namespace

std::unique_ptr<Operation> make_offline_redaction_operation(std::shared_ptr<NotedTextStore> texts) {
  return std::make_unique<OfflineRedactionOperation>(std::move(texts));
}

}  // namespace verger::agent
