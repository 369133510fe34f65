#include <nlohmann/json.hpp>

#include "nodeagent/api/json_fields.h"
#include "nodeagent/operations/detail/operation_runner.h"

/// How far operations are, and how gently they work.
namespace verger::agent {
namespace {

/// What a facts answer has of an operation's result at most.
constexpr std::size_t kResultShown = 4'096;
/// Ended operations in a facts answer.
constexpr int kEndedShown = 20;
constexpr const char* kThrottle = "throttle";  ///< in the memory: what was set last

}  // namespace

Result<api::Throttle> OperationRunner::first_throttle(const std::string& parameters_json) {
  constexpr const char* kWhat = "parameters";
  const auto asked = api::JsonDocument::parse(parameters_json, kWhat);
  if (!asked) {
    return Error{Errc::kInvalidArgument, asked.error().message};
  }
  api::Throttle out;
  api::Fields fields(asked->root(), kWhat, Errc::kInvalidArgument);
  fields.read(kThrottleParameter, out.percent);
  fields.read(kBytesParameter, out.bytes_per_second);
  if (out.percent < 1 || out.percent > 100) {
    fields.wrong(kThrottleParameter, "must be 1 to 100");
  }
  if (out.bytes_per_second < 0) {
    fields.wrong(kBytesParameter, "must be 0 (no limit) or more");
  }
  VERGER_RETURN_IF_ERROR(fields.result());
  return out;
}

bool OperationRunner::throttle(const RunningOperation& record, api::Throttle throttle) {
  const auto kind = kinds_.find(record->request.kind);
  const auto control = controls_.find(record->request.id);
  if (kind == kinds_.end() || !kind->second->has_job() || control == controls_.end()) {
    return false;
  }
  control->second->set_throttle(throttle);
  auto memory = memory_of(*record);
  memory[kThrottle] = nlohmann::json::parse(api::to_text(throttle));
  record->memory_json = memory.dump();
  store(*record);
  return true;
}

api::OperationStatus OperationRunner::status_of(const OperationRecord& record) {
  auto status = record.status;
  const auto kind = kinds_.find(record.request.kind);
  const auto control = controls_.find(record.request.id);
  if (api::has_ended(status.state) || kind == kinds_.end() || control == controls_.end()) {
    return status;
  }
  if (!kind->second->has_job()) {
    status.progress = kind->second->progress(local_node());
    return status;
  }
  status.throttle = control->second->throttle();
  if (auto progress = control->second->progress(); !progress.phase.empty()) {
    status.progress = std::move(progress);
  }
  return status;
}

Result<std::vector<api::OperationStatus>> OperationRunner::overview() {
  VERGER_TRY(const auto unfinished, journal_->unfinished());
  VERGER_TRY(const auto ended, journal_->newest_ended(kEndedShown));
  std::vector<api::OperationStatus> out;
  for (const auto& record : unfinished) {
    const auto running = find_running(record.request.id);
    out.push_back(running == nullptr || api::has_ended(running->status.state)
                      ? record.status
                      : status_of(*running));
  }
  for (const auto& record : ended) {
    out.push_back(record.status);
    if (out.back().result_json.size() > kResultShown) {
      out.back().result_json = "{}";
    }
  }
  return out;
}

void OperationRunner::touch(const OperationRecord& record) {
  if (const auto control = controls_.find(record.request.id); control != controls_.end()) {
    control->second->touch();
  }
}

void OperationRunner::add_running(const RunningOperation& record) {
  auto throttle = first_throttle(record->request.parameters_json);
  if (const auto memory = memory_of(*record); memory.contains(kThrottle)) {
    throttle = api::parse_throttle(memory.at(kThrottle).dump());  // what was set last
  }
  running_[record->request.id] = record;
  controls_[record->request.id] =
      std::make_shared<JobControl>(environment_.clock, throttle.value_or(api::Throttle{}));
}

}  // namespace verger::agent
