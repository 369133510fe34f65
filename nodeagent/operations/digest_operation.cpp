#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/streams/find_scavenge_point.h"
#include "nodeagent/api/json_fields.h"
#include "nodeagent/operations/digests.h"
#include "nodeagent/operations/jobs/beside_server_operation.h"

namespace verger::agent {
namespace {

Result<DigestQuery> query_of(const OperationRecord& record) {
  constexpr const char* kWhat = "parameters of digest";
  VERGER_TRY(const auto asked, api::JsonDocument::parse(record.request.parameters_json, kWhat));
  DigestQuery query{.point = -1};
  api::Fields fields(asked.root(), kWhat, Errc::kInvalidArgument);
  fields.need("point", query.point);
  fields.read("readable", query.readable);
  VERGER_RETURN_IF_ERROR(fields.result());
  if (query.point < 0) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: \"point\" must be the number of a scavenge point", kWhat)};
  }
  return query;
}

/// Nothing has to be undone, and nothing is left where the agent ends: the next one begins anew.
class DigestOperation final : public BesideServerOperation {
 public:
  explicit DigestOperation(Digests& digests) : digests_(digests) {}
  [[nodiscard]] std::string_view kind() const override { return "digest"; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override {
    return {"point", "readable", kThrottleParameter, kBytesParameter};
  }

 protected:
  Result<void> check(node::NodeInspection& inspection, const OperationRecord& record) override {
    VERGER_TRY(const auto query, query_of(record));
    VERGER_TRY(const auto points, inspection.scavenge_points());
    VERGER_RETURN_IF_ERROR(streams::find_scavenge_point(points, query.point));
    return {};
  }
  Result<std::shared_ptr<MeteredJob>> make_job(LocalNode /*node*/, node::NodeInspection& inspection,
                                               const OperationRecord& record) override {
    VERGER_TRY(const auto query, query_of(record));
    VERGER_TRY(auto job, digests_.job(inspection, query));
    return std::shared_ptr<MeteredJob>(std::move(job));
  }
  std::string result_of(const MeteredJob& job) override {
    return api::to_text(dynamic_cast<const DigestJob&>(job).digest());
  }
  void dropped(const OperationRecord& record, bool keep) override {
    if (const auto query = query_of(record); query && !keep) {
      digests_.forget(query->point);
    }
  }

 private:
  Digests& digests_;
};

}  // namespace

std::unique_ptr<Operation> make_digest_operation(Digests& digests) {
  return std::make_unique<DigestOperation>(digests);
}

}  // namespace verger::agent
