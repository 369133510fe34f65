#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/streams/find_scavenge_point.h"
#include "nodeagent/operations/jobs/stopped_server_operation.h"
#include "nodeagent/operations/scavenge/offline_scavenge_job.h"
#include "nodeagent/operations/scavenge/scavenge_operations.h"

namespace verger::agent {
namespace {

using nlohmann::json;

struct Parameters {
  std::int64_t point = -1;
  std::int32_t threads = 1;
};

Result<Parameters> parse(const OperationRecord& record) {
  const auto asked = json::parse(record.request.parameters_json, nullptr, false);
  if (!asked.is_object() || !asked.contains("point") || !asked["point"].is_number_integer()) {
    return Error{Errc::kInvalidArgument,
                 "parameters of offline_scavenge: \"point\", the number of a scavenge point in the "
                 "log, is missing"};
  }
  Parameters out{.point = asked["point"].get<std::int64_t>()};
  const auto threads = asked.value("threads", json(1));
  if (!threads.is_number_integer() || threads < 1 || threads > 4) {
    return Error{Errc::kInvalidArgument, "threads must be 1 to 4"};
  }
  out.threads = threads.get<std::int32_t>();
  return out;
}

/// The state database shows how far the scavenge got.
class OfflineScavengeOperation final : public StoppedServerOperation {
 public:
  [[nodiscard]] std::string_view kind() const override { return "offline_scavenge"; }

 protected:
  [[nodiscard]] std::vector<std::string_view> own_parameters() const override {
    return {"point", "threads"};
  }

  net::awaitable<Result<void>> check(LocalNode node, const api::GossipMember& self,
                                     const OperationRecord& record, json& memory) override {
    VERGER_CO_TRY(const auto parameters, parse(record));
    VERGER_CO_TRY(const auto current, client::to_result(co_await node.client.current_scavenge()));
    if (!current.id.empty()) {
      co_return Error{Errc::kConflict,
                      fmt::format("scavenge {} is running on this node", current.id)};
    }
    const auto* inspection = node.inspection();
    if (inspection == nullptr) {
      co_return Error{Errc::kUnavailable, "the server does not answer, so its state is unknown"};
    }
    VERGER_CO_TRY(const auto points, inspection->scavenge_points());
    VERGER_CO_TRY(const auto point, streams::find_scavenge_point(points, parameters.point));
    if (point.position.value() > self.last_commit_position) {
      co_return Error{Errc::kNotFound,
                      fmt::format("scavenge point {} is not in the committed log of this node",
                                  parameters.point)};
    }
    const auto chunk_size = inspection->chunks().chunk_size;
    if (chunk_size > 0 && point.position.value() / chunk_size >=
                              inspection->positions().writer.value() / chunk_size) {
      co_return Error{Errc::kConflict,
                      fmt::format("the chunk with scavenge point {} is not complete on this node",
                                  parameters.point)};
    }
    memory["bytes_before"] = inspection->chunks().total_bytes;
    co_return Result<void>();
  }

  Result<std::shared_ptr<MeteredJob>> make_job(LocalNode node,
                                               const OperationRecord& record) override {
    VERGER_TRY(const auto parameters, parse(record));
    return std::make_shared<OfflineScavengeJob>(*node.offline, parameters.point,
                                                parameters.threads);
  }

  void keep_result(const MeteredJob& job, json& memory) override {
    const auto& scavenge = dynamic_cast<const OfflineScavengeJob&>(job);
    memory["space_saved"] = scavenge.space_saved();
    memory["records_removed"] = scavenge.records_removed();
  }

  std::optional<Observation> verify(const node::NodeInspection& inspection,
                                    const OperationRecord& record, const json& memory) override {
    const auto parameters = parse(record);
    const auto finished = inspection.last_finished_point();
    if (!parameters || !finished || finished->number < parameters->point) {
      return std::nullopt;
    }
    // Null where the agent died before it was noted.
    const auto counted = [&memory](const char* name) {
      return memory.contains("records_removed") ? memory.at(name) : json();
    };
    return Observation{.kind = Observation::Kind::kDone,
                       .code = {},
                       .text = json{{"point",
                                     {{"number", finished->number},
                                      {"position", finished->position},
                                      {"effectiveNow", finished->effective_now},
                                      {"threshold", finished->threshold}}},
                                    {"spaceSaved", counted("space_saved")},
                                    {"recordsRemoved", counted("records_removed")},
                                    {"bytesBefore", memory.value("bytes_before", -1)},
                                    {"bytesAfter", inspection.chunks().total_bytes}}
                                   .dump()};
  }

  [[nodiscard]] std::string_view left_in_the_middle() const override {
    return "the agent ended in the middle; the next scavenge resumes where it stopped";
  }
};

}  // namespace

std::unique_ptr<Operation> make_offline_scavenge_operation() {
  return std::make_unique<OfflineScavengeOperation>();
}

}  // namespace verger::agent
