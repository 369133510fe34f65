// Streams: Append, Delete, Tombstone.
#include "nodeagent/node/grpc/proposed_events.h"

namespace verger::node::rpc {
namespace {

using ::verger::grpc::Code;
using ::verger::grpc::Status;
namespace pb = event_store::client::streams;

Status event_status(EventFault fault) {
  const char* missing = fault == EventFault::kNoType          ? "type"
                        : fault == EventFault::kNoContentType ? "content-type"
                                                              : nullptr;
  if (missing == nullptr) {
    return grpc::handler_failed();
  }
  return {.code = Code::kInvalidArgument,
          .message = fmt::format("Required Metadata Property '{}' is missing", missing),
          .metadata = {{"exception", "missing-required-metadata-property"},
                       {"required-metadata-properties", "type,content-type"}}};
}

void set_position(LogPosition position, auto& into) {
  into.set_commit_position(static_cast<std::uint64_t>(position.value()));
  into.set_prepare_position(static_cast<std::uint64_t>(position.value()));
}

pb::AppendResp append_success(const WriteReply& reply) {
  pb::AppendResp response;
  auto& success = *response.mutable_success();
  if (reply.last.value() < 0) {
    success.mutable_no_stream();
  } else {
    success.set_current_revision(static_cast<std::uint64_t>(reply.last.value()));
  }
  set_position(reply.position, *success.mutable_position());
  return response;
}

pb::AppendResp wrong_version(const pb::AppendReq::Options& options, const WriteReply& reply) {
  pb::AppendResp response;
  auto& wrong = *response.mutable_wrong_expected_version();
  if (reply.current_version.value() < 0) {
    wrong.mutable_no_stream_20_6_0();
    wrong.mutable_current_no_stream();
  } else {
    const auto current = static_cast<std::uint64_t>(reply.current_version.value());
    wrong.set_current_revision_20_6_0(current);
    wrong.set_current_revision(current);
  }
  switch (options.expected_stream_revision_case()) {
    case pb::AppendReq::Options::kRevision:
      wrong.set_expected_revision_20_6_0(options.revision());
      wrong.set_expected_revision(options.revision());
      break;
    case pb::AppendReq::Options::kNoStream:
      wrong.set_expected_revision_20_6_0(kNoRevision);
      wrong.mutable_expected_no_stream();
      break;
    case pb::AppendReq::Options::kAny:
      wrong.mutable_any_20_6_0();
      wrong.mutable_expected_any();
      break;
    case pb::AppendReq::Options::kStreamExists:
      wrong.mutable_stream_exists_20_6_0();
      wrong.mutable_expected_stream_exists();
      break;
    case pb::AppendReq::Options::EXPECTED_STREAM_REVISION_NOT_SET:
      break;
  }
  return response;
}

/// Delete and Tombstone, which differ in their messages alone.
template <class Request, class Response>
net::awaitable<Status> remove_stream(NodeCall at, WriteRequest::Kind kind, std::string oneof) {
  const InFlightCall in_flight(at.core);
  const auto request = co_await at.call->only<Request>();
  if (!request) {
    co_return request.error();
  }
  if (!request->has_options()) {
    co_return grpc::handler_failed();
  }
  const auto& options = request->options();
  const auto expected = expected_version(options, oneof);
  if (!expected) {
    co_return expected.error();
  }
  const auto stream = stream_name(options.has_stream_identifier(), options.stream_identifier());
  if (!stream && at.core->options.insecure) {
    co_return grpc::handler_failed();
  }
  if (!may_change(at, stream.value_or(""), StreamAction::kDelete)) {
    co_return access_denied();
  }
  if (auto elsewhere = not_the_leader(*at.core, at.call->head())) {
    co_return *std::move(elsewhere);
  }
  WriteRequest request_of_node;
  request_of_node.kind = kind;
  request_of_node.stream = *stream;
  request_of_node.expected_version = *expected;
  const auto reply = co_await write(at.core, std::move(request_of_node));
  if (reply.status == WriteStatus::kWrongVersion) {
    const auto actual = std::to_string(reply.current_version.value());
    co_return Status{
        .code = Code::kFailedPrecondition,
        .message = fmt::format("Delete failed due to WrongExpectedVersion. Stream: {}, Expected "
                               "version: {}, Actual version: {}",
                               *stream, *expected, actual),
        .metadata = {{"exception", "wrong-expected-version"},
                     {"stream-name", *stream},
                     {"expected-version", std::to_string(*expected)},
                     {"actual-version", actual}}};
  }
  if (auto failed = write_failure(*at.core, reply, *stream)) {
    co_return *std::move(failed);
  }
  Response response;
  set_position(reply.position, *response.mutable_position());
  co_await at.call->write(response);
  co_return Status{};
}

}  // namespace

Status too_large(std::int64_t most_bytes) {
  const auto limit = std::to_string(most_bytes);
  return {
      .code = Code::kInvalidArgument,
      .message = fmt::format("Maximum Append Size of {} Exceeded.", limit),
      .metadata = {{"exception", "maximum-append-size-exceeded"}, {"maximum-append-size", limit}}};
}

std::optional<Status> write_failure(const Core& core, const WriteReply& reply,
                                    std::string_view stream) {
  switch (reply.status) {
    case WriteStatus::kDone:
    case WriteStatus::kWrongVersion:
      return std::nullopt;
    case WriteStatus::kDeleted:
      return stream_deleted(stream);
    case WriteStatus::kInvalid:
      core.env.log.info("a write was refused", {{"reason", reply.message}});
      return grpc::handler_failed();
    case WriteStatus::kNotReady:
      return not_ready();
    case WriteStatus::kTimeout:
      break;
  }
  const bool forwarded = core.election->state() != api::NodeState::kLeader;
  return Status{.code = Code::kAborted,
                .message = fmt::format("Operation timed out: {}", forwarded ? "Forwarding timeout"
                                                                            : "Request canceled by "
                                                                              "server")};
}

net::awaitable<Status> append(NodeCall at) {
  const InFlightCall in_flight(at.core);
  auto first = co_await at.call->next<pb::AppendReq>();
  if (!first) {
    co_return first.error();
  }
  if (!*first || !(*first)->has_options()) {
    co_return grpc::handler_failed();
  }
  const auto& options = (*first)->options();
  const auto stream = stream_name(options.has_stream_identifier(), options.stream_identifier());
  if (!stream && at.core->options.insecure) {
    co_return grpc::handler_failed();
  }
  const auto expected =
      expected_version(options, "AppendReq+Types+Options+ExpectedStreamRevisionOneofCase");
  if (!expected) {
    co_return expected.error();
  }
  if (!may_change(at, stream.value_or(""), StreamAction::kWrite)) {
    co_return access_denied();
  }
  WriteRequest request;
  request.stream = *stream;
  request.expected_version = *expected;
  const auto limit = at.core->options.max_append_size;
  std::int64_t size = 0;
  std::size_t whole = 0;
  while (true) {
    auto message = co_await at.call->next<pb::AppendReq>();
    if (!message) {
      co_return message.error();
    }
    if (!*message) {
      break;
    }
    if (!(*message)->has_proposed_message()) {
      co_return grpc::handler_failed();
    }
    auto& proposed = *(*message)->mutable_proposed_message();
    size += static_cast<std::int64_t>(proposed.data().size());
    whole += proposed.ByteSizeLong();
    if (size > limit || whole > kMostStreamsMessageBytes) {
      co_return too_large(limit);
    }
    auto event = new_event(proposed);
    if (!event) {
      co_return event_status(event.error());
    }
    request.events.push_back(*std::move(event));
  }
  if (auto elsewhere = not_the_leader(*at.core, at.call->head())) {
    co_return *std::move(elsewhere);
  }
  const auto reply = co_await write(at.core, std::move(request));
  if (auto failed = write_failure(*at.core, reply, *stream)) {
    co_return *std::move(failed);
  }
  co_await at.call->write(reply.status == WriteStatus::kDone ? append_success(reply)
                                                             : wrong_version(options, reply));
  co_return Status{};
}

net::awaitable<Status> delete_stream(NodeCall at) {
  return remove_stream<pb::DeleteReq, pb::DeleteResp>(
      std::move(at), WriteRequest::Kind::kSoftDelete,
      "DeleteReq+Types+Options+ExpectedStreamRevisionOneofCase");
}

net::awaitable<Status> tombstone_stream(NodeCall at) {
  return remove_stream<pb::TombstoneReq, pb::TombstoneResp>(
      std::move(at), WriteRequest::Kind::kHardDelete,
      "TombstoneReq+Types+Options+ExpectedStreamRevisionOneofCase");
}

void add_streams(const Registry& registry) {
  const auto add = [&](const char* name, NodeMethod method) {
    registry.add(kStreamsService, name, std::move(method), kMostStreamsMessageBytes);
  };
  add("Read", read_events);
  add("Append", append);
  add("Delete", delete_stream);
  add("Tombstone", tombstone_stream);
  add("BatchAppend", batch_append);
}

}  // namespace verger::node::rpc
