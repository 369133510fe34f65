#include "nodeagent/client/grpc/redaction_client.h"

#include <algorithm>
#include <event_store/redaction.pb.h>
#include <event_store/streams.pb.h>
#include <filesystem>
#include <fmt/format.h>

#include "nodeagent/client/detail/call.h"
#include "nodeagent/grpc/client_call.h"

namespace verger::client {
namespace {

namespace pb = event_store::client::redaction;
using grpc::Code;

std::string trailer(const grpc::Status& status, std::string_view name) {
  const auto found = std::ranges::find(
      status.metadata, name, [](const auto& entry) { return std::string_view(entry.first); });
  return found == status.metadata.end() ? std::string() : found->second;
}

/// What a status other than OK means. The server's words are passed on as they are.
template <class T>
Outcome<T> judge(const grpc::Status& status) {
  if (status.http_status != 200) {
    return refused<T>("wrong_socket",
                      fmt::format("HTTP {}: {}", status.http_status, status.message));
  }
  const auto exception = trailer(status, "exception");
  const auto text = status.message.empty() ? fmt::format("status {}", static_cast<int>(status.code))
                                           : status.message;
  if (exception == "redaction-lock-failed") {
    return refused<T>("chunk_lock_held",
                      text + " (a scavenge or another redaction has the chunk lock)");
  }
  if (exception == "redaction-switch-chunk-failed") {
    const auto reason = trailer(status, "reason");
    return refused<T>("switch_refused", reason.empty() ? text : reason);
  }
  if (exception == "redaction-get-event-position-failed") {
    return refused<T>("positions_failed", text);
  }
  switch (status.code) {
    case Code::kUnauthenticated:
      return refused<T>("bad_credentials", text);
    case Code::kPermissionDenied:
      return refused<T>("lacks_role", text);
    case Code::kUnimplemented:
      return refused<T>("no_such_route", text);
    case Code::kUnavailable:
      return refused<T>("not_ready", text);
    case Code::kInvalidArgument:
      return refused<T>("invalid", text);
    case Code::kFailedPrecondition:
      return refused<T>("rejected", text);
    default:
      return unknown<T>("server_error", text);
  }
}

/// What an error of the connection means for a call that may have acted.
template <class T>
Outcome<T> no_status(const Error& error) {
  return error.code == Errc::kUnavailable ? refused<T>("unreachable", error.message)
                                          : unknown<T>("no_answer", error.message);
}

event_store::client::streams::ReadReq request_to_read(const EventToFind& event) {
  event_store::client::streams::ReadReq request;
  auto& options = *request.mutable_options();
  options.mutable_stream()->mutable_stream_identifier()->set_stream_name(event.stream);
  options.mutable_stream()->set_revision(static_cast<std::uint64_t>(event.number.value()));
  options.set_count(1);
  options.mutable_no_filter();
  options.mutable_uuid_option()->mutable_structured();
  return request;
}

/// Of what a read of one event has answered so far.
std::optional<std::size_t> data_in(const event_store::client::streams::ReadResp& response,
                                   const EventToFind& event) {
  if (!response.has_event() || response.event().event().stream_revision() !=
                                   static_cast<std::uint64_t>(event.number.value())) {
    return std::nullopt;
  }
  return response.event().event().data().size();
}

class Lock final : public HeldChunkLock {
 public:
  Lock(std::unique_ptr<grpc::ClientCall> call, RedactionClientOptions options)
      : call_(std::move(call)), options_(options) {}

  net::awaitable<Outcome<Nothing>> switch_chunk(std::string target, std::string new_file) override {
    pb::SwitchChunkReq request;
    request.set_target_chunk_file(std::move(target));
    request.set_new_chunk_file(std::move(new_file));
    call_->expires_after(options_.switch_deadline);
    // Where the call has ended meanwhile, its status is what counts.
    static_cast<void>(co_await call_->send(request.SerializeAsString()));
    const auto answer = co_await call_->next<pb::SwitchChunkResp>();
    if (!answer) {
      co_return no_status<Nothing>(answer.error());
    }
    if (!*answer) {
      co_return call_->status().code == Code::kOk
          ? unknown<Nothing>("unexpected_answer", "the call ended before the switch was answered")
          : judge<Nothing>(call_->status());
    }
    call_->never_expires();
    co_return done(Nothing{});
  }

  net::awaitable<Outcome<Nothing>> release() override {
    call_->expires_after(options_.deadline);
    call_->half_close();
    const auto answer = co_await call_->read();
    if (!answer) {
      co_return no_status<Nothing>(answer.error());
    }
    if (*answer) {
      co_return unknown<Nothing>("unexpected_answer", "an answer to no request");
    }
    co_return call_->status().code == Code::kOk ? done(Nothing{}) : judge<Nothing>(call_->status());
  }

 private:
  std::unique_ptr<grpc::ClientCall> call_;
  RedactionClientOptions options_;
};

std::vector<EventPosition> positions_in(const pb::GetEventPositionResp& response) {
  std::vector<EventPosition> out;
  for (const auto& found : response.event_positions()) {
    const auto& chunk = found.chunk_info();
    out.push_back({.position = LogPosition(static_cast<std::int64_t>(found.log_position())),
                   .chunk_file = chunk.file_name(),
                   .chunk_version = chunk.version(),
                   .chunk_completed = chunk.is_complete(),
                   .file_offset = chunk.event_offset()});
  }
  return out;
}

}  // namespace

Result<RedactionSocket> find_redaction_socket(const std::string& database_directory) {
  const std::filesystem::path directory(database_directory);
  for (const auto& [name, package] : {std::pair("eventstore.sock", "event_store.client.redaction"),
                                      std::pair("kurrent.sock", "kurrent.client.redaction")}) {
    std::error_code error;
    if (std::filesystem::is_socket(directory / name, error)) {
      return RedactionSocket{.path = (directory / name).string(), .package = package};
    }
  }
  return Error{
      Errc::kNotFound,
      fmt::format("{}: neither eventstore.sock nor kurrent.sock is there: start the node with "
                  "EnableUnixSocket (servers from 23.6 on, --enable-unix-socket of an embedded "
                  "node)",
                  database_directory)};
}

Result<std::unique_ptr<RedactionClient>> RedactionClient::connect(
    const net::any_io_executor& executor, RedactionSocket socket, RedactionClientOptions options,
    http::Timers& timers, Log& log) {
  VERGER_TRY(auto connection, http::Http2Client::connect_local(executor, socket.path,
                                                               options.connection, timers, log));
  return std::make_unique<RedactionClient>(std::move(connection), std::move(socket.package),
                                           options);
}

RedactionClient::RedactionClient(std::unique_ptr<http::Http2Client> connection, std::string package,
                                 RedactionClientOptions options)
    : connection_(std::move(connection)), package_(std::move(package)), options_(options) {}

net::awaitable<Outcome<std::vector<std::vector<EventPosition>>>> RedactionClient::positions(
    std::vector<EventToFind> events) {
  using Positions = std::vector<std::vector<EventPosition>>;
  grpc::ClientCall call(*connection_, package_ + ".Redaction/GetEventPositions");
  Positions found;
  for (const auto& event : events) {
    pb::GetEventPositionReq request;
    request.mutable_stream_identifier()->set_stream_name(event.stream);
    request.set_stream_revision(static_cast<std::uint64_t>(event.number.value()));
    call.expires_after(options_.deadline);
    static_cast<void>(co_await call.send(request.SerializeAsString()));
    const auto answer = co_await call.next<pb::GetEventPositionResp>();
    if (!answer) {
      co_return no_status<Positions>(answer.error());
    }
    if (!*answer) {
      auto outcome = judge<Positions>(call.status());
      outcome.why = fmt::format("{}@{}: {}", event.number, event.stream, outcome.why);
      co_return outcome;
    }
    found.push_back(positions_in(**answer));
  }
  call.half_close();
  co_return done(std::move(found));
}

net::awaitable<Outcome<std::unique_ptr<HeldChunkLock>>> RedactionClient::lock() {
  using Held = std::unique_ptr<HeldChunkLock>;
  auto call =
      std::make_unique<grpc::ClientCall>(*connection_, package_ + ".Redaction/SwitchChunks");
  call->expires_after(options_.deadline);
  const auto begun = co_await call->begun();
  if (!begun) {
    co_return no_status<Held>(begun.error());
  }
  if (!*begun) {
    co_return judge<Held>(call->status());
  }
  call->never_expires();
  co_return done<Held>(std::make_unique<Lock>(std::move(call), options_));
}

net::awaitable<Outcome<std::vector<std::optional<std::size_t>>>> RedactionClient::data_sizes(
    std::vector<EventToFind> events) {
  using Sizes = std::vector<std::optional<std::size_t>>;
  Sizes sizes;
  for (const auto& event : events) {
    grpc::ClientCall call(*connection_, "event_store.client.streams.Streams/Read");
    call.expires_after(options_.deadline);
    static_cast<void>(co_await call.send(request_to_read(event).SerializeAsString()));
    call.half_close();
    std::optional<std::size_t> size;
    while (true) {
      const auto answer = co_await call.next<event_store::client::streams::ReadResp>();
      if (!answer) {
        co_return no_status<Sizes>(answer.error());
      }
      if (!*answer) {
        break;
      }
      size = size ? size : data_in(**answer, event);
    }
    const bool deleted = trailer(call.status(), "exception") == "stream-deleted";
    if (call.status().code != Code::kOk && !deleted) {
      auto outcome = judge<Sizes>(call.status());
      outcome.why = fmt::format("{}@{}: {}", event.number, event.stream, outcome.why);
      co_return outcome;
    }
    sizes.push_back(size);
  }
  co_return done(std::move(sizes));
}

}  // namespace verger::client
