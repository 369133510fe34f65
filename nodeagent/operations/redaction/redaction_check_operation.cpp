#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nodeagent/external/online_access.h"
#include "nodeagent/operations/jobs/beside_server_operation.h"
#include "nodeagent/operations/redaction/redaction_look.h"
#include "nodeagent/operations/redaction/redaction_operations.h"
#include "nodeagent/operations/server_return.h"

namespace verger::agent {
namespace {

using nlohmann::json;

constexpr const char* kEvents = "events";
constexpr const char* kMetadata = "metadata";
constexpr const char* kOnline = "online";

Error bad_check_parameters(std::string_view why) {
  return {Errc::kInvalidArgument, fmt::format("parameters of redaction_check: {}", why)};
}

Result<redaction::RedactionRequest> check_request_of(const OperationRecord& record) {
  const auto asked = json::parse(record.request.parameters_json, nullptr, false);
  redaction::RedactionRequest request;
  if (asked.is_object() && asked.contains(kListMember) && !asked.contains(kEvents)) {
    VERGER_TRY(request.listed, list_in(record));
    return request;
  }
  if (!asked.is_object() || !asked.contains(kEvents) || !asked[kEvents].is_array() ||
      asked[kEvents].empty()) {
    return bad_check_parameters("\"events\", a list of NUMBER@STREAM, is missing");
  }
  const auto metadata = asked.value(kMetadata, json(false));
  if (!metadata.is_boolean()) {
    return bad_check_parameters("\"metadata\" must be true or false");
  }
  request.metadata = metadata.get<bool>();
  for (const auto& each : asked[kEvents]) {
    if (!each.is_string()) {
      return bad_check_parameters("\"events\" has something else than texts");
    }
    VERGER_TRY(auto event, redaction::parse_event_name(each.get<std::string>()));
    request.events.push_back(std::move(event));
  }
  return request;
}

/// Who could not redact is not to say that there is nothing against it.
Result<void> can_redact(const LocalNode& node, bool online) {
  if (!online) {
    return needs_service_control(node);
  }
  const auto problem =
      node.online == nullptr ? "this agent is not set up for it" : node.online->look().problem;
  return problem.empty()
             ? Result<void>()
             : Result<void>(Error{Errc::kRefused,
                                  fmt::format("not redacted while the server runs: {}", problem)});
}

bool is_online(const OperationRecord& record) {
  const auto asked = json::parse(record.request.parameters_json, nullptr, false);
  return asked.is_object() && asked.value(kOnline, json(false)) == json(true);
}

class RedactionCheckOperation final : public BesideServerOperation {
 public:
  [[nodiscard]] std::string_view kind() const override { return "redaction_check"; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override {
    return {kEvents, kListMember, kMetadata, kOnline, kThrottleParameter, kBytesParameter};
  }

 protected:
  Result<void> check(node::NodeInspection& /*inspection*/, const OperationRecord& record) override {
    VERGER_RETURN_IF_ERROR(check_request_of(record));
    return {};
  }
  Result<std::shared_ptr<MeteredJob>> make_job(LocalNode node, node::NodeInspection& /*inspection*/,
                                               const OperationRecord& record) override {
    const bool online = is_online(record);
    VERGER_RETURN_IF_ERROR(can_redact(node, online));
    VERGER_TRY(auto request, check_request_of(record));
    const auto& place = online ? node.online->place() : node.offline->place();
    const auto machine = online ? node.online->machine() : node.offline->machine();
    return std::shared_ptr<MeteredJob>(
        std::make_shared<RedactionLook>(place, machine, std::move(request)));
  }
  std::string result_of(const MeteredJob& job) override {
    const auto& plan = dynamic_cast<const RedactionLook&>(job).plan();
    return json{{kListMember, redaction::encode_list(plan.to_list())},
                {"toDo", plan.to_do()},
                {"missing", plan.missing},
                {"refused", plan.refused},
                {"obstacles", obstacles_of(plan)}}
        .dump(-1, ' ', false, json::error_handler_t::replace);
  }
};

}  // namespace

std::unique_ptr<Operation> make_redaction_check_operation() {
  return std::make_unique<RedactionCheckOperation>();
}

std::vector<std::unique_ptr<Operation>> redaction_operations(
    const std::shared_ptr<NotedTextStore>& texts) {
  std::vector<std::unique_ptr<Operation>> out;
  out.push_back(make_redaction_check_operation());
  out.push_back(make_offline_redaction_operation(texts));
  out.push_back(make_online_redaction_operation(texts));
  out.push_back(make_restored_redaction_operation(texts));
  return out;
}

}  // namespace verger::agent
