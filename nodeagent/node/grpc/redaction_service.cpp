// Redaction: positions of events, and chunk files that are switched in while the chunk lock is
// held.
#include <algorithm>
#include <event_store/redaction.pb.h>
#include <limits>

#include "engine/redaction/chunk_switch.h"
#include "nodeagent/node/grpc/service_base.h"
#include "nodeagent/node/job_runner.h"

namespace verger::node::rpc {
namespace {

using ::verger::grpc::Code;
using ::verger::grpc::Status;
namespace wire = event_store::client::redaction;

Status lock_failed() {
  return {.code = Code::kFailedPrecondition,
          .message = "Failed to acquire lock for redaction.",
          .metadata = {{"exception", "redaction-lock-failed"}}};
}

Status switch_failed(redaction::SwitchResult result) {
  const std::string reason(reason_of(result));
  return {.code = Code::kFailedPrecondition,
          .message = fmt::format("Failed to switch chunk during redaction: '{}'", reason),
          .metadata = {{"exception", "redaction-switch-chunk-failed"}, {"reason", reason}}};
}

Status positions_failed() {
  const std::string reason(reason_of(redaction::SwitchResult::kUnexpectedError));
  return {.code = Code::kUnknown,
          .message = fmt::format("Failed to get event position: '{}'", reason),
          .metadata = {{"exception", "redaction-get-event-position-failed"}, {"reason", reason}}};
}

/// A client elsewhere could not prepare a file in this directory, and the caller of the socket is
/// the system account.
net::awaitable<Status> only_by_socket(NodeCall at, NodeMethod method) {
  if (!at.call->head().peer.is_local_socket) {
    co_await at.call->answer_as_http(400, "application/json; charset=utf-8",
                                     "\"Redaction is only available via Unix Sockets\"");
    co_return Status{};
  }
  co_return co_await method(std::move(at));
}

/// Every record of the event: an old server may have written one twice.
Result<wire::GetEventPositionResp> positions_of(const Core& core, const std::string& stream,
                                                EventNumber number) {
  wire::GetEventPositionResp response;
  const auto& index = core.db().stream_index();
  VERGER_TRY(const auto entries, index.range_forward(index.hash(stream), number, number,
                                                     std::numeric_limits<std::size_t>::max()));
  Bytes buffer;
  for (const auto& entry : entries) {
    // The record is read by the chunk that is named: it may be switched any time.
    const auto chunk = core.log().chunk_at(entry.position);
    if (chunk == nullptr) {
      continue;
    }
    const auto record = chunk->read(entry.position, buffer);
    if (!record) {
      if (record.error().code == Errc::kNotFound) {
        continue;  // a scavenge leaves entries without records
      }
      return record.error();
    }
    const auto* prepare = record->prepare();
    if (prepare == nullptr || prepare->stream != stream) {
      continue;  // of another stream with the same hash
    }
    if (record->file_offset > std::numeric_limits<std::uint32_t>::max()) {
      return Error{Errc::kUnsupported, fmt::format("{}: offset {} does not fit into the answer",
                                                   chunk->path().string(), record->file_offset)};
    }
    auto& out = *response.add_event_positions();
    out.set_log_position(static_cast<std::uint64_t>(entry.position.value()));
    auto& info = *out.mutable_chunk_info();
    info.set_file_name(chunk->path().filename().string());
    info.set_version(chunk->header().effective_version());
    info.set_is_complete(chunk->completed());
    info.set_event_offset(static_cast<std::uint32_t>(record->file_offset));
  }
  return response;
}

net::awaitable<Status> get_event_positions(NodeCall at) {
  while (true) {
    const auto request = co_await at.call->next<wire::GetEventPositionReq>();
    if (!request) {
      co_return request.error();
    }
    if (!*request) {
      co_return Status{};
    }
    if (!at.core->serving()) {
      co_return not_ready();
    }
    const auto stream =
        stream_name((*request)->has_stream_identifier(), (*request)->stream_identifier());
    constexpr auto kGreatest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!stream || (*request)->stream_revision() > kGreatest) {
      co_return grpc::handler_failed();
    }
    if (!may(*at.core, at.caller, *stream, StreamAction::kRead)) {
      co_return access_denied();
    }
    const EventNumber number(static_cast<std::int64_t>((*request)->stream_revision()));
    const auto response = positions_of(*at.core, *stream, number);
    if (!response) {
      at.core->env.log.error(
          "an event's position was not found",
          {{"node", at.core->self}, {"stream", *stream}, {"reason", response.error().message}});
      co_return positions_failed();
    }
    if (!co_await at.call->write(*response)) {
      co_return grpc::client_gone();
    }
  }
}

/// The job with the node that it works on.
struct SwitchWork {
  std::shared_ptr<Core> core;
  redaction::ChunkSwitchJob job;
};

net::awaitable<redaction::SwitchResult> switch_chunk(std::shared_ptr<Core> core,
                                                     wire::SwitchChunkReq request) {
  const InFlightCall in_flight(core);
  const auto work = std::make_shared<SwitchWork>(
      core, redaction::ChunkSwitchJob(core->env.files, core->log(), request.target_chunk_file(),
                                      request.new_chunk_file()));
  const auto ended = co_await core->env.jobs.run(std::shared_ptr<Job>(work, &work->job),
                                                 std::make_shared<StopFlag>());
  const auto result = ended ? work->job.result() : redaction::SwitchResult::kUnexpectedError;
  const bool done = result == redaction::SwitchResult::kSuccess;
  core->env.log.write(
      done ? LogLevel::kInfo : LogLevel::kWarning,
      done ? "a chunk file was switched" : "a chunk file was not switched",
      std::vector<LogField>{{"node", fmt::to_string(core->self)},
                            {"target", request.target_chunk_file()},
                            {"new", request.new_chunk_file()},
                            {"result", done ? "success" : std::string(reason_of(result))},
                            {"detail", ended ? work->job.detail() : ended.error().message}});
  co_return result;
}

/// The call is the lock: its head says that it is held, and its end that it is not.
net::awaitable<Status> switch_chunks(NodeCall at) {
  if (at.caller.kind != Identity::Kind::kSystem) {
    co_return access_denied();
  }
  const auto lock =
      at.core->options.misbehaviour.chunk_lock_held ? nullptr : at.core->chunk_lock.try_take();
  if (lock == nullptr) {
    co_return lock_failed();
  }
  at.call->send_head();
  while (true) {
    const auto request = co_await at.call->next<wire::SwitchChunkReq>();
    if (!request) {
      co_return request.error();
    }
    if (!*request) {
      co_return Status{};
    }
    if (!at.core->serving()) {
      co_return not_ready();
    }
    if ((*request)->target_chunk_file().empty() || (*request)->new_chunk_file().empty()) {
      co_return grpc::handler_failed();
    }
    const auto result = co_await switch_chunk(at.core, **request);
    if (result != redaction::SwitchResult::kSuccess) {
      co_return switch_failed(result);
    }
    if (!co_await at.call->write(wire::SwitchChunkResp())) {
      co_return grpc::client_gone();
    }
  }
}

}  // namespace

void add_redaction(const Registry& registry) {
  const auto add = [&](const std::string& method, NodeMethod handler) {
    registry.add("redaction.Redaction", method, [handler = std::move(handler)](NodeCall at) {
      return only_by_socket(std::move(at), handler);
    });
  };
  add("GetEventPositions", get_event_positions);
  add("SwitchChunks", switch_chunks);
}

}  // namespace verger::node::rpc
