#include "nodeagent/operations/verify/verify_operation.h"

#include <functional>
#include <utility>

#include <nlohmann/json.hpp>

#include "nodeagent/operations/backup/scavenge_absence.h"
#include "nodeagent/operations/jobs/beside_server_operation.h"
#include "nodeagent/operations/verify/verify_running_job.h"

namespace verger::agent {
namespace {

using nlohmann::json;

/// An agent that was restarted begins it anew.
class VerifyOperation final : public BesideServerOperation {
 public:
  VerifyOperation(FileSystem& files, Path scratch) : files_(files), scratch_(std::move(scratch)) {}
  [[nodiscard]] std::string_view kind() const override { return "verify"; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override {
    return {kThrottleParameter, kBytesParameter};
  }

  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& record) override {
    VERGER_CO_RETURN_IF_ERROR(co_await BesideServerOperation::look(node, record));
    VERGER_CO_RETURN_IF_ERROR(co_await see_that_no_scavenge_runs(
        node, "it replaces files while they are looked at; the verification waits for its end"));
    co_return Result<void>();
  }

 protected:
  Result<void> check(node::NodeInspection& /*inspection*/,
                     const OperationRecord& /*record*/) override {
    return {};
  }
  Result<std::shared_ptr<MeteredJob>> make_job(LocalNode node, node::NodeInspection& inspection,
                                               const OperationRecord& record) override {
    return std::shared_ptr<MeteredJob>(std::make_shared<VerifyRunningJob>(
        files_,
        VerifyRunningJob::Place{.directory = inspection.database_directory(),
                                .index_directory = inspection.index_directory(),
                                .scratch = scratch_},
        node.clock, node.log, std::hash<std::string>()(record.request.id)));
  }
  std::string result_of(const MeteredJob& job) override {
    const auto& done = dynamic_cast<const VerifyRunningJob&>(job);
    auto damage = json::array();
    for (const auto& each : done.damage()) {
      damage.push_back({{"file", each.file},
                        {"offset", each.offset ? json(*each.offset) : json()},
                        {"text", each.text},
                        {"remedy", to_string(each.remedy)}});
    }
    const auto& totals = done.totals();
    return json{{"chunkFiles", totals.chunk_files},
                {"chunkBytes", totals.chunk_bytes},
                {"records", totals.records},
                {"tables", totals.tables},
                {"entries", totals.entries},
                {"events", totals.events},
                {"damaged", done.damage_count()},
                {"damage", std::move(damage)},
                {"missingStreams", done.missing_streams()},
                {"notes", done.notes()}}
        .dump(-1, ' ', false, json::error_handler_t::replace);
  }

 private:
  FileSystem& files_;
  Path scratch_;
};

}  // namespace

std::unique_ptr<Operation> make_verify_operation(FileSystem& files, Path scratch) {
  return std::make_unique<VerifyOperation>(files, std::move(scratch));
}

}  // namespace verger::agent
