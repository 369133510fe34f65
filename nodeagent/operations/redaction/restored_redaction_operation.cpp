#include <utility>

#include <nlohmann/json.hpp>

#include "nodeagent/operations/jobs/job_operation.h"
#include "nodeagent/operations/redaction/noted_texts.h"
#include "nodeagent/operations/redaction/redaction_look.h"
#include "nodeagent/operations/redaction/redaction_operations.h"
#include "nodeagent/operations/redaction/restored_redaction_job.h"
#include "nodeagent/operations/restore/stopped_files.h"

namespace verger::agent {
namespace {

class RestoredRedactionOperation final : public JobOperation {
 public:
  explicit RestoredRedactionOperation(std::shared_ptr<NotedTextStore> texts)
      : texts_(std::move(texts)) {}
  [[nodiscard]] std::string_view kind() const override { return "restored_redaction"; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override { return {kListMember}; }
  [[nodiscard]] bool works_on_files() const override { return true; }
  /// No server runs that could prove it.
  [[nodiscard]] bool needs_own_directories() const override { return false; }

  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& record) override {
    VERGER_CO_RETURN_IF_ERROR(list_in(record));
    co_return co_await server_is_stopped(node);
  }

 protected:
  net::awaitable<Result<std::shared_ptr<MeteredJob>>> prepare(
      LocalNode node, const OperationRecord& record) override {
    VERGER_CO_TRY(auto list, list_in(record));
    VERGER_CO_RETURN_IF_ERROR(co_await server_is_stopped(node));
    if (node.offline->kept_stopped_by().empty()) {
      VERGER_CO_RETURN_IF_ERROR(node.offline->keep_stopped("operation " + record.request.id,
                                                           external::StopOrder::Server::kStopped));
    }
    co_return std::make_shared<RestoredRedactionJob>(*node.offline, std::move(list), texts_);
  }
  net::awaitable<Result<void>> run(LocalNode node, std::shared_ptr<MeteredJob> job,
                                   const OperationRecord& /*record*/) override {
    const auto hold = node.offline->hold_files();
    co_return co_await runner(node).run(std::move(job), node.control->stop_flag());
  }
  std::string result_of(const MeteredJob& job) override {
    return to_json(dynamic_cast<const RestoredRedactionJob&>(job).result())
        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

 private:
  std::shared_ptr<NotedTextStore> texts_;
};

}  // namespace

std::unique_ptr<Operation> make_restored_redaction_operation(
    std::shared_ptr<NotedTextStore> texts) {
  return std::make_unique<RestoredRedactionOperation>(std::move(texts));
}

}  // namespace verger::agent
