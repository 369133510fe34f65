#pragma once

#include <cstdint>
#include <event_store/streams.pb.h>
#include <limits>
#include <optional>
#include <string>

#include "engine/streams/event_store.h"
#include "nodeagent/grpc/status.h"
#include "nodeagent/node/authentication.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/grpc/recorded_event.h"
#include "nodeagent/node/grpc/service_base.h"
#include "nodeagent/node/write_service.h"

/// What the writing methods of Streams share.
namespace verger::node::rpc {

inline constexpr const char* kStreamsService = "streams.Streams";
/// A record of the log at most, less what it has besides data. Of a whole append as well: the size
/// that is configured counts data alone.
inline constexpr std::size_t kMostStreamsMessageBytes = (std::size_t{16} << 20U) - 10'000;
inline constexpr std::uint64_t kNoRevision = std::numeric_limits<std::uint64_t>::max();

/// What an expectation says, in the words of the log; the error is the end of the call.
/// `Options`: of Append, Delete or Tombstone; `name`: of its oneof.
template <class Options>
std::expected<std::int64_t, grpc::Status> expected_version(const Options& options,
                                                           std::string_view name) {
  switch (options.expected_stream_revision_case()) {
    case Options::kRevision: {
      const auto number = event_number(options.revision());
      if (!number) {
        return std::unexpected(grpc::handler_failed());
      }
      return *number;
    }
    case Options::kNoStream:
      return streams::kExpectNoStream;
    case Options::kAny:
      return streams::kExpectAny;
    case Options::kStreamExists:
      return streams::kExpectStreamExists;
    default:
      return std::unexpected(no_case(name));
  }
}

/// Whether the caller may do it; no caller may delete $all or metadata, or write to $all or to a
/// stream in memory.
inline bool may_change(const NodeCall& at, std::string_view stream, StreamAction action) {
  if (MemoryStreams::has(stream)) {
    return false;
  }
  if (at.core->options.insecure) {
    return true;
  }
  const bool fixed =
      stream == "$all" || (action == StreamAction::kDelete && stream.starts_with("$$"));
  return !fixed && !stream.empty() && may(*at.core, at.caller, stream, action);
}

/// An event of a request; `Message`: of Append or of BatchAppend. The error is what the server
/// fails with: a status for what Append checks, none where its handler fails.
enum class EventFault : std::uint8_t { kNoType, kNoContentType, kBadId, kEmptyType };
template <class Message>
std::expected<streams::NewEvent, EventFault> new_event(Message& proposed) {
  auto& metadata = *proposed.mutable_metadata();
  const auto type = metadata.find("type");
  if (type == metadata.end()) {
    return std::unexpected(EventFault::kNoType);
  }
  const auto content_type = metadata.find("content-type");
  if (content_type == metadata.end()) {
    return std::unexpected(EventFault::kNoContentType);
  }
  const auto id = parse_uuid(proposed.id());
  if (!id || id->is_zero()) {
    return std::unexpected(EventFault::kBadId);
  }
  if (type->second.empty()) {
    return std::unexpected(EventFault::kEmptyType);
  }
  const auto bytes = [](const std::string& text) {
    const auto view = as_bytes(text);
    return Bytes(view.begin(), view.end());
  };
  return streams::NewEvent{.id = *id,
                           .type = type->second,
                           .is_json = content_type->second == "application/json",
                           .data = bytes(proposed.data()),
                           .metadata = bytes(proposed.custom_metadata())};
}

/// How a write that was not done ends a call; nullopt: it was done, or the version was wrong.
std::optional<grpc::Status> write_failure(const Core& core, const WriteReply& reply,
                                          std::string_view stream);
grpc::Status too_large(std::int64_t most_bytes);

net::awaitable<grpc::Status> append(NodeCall at);
net::awaitable<grpc::Status> batch_append(NodeCall at);
net::awaitable<grpc::Status> delete_stream(NodeCall at);
net::awaitable<grpc::Status> tombstone_stream(NodeCall at);
net::awaitable<grpc::Status> read_events(NodeCall at);

}  // namespace verger::node::rpc
