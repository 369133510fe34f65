#include "nodeagent/api/agent.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <functional>
#include <map>

#include <nlohmann/json.hpp>

#include "nodeagent/api/detail/facts_members.h"
#include "nodeagent/api/detail/request_document.h"
#include "nodeagent/api/json_fields.h"
#include "nodeagent/api/json_text.h"
#include "nodeagent/api/json_writer.h"
#include "nodeagent/api/member_names.h"

namespace verger::api {
namespace {

constexpr std::array<std::string_view, 6> kOperationStateNames = {
    "accepted", "acting", "unknown", "done", "failed", "cancelled"};

/// The states that controllers of the version before know.
OperationState former_state(OperationState state) {
  return state == OperationState::kCancelled ? OperationState::kFailed : state;
}
constexpr std::int64_t kPermitLongest = std::int64_t{24} * 60 * 60 * 1000;
constexpr std::size_t kIdLongest = 128;

void write(JsonWriter& out, const ScavengePoint& point) {
  out.begin_object()
      .member("number", point.number)
      .member("position", point.position)
      .member("effectiveNow", point.effective_now)
      .member("threshold", point.threshold)
      .end_object();
}

void write(JsonWriter& out, const OperationStatus& status) {
  out.begin_object()
      .member("id", status.id)
      .member("kind", status.kind)
      .member("state", to_string(former_state(status.state)))
      .name("result")
      .embedded(status.result_json)
      .member("acceptedAt", status.accepted_at);
  if (!status.error_code.empty() || !status.error.empty()) {
    out.member("errorCode", status.error_code).member("error", status.error);
  }
  if (!status.finished_at.empty()) {
    out.member("finishedAt", status.finished_at);
  }
  if (former_state(status.state) != status.state) {
    out.member("jobState", to_string(status.state));
  }
  if (status.progress) {
    out.name("progress");
    write(out, *status.progress);
  }
  if (status.throttle) {
    out.name("throttle");
    write(out, *status.throttle);
  }
  out.end_object();
}

/// As nlohmann's JSON writes it, from any writer.
/// Writes a value as to_text() would, where nothing in it has several ways of being written. False:
/// something has.
bool write_canonical(JsonView value, JsonWriter& out) {  // NOLINT(misc-no-recursion)
  if (value.is_object()) {
    std::map<std::string, JsonView, std::less<>> members;
    for (const auto& name : value.names()) {
      auto text = name.string();
      const auto member = value.find(text);
      if (!member || name.text().size() != text.size() + 2 ||
          !members.emplace(std::move(text), *member).second) {
        return false;
      }
    }
    out.begin_object();
    for (const auto& [name, member] : members) {
      out.name(name);
      if (!write_canonical(member, out)) {
        return false;
      }
    }
    out.end_object();
    return true;
  }
  if (value.is_array()) {
    out.begin_list();
    for (const auto& each : value.values()) {
      if (!write_canonical(each, out)) {
        return false;
      }
    }
    out.end_list();
    return true;
  }
  if (value.is_string()) {
    out.value(value.string());
    return true;
  }
  if (value.is_boolean()) {
    out.value(value.boolean());
    return true;
  }
  if (const auto number = value.is_integer() ? value.signed_number() : std::nullopt) {
    out.value(*number);
    return true;
  }
  return false;
}

std::string canonical(JsonView value) {
  JsonWriter out;
  return write_canonical(value, out) ? out.take() : to_text(nlohmann::json::parse(value.text()));
}

Result<ScavengePoint> parse_point(JsonView value, const std::string& where) {
  ScavengePoint point;
  Fields fields(value, where);
  fields.require("number");
  fields.require("position");
  fields.read("number", point.number);
  fields.read("position", point.position);
  fields.read("effectiveNow", point.effective_now);
  fields.read("threshold", point.threshold);
  VERGER_RETURN_IF_ERROR(fields.result());
  return point;
}

Result<OperationStatus> parse_status(JsonView value, const std::string& where) {
  OperationStatus status;
  Fields fields(value, where);
  fields.require("id");
  fields.require("state");
  std::string state;
  fields.read("id", status.id);
  fields.read("kind", status.kind);
  fields.read("state", state);
  fields.read("jobState", state);
  fields.read("errorCode", status.error_code);
  fields.read("error", status.error);
  fields.read("acceptedAt", status.accepted_at);
  fields.read("finishedAt", status.finished_at);
  if (const auto result = fields.find("result")) {
    status.result_json = result->text();
  }
  if (const auto progress = fields.find("progress")) {
    VERGER_TRY(status.progress, progress_of(*progress, where + ".progress"));
  }
  if (const auto throttle = fields.find("throttle")) {
    VERGER_TRY(status.throttle, throttle_of(*throttle, where + ".throttle"));
  }
  VERGER_RETURN_IF_ERROR(fields.result());
  auto known = parse_operation_state(state);
  if (!known.has_value()) {
    return Error{Errc::kCorruption, fmt::format("{}.state: {}", where, known.error().message)};
  }
  status.state = *known;
  return status;
}

/// An id becomes a segment of a path and a key of journals on both sides.
bool is_id(std::string_view text) {
  return !text.empty() && text.size() <= kIdLongest && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == ':';
  });
}

}  // namespace

std::string_view to_string(OperationState state) {
  return kOperationStateNames[static_cast<std::size_t>(state)];
}

bool has_ended(OperationState state) {
  return state == OperationState::kDone || state == OperationState::kFailed ||
         state == OperationState::kCancelled;
}

Result<OperationState> parse_operation_state(std::string_view text) {
  const auto* const found = std::ranges::find(kOperationStateNames, text);
  if (found == kOperationStateNames.end()) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("\"{}\" is not a state of an operation", text)};
  }
  return static_cast<OperationState>(found - kOperationStateNames.begin());
}

std::string to_text(const OperationStatus& status) {
  JsonWriter out;
  write(out, status);
  return out.take();
}

void write_members(JsonWriter& out, const NodeFacts& facts) {
  out.member("agentVersion", facts.agent_version)
      .member("nodeInstanceId", facts.node_instance_id)
      .member("nodeRunning", facts.node_running)
      .member("nodeVersion", facts.node_version)
      .member("nodeState", facts.node_state)
      .member("databaseId", facts.database_id)
      .member("writerCheckpoint", facts.writer_checkpoint)
      .member("epochNumber", facts.epoch_number)
      .member("diskTotalBytes", facts.disk_total_bytes)
      .member("diskFreeBytes", facts.disk_free_bytes)
      .member("databaseBytes", facts.database_bytes)
      .member("eventCount", facts.event_count)
      .member("chunkFileCount", facts.chunk_file_count)
      .member("largestChunkBytes", facts.largest_chunk_bytes)
      .member("chunkSize", facts.chunk_size)
      .member("newestChunk", facts.newest_chunk)
      .member("completeChunkBytes", facts.complete_chunk_bytes)
      .member("bytesBelow", facts.bytes_below)
      .member("comparedChunk", facts.compared_chunk)
      .member("comparedBytes", facts.compared_bytes)
      .member("completedBytes", facts.completed_bytes)
      .member("indexDiskTotalBytes", facts.index_disk_total_bytes)
      .member("indexDiskFreeBytes", facts.index_disk_free_bytes)
      .member("largestTableBytes", facts.largest_table_bytes)
      .member("largestMergeBytes", facts.largest_merge_bytes)
      .member("highestControllerEpoch", facts.highest_controller_epoch)
      .member("takenAt", facts.taken_at);
  if (!facts.files_problem.empty()) {
    out.member("filesProblem", facts.files_problem);
  }
  if (!facts.node_problem.empty()) {
    out.member("nodeProblem", facts.node_problem);
  }
  out.name("points").begin_list();
  for (const auto& point : facts.points) {
    write(out, point);
  }
  out.end_list().name("operations").begin_list();
  for (const auto& operation : facts.operations) {
    write(out, operation);
  }
  out.end_list();
  if (facts.last_finished_point.has_value()) {
    out.name("lastFinishedPoint");
    write(out, *facts.last_finished_point);
  }
  if (facts.unfinished.has_value()) {
    out.name("unfinished").begin_object().name("point");
    write(out, facts.unfinished->point);
    out.member("stage", facts.unfinished->stage).end_object();
  }
  if (facts.running.has_value()) {
    out.name("running")
        .begin_object()
        .member("id", facts.running->id)
        .member("phase", facts.running->phase)
        .member("chunksDone", facts.running->chunks_done)
        .member("chunksTotal", facts.running->chunks_total)
        .member("bytesSaved", facts.running->bytes_saved)
        .end_object();
  }
}

std::string to_text(const NodeFacts& facts) {
  JsonWriter out(1'024);
  out.begin_object();
  write_members(out, facts);
  return out.end_object().take();
}

std::string to_text(const OperationRequest& request) {
  JsonWriter out;
  return out.begin_object()
      .member("id", request.id)
      .member("run", request.run)
      .member("step", request.step)
      .member("controllerEpoch", request.controller_epoch)
      .member("kind", request.kind)
      .name("parameters")
      .embedded(request.parameters_json)
      .member("expectedInstanceId", request.expected_instance_id)
      .end_object()
      .take();
}

std::string to_text(const Permit& permit) {
  JsonWriter out;
  return out.begin_object()
      .member("controllerEpoch", permit.controller_epoch)
      .member("run", permit.run)
      .member("step", permit.step)
      .member("validForMs", permit.valid_for_ms)
      .end_object()
      .take();
}

std::string to_text(const Digest& digest) {
  JsonWriter out(1'024);
  out.begin_object()
      .member("pointNumber", digest.point_number)
      .member("pointPosition", digest.point_position)
      .member("logical", digest.logical)
      .member("readable", digest.readable)
      .name("chunks")
      .begin_list();
  for (const auto& chunk : digest.chunks) {
    out.value(chunk);
  }
  return out.end_list()
      .member("records", digest.records)
      .member("readableEvents", digest.readable_events)
      .end_object()
      .take();
}

std::string to_text(const DigestAnswer& answer) {
  if (answer.digest) {
    return to_text(*answer.digest);
  }
  JsonWriter out;
  return out.begin_object()
      .member("state", "computing")
      .member("bytesDone", answer.bytes_done)
      .member("bytesTotal", answer.bytes_total)
      .end_object()
      .take();
}

Result<NodeFacts> parse_node_facts(std::string_view body) {
  VERGER_TRY(const auto document, JsonDocument::parse(body, "facts"));
  return node_facts_of(document.root());
}

Result<NodeFacts> node_facts_of(JsonView value) {
  NodeFacts facts;
  Fields fields(value, "facts");
  fields.require("agentVersion");
  fields.read("agentVersion", facts.agent_version);
  fields.read("nodeInstanceId", facts.node_instance_id);
  fields.read("nodeRunning", facts.node_running);
  fields.read("nodeVersion", facts.node_version);
  fields.read("nodeState", facts.node_state);
  fields.read("databaseId", facts.database_id);
  fields.read("writerCheckpoint", facts.writer_checkpoint);
  fields.read("epochNumber", facts.epoch_number);
  fields.read("diskTotalBytes", facts.disk_total_bytes);
  fields.read("diskFreeBytes", facts.disk_free_bytes);
  fields.read("databaseBytes", facts.database_bytes);
  fields.read("eventCount", facts.event_count);
  fields.read("chunkFileCount", facts.chunk_file_count);
  fields.read("largestChunkBytes", facts.largest_chunk_bytes);
  fields.read("chunkSize", facts.chunk_size);
  fields.read("newestChunk", facts.newest_chunk);
  fields.read("completeChunkBytes", facts.complete_chunk_bytes);
  fields.read("bytesBelow", facts.bytes_below);
  fields.read("comparedChunk", facts.compared_chunk);
  fields.read("comparedBytes", facts.compared_bytes);
  fields.read("completedBytes", facts.completed_bytes);
  fields.read("indexDiskTotalBytes", facts.index_disk_total_bytes);
  fields.read("indexDiskFreeBytes", facts.index_disk_free_bytes);
  fields.read("largestTableBytes", facts.largest_table_bytes);
  fields.read("largestMergeBytes", facts.largest_merge_bytes);
  fields.read("highestControllerEpoch", facts.highest_controller_epoch);
  fields.read("takenAt", facts.taken_at);
  fields.read("filesProblem", facts.files_problem);
  fields.read("nodeProblem", facts.node_problem);
  fields.each("points", [&](JsonView element, const std::string& where) -> Result<void> {
    VERGER_TRY(auto point, parse_point(element, where));
    facts.points.push_back(std::move(point));
    return {};
  });
  fields.each("operations", [&](JsonView element, const std::string& where) -> Result<void> {
    VERGER_TRY(auto status, parse_status(element, where));
    facts.operations.push_back(std::move(status));
    return {};
  });
  if (const auto point = fields.find("lastFinishedPoint")) {
    VERGER_TRY(facts.last_finished_point, parse_point(*point, "facts.lastFinishedPoint"));
  }
  if (const auto unfinished = fields.find("unfinished")) {
    Fields inner(*unfinished, "facts.unfinished");
    inner.require("point");
    facts.unfinished.emplace();
    inner.read("stage", facts.unfinished->stage);
    VERGER_RETURN_IF_ERROR(inner.result());
    VERGER_TRY(facts.unfinished->point,
               parse_point(*inner.find("point"), "facts.unfinished.point"));
  }
  if (const auto running = fields.find("running")) {
    Fields inner(*running, "facts.running");
    auto& scavenge = facts.running.emplace();
    inner.read("id", scavenge.id);
    inner.read("phase", scavenge.phase);
    inner.read("chunksDone", scavenge.chunks_done);
    inner.read("chunksTotal", scavenge.chunks_total);
    inner.read("bytesSaved", scavenge.bytes_saved);
    VERGER_RETURN_IF_ERROR(inner.result());
  }
  VERGER_RETURN_IF_ERROR(fields.result());
  return facts;
}

Result<OperationStatus> parse_operation_status(std::string_view body) {
  VERGER_TRY(const auto document, JsonDocument::parse(body, "operation"));
  return parse_status(document.root(), "operation");
}

Result<OperationRequest> parse_operation_request(std::string_view body) {
  VERGER_TRY(const auto document, request_document(body, "operation request"));
  OperationRequest request;
  Fields fields(document.root(), "operation request", Errc::kInvalidArgument);
  for (const std::string_view name : {"id", "kind", "controllerEpoch"}) {
    fields.require(name);
  }
  fields.read("id", request.id);
  fields.read("run", request.run);
  fields.read("step", request.step);
  fields.read("controllerEpoch", request.controller_epoch);
  fields.read("kind", request.kind);
  fields.read("expectedInstanceId", request.expected_instance_id);
  if (const auto parameters = fields.find("parameters")) {
    if (parameters->is_object()) {
      request.parameters_json = in_camel_case(canonical(*parameters));
    } else {
      fields.wrong("parameters", "an object was expected");
    }
  }
  VERGER_RETURN_IF_ERROR(fields.result());
  if (!is_id(request.id)) {
    fields.wrong("id", "1 to 128 letters, digits or -_.: were expected");
  }
  if (!is_id(request.kind)) {
    fields.wrong("kind", "is not the name of an operation");
  }
  if (request.controller_epoch < 0) {
    fields.wrong("controllerEpoch", "must not be negative");
  }
  VERGER_RETURN_IF_ERROR(fields.result());
  return request;
}

Result<Permit> parse_permit(std::string_view body) {
  VERGER_TRY(const auto document, request_document(body, "permit"));
  Permit permit;
  Fields fields(document.root(), "permit", Errc::kInvalidArgument);
  fields.require("controllerEpoch");
  fields.read("controllerEpoch", permit.controller_epoch);
  fields.read("run", permit.run);
  fields.read("step", permit.step);
  fields.read("validForMs", permit.valid_for_ms);
  if (permit.controller_epoch < 0) {
    fields.wrong("controllerEpoch", "must not be negative");
  }
  if (permit.valid_for_ms < 0 || permit.valid_for_ms > kPermitLongest) {
    fields.wrong("validForMs", "must be from 0 (revoked) to 86400000");
  }
  VERGER_RETURN_IF_ERROR(fields.result());
  return permit;
}

Result<Digest> parse_digest(std::string_view body) {
  VERGER_TRY(const auto document, JsonDocument::parse(body, "digest"));
  Digest digest;
  Fields fields(document.root(), "digest");
  for (const std::string_view name : {"pointNumber", "logical", "readable"}) {
    fields.require(name);
  }
  fields.read("pointNumber", digest.point_number);
  fields.read("pointPosition", digest.point_position);
  fields.read("logical", digest.logical);
  fields.read("readable", digest.readable);
  fields.read("records", digest.records);
  fields.read("readableEvents", digest.readable_events);
  fields.each("chunks", [&](JsonView element, const std::string& where) -> Result<void> {
    if (!element.is_string()) {
      return Error{Errc::kCorruption, where + ": a string was expected"};
    }
    digest.chunks.push_back(element.string());
    return {};
  });
  VERGER_RETURN_IF_ERROR(fields.result());
  return digest;
}

}  // namespace verger::api
