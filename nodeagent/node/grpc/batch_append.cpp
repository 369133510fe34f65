// Streams: BatchAppend, many writes under way on one call.
#include <map>

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "nodeagent/http/notifier.h"
#include "nodeagent/node/grpc/proposed_events.h"

namespace verger::node::rpc {
namespace {

using ::verger::grpc::Status;
namespace es = event_store::client;
namespace pb = event_store::client::streams;
using Request = pb::BatchAppendReq;
using Response = pb::BatchAppendResp;

/// A write of which not all parts have come.
struct Batch {
  Uuid id;
  Request::Options options;
  WriteRequest write;
  std::int64_t size = 0;  ///< of the events' data
  std::size_t whole = 0;  ///< of all that they have
  Monotonic deadline{};
};

Response error_reply(const es::UUID& id, const Request::Options& options, int code,
                     std::string message, const google::protobuf::Message& detail) {
  Response response;
  if (id.value_case() != es::UUID::VALUE_NOT_SET) {
    *response.mutable_correlation_id() = id;
  }
  if (options.has_stream_identifier()) {
    *response.mutable_stream_identifier() = options.stream_identifier();
  }
  auto& error = *response.mutable_error();
  error.set_code(code);
  error.set_message(std::move(message));
  error.mutable_details()->PackFrom(detail);
  return response;
}

Response bad_request(const es::UUID& id, const Request::Options& options, std::string text) {
  es::BadRequest detail;
  detail.set_message(std::move(text));
  constexpr int kInvalidArgument = 3;
  return error_reply(id, options, kInvalidArgument, "BadRequest", detail);
}

/// Its correlation id is structured, whatever the request's was.
Response timeout_reply(const Uuid& id, const Request::Options& options) {
  es::UUID structured;
  write_uuid(id, false, structured);
  constexpr int kDeadlineExceeded = 4;
  return error_reply(structured, options, kDeadlineExceeded, "Timeout", es::Timeout());
}

Response wrong_version_reply(const es::UUID& id, const Request::Options& options,
                             const WriteReply& reply) {
  es::WrongExpectedVersion detail;
  if (reply.current_version.value() < 0) {
    detail.mutable_current_no_stream();
  } else {
    detail.set_current_stream_revision(static_cast<std::uint64_t>(reply.current_version.value()));
  }
  switch (options.expected_stream_position_case()) {
    case Request::Options::kStreamPosition:
      detail.set_expected_stream_position(options.stream_position());
      break;
    case Request::Options::kNoStream:
      detail.mutable_expected_no_stream();
      break;
    case Request::Options::kAny:
      detail.mutable_expected_any();
      break;
    case Request::Options::kStreamExists:
      detail.mutable_expected_stream_exists();
      break;
    case Request::Options::EXPECTED_STREAM_POSITION_NOT_SET:
      break;
  }
  constexpr int kAlreadyExists = 6;
  return error_reply(id, options, kAlreadyExists, "WrongExpectedVersion", detail);
}

Response reply_of(const es::UUID& id, const Request::Options& options, const WriteReply& reply) {
  switch (reply.status) {
    case WriteStatus::kDone:
      break;
    case WriteStatus::kWrongVersion:
      return wrong_version_reply(id, options, reply);
    case WriteStatus::kDeleted: {
      es::StreamDeleted detail;
      *detail.mutable_stream_identifier() = options.stream_identifier();
      constexpr int kNotFound = 5;
      return error_reply(id, options, kNotFound, "StreamDeleted", detail);
    }
    case WriteStatus::kInvalid:
      return bad_request(id, options, reply.message);
    case WriteStatus::kNotReady:
      return error_reply(id, options, 0, "Server Is Not Ready", google::protobuf::Empty());
    case WriteStatus::kTimeout: {
      constexpr int kDeadlineExceeded = 4;
      return error_reply(id, options, kDeadlineExceeded, "Timeout", es::Timeout());
    }
  }
  Response response;
  *response.mutable_correlation_id() = id;
  *response.mutable_stream_identifier() = options.stream_identifier();
  auto& success = *response.mutable_success();
  if (reply.last.value() < 0) {
    success.mutable_no_stream();
  } else {
    success.set_current_revision(static_cast<std::uint64_t>(reply.last.value()));
  }
  const auto position = static_cast<std::uint64_t>(reply.position.value());
  success.mutable_position()->set_commit_position(position);
  success.mutable_position()->set_prepare_position(position);
  return response;
}

std::expected<std::int64_t, std::string> version_of(const Request::Options& options) {
  switch (options.expected_stream_position_case()) {
    case Request::Options::kStreamPosition:
      if (const auto number = event_number(options.stream_position())) {
        return *number;
      }
      return std::unexpected("Specified argument was out of the range of valid values.");
    case Request::Options::kNoStream:
      return streams::kExpectNoStream;
    case Request::Options::kAny:
      return streams::kExpectAny;
    case Request::Options::kStreamExists:
      return streams::kExpectStreamExists;
    case Request::Options::EXPECTED_STREAM_POSITION_NOT_SET:
      break;
  }
  return std::unexpected(
      fmt::format("Status(StatusCode=\"InvalidArgument\", Detail=\"{}\")",
                  no_case("BatchAppendReq+Types+Options+ExpectedStreamPositionOneofCase").message));
}

/// One call, with the writes under way. Its coroutines hold it.
class BatchCall : public std::enable_shared_from_this<BatchCall> {
 public:
  explicit BatchCall(NodeCall at) : at_(std::move(at)), wake_(at_.core->env.executor) {}

  static net::awaitable<Status> serve(std::shared_ptr<BatchCall> self);

 private:
  /// Takes one message; a status ends the call.
  static net::awaitable<std::optional<Status>> take(std::shared_ptr<BatchCall> self,
                                                    Request request);
  /// The batch of a first part; else what is answered.
  std::expected<Batch, Response> begin(const Request& request, const Uuid& id) const;
  static net::awaitable<void> write_batch(std::shared_ptr<BatchCall> self, es::UUID id,
                                          Batch batch);
  static net::awaitable<void> answer(std::shared_ptr<BatchCall> self, Response response);
  static net::awaitable<void> end_late_batches(std::shared_ptr<BatchCall> self);

  NodeCall at_;
  http::Notifier wake_;
  std::map<Uuid, Batch> open_;
  bool half_closed_ = false;
  bool over_ = false;
  bool watching_ = false;
};

net::awaitable<void> BatchCall::answer(std::shared_ptr<BatchCall> self, Response response) {
  if (self->over_) {
    co_return;
  }
  // The first reply behind the client's end is the last one, as it is the server's.
  const bool last = self->half_closed_;
  co_await self->at_.call->write(response);
  if (last) {
    self->over_ = true;
    self->wake_.notify();
  }
}

net::awaitable<void> BatchCall::write_batch(std::shared_ptr<BatchCall> self, es::UUID id,
                                            Batch batch) {
  const InFlightCall in_flight(self->at_.core);
  // What has arrived behind it is seen first: the client's end decides whether others are answered.
  co_await net::post(self->at_.core->env.executor, net::use_awaitable);
  const auto reply = co_await write(self->at_.core, std::move(batch.write));
  co_await answer(self, reply_of(id, batch.options, reply));
}

net::awaitable<void> BatchCall::end_late_batches(std::shared_ptr<BatchCall> self) {
  const auto& core = self->at_.core;
  while (!self->open_.empty() && !self->over_ && !self->at_.call->cancelled()) {
    co_await core->env.timers.sleep_for(core->options.timings.tick);
    const auto now = core->now();
    for (auto each = self->open_.begin(); each != self->open_.end();) {
      if (each->second.deadline > now) {
        ++each;
        continue;
      }
      auto late = timeout_reply(each->second.id, each->second.options);
      self->open_.erase(each);
      co_await answer(self, std::move(late));
      each = self->open_.begin();  // the map may have changed meanwhile
    }
  }
  self->watching_ = false;
}

std::expected<Batch, Response> BatchCall::begin(const Request& request, const Uuid& id) const {
  const auto& options = request.options();
  const auto bad = [&](std::string text) {
    return std::unexpected(bad_request(request.correlation_id(), options, std::move(text)));
  };
  Batch batch;
  batch.id = id;
  batch.options = options;
  const auto stream = stream_name(options.has_stream_identifier(), options.stream_identifier());
  if (!stream && at_.core->options.insecure) {
    return bad("Object reference not set to an instance of an object.");
  }
  const auto expected = version_of(options);
  if (!expected) {
    return bad(expected.error());
  }
  if (!may_change(at_, stream.value_or(""), StreamAction::kWrite)) {
    constexpr int kPermissionDenied = 7;
    return std::unexpected(error_reply(request.correlation_id(), options, kPermissionDenied,
                                       "AccessDenied", es::AccessDenied()));
  }
  batch.write.stream = *stream;
  batch.write.expected_version = *expected;
  std::chrono::nanoseconds limit = at_.core->options.timings.write_timeout;
  if (options.has_deadline()) {
    const auto& wanted = options.deadline();
    constexpr std::int64_t kLongest = 86'400;  // beyond the node's own limit anyway
    limit = std::min(limit, std::chrono::nanoseconds(std::chrono::seconds(
                                std::clamp<std::int64_t>(wanted.seconds(), -1, kLongest))) +
                                std::chrono::nanoseconds(wanted.nanos()));
  } else if (options.has_deadline_21_10_0()) {
    const auto& at = options.deadline_21_10_0();
    const auto now = at_.core->env.clock.now().value() - kUnixEpoch.value();
    constexpr std::int64_t kMostSeconds = 253'402'300'799;  // year 9999
    const auto then = std::clamp<std::int64_t>(at.seconds(), 0, kMostSeconds) * kTicksPerSecond +
                      at.nanos() / 100;
    constexpr std::int64_t kNanosecondsPerTick = 100;
    limit = std::min(
        limit, std::chrono::nanoseconds(std::clamp<std::int64_t>(then - now, 0, 864'000'000'000) *
                                        kNanosecondsPerTick));
  }
  if (limit.count() <= 0) {
    constexpr int kDeadlineExceeded = 4;
    return std::unexpected(error_reply(request.correlation_id(), options, kDeadlineExceeded,
                                       "Timeout", es::Timeout()));
  }
  batch.deadline = at_.core->now() + limit;
  return batch;
}

net::awaitable<std::optional<Status>> BatchCall::take(std::shared_ptr<BatchCall> self,
                                                      Request request) {
  const auto id = parse_uuid(request.correlation_id());
  const bool first = request.has_options();
  if (!id) {
    co_await answer(self, bad_request(request.correlation_id(), request.options(),
                                      request.has_correlation_id()
                                          ? "Specified argument was out of the range of valid "
                                            "values."
                                          : "Value cannot be null. (Parameter 'dto')"));
    co_return std::nullopt;
  }
  auto found = self->open_.find(*id);
  if (found == self->open_.end()) {
    if (!first) {
      co_return std::nullopt;  // the server answers nothing
    }
    auto batch = self->begin(request, *id);
    if (!batch) {
      co_await answer(self, std::move(batch).error());
      co_return std::nullopt;
    }
    found = self->open_.emplace(*id, *std::move(batch)).first;
    if (!self->watching_) {
      self->watching_ = true;
      self->at_.core->spawn(end_late_batches(self));
    }
  }
  auto& batch = found->second;
  const auto limit = self->at_.core->options.max_append_size;
  for (auto& proposed : *request.mutable_proposed_messages()) {
    batch.size += static_cast<std::int64_t>(proposed.data().size());
    batch.whole += proposed.ByteSizeLong();
    if (batch.size > limit || batch.whole > kMostStreamsMessageBytes) {
      es::MaximumAppendSizeExceeded detail;
      detail.set_maxappendsize(static_cast<std::uint32_t>(limit));
      constexpr int kInvalidArgument = 3;
      auto refused = error_reply(request.correlation_id(), batch.options, kInvalidArgument,
                                 "MaximumAppendSizeExceeded", detail);
      self->open_.erase(found);
      co_await answer(self, std::move(refused));
      co_return std::nullopt;
    }
    auto event = new_event(proposed);
    if (!event) {
      if (!first) {
        co_return grpc::handler_failed();
      }
      // The batch stays open, and so times out as well.
      const bool no_key =
          event.error() == EventFault::kNoType || event.error() == EventFault::kNoContentType;
      co_await answer(self, bad_request(request.correlation_id(), batch.options,
                                        no_key ? "The given key was not present in the dictionary."
                                               : "Value cannot be null."));
      co_return std::nullopt;
    }
    batch.write.events.push_back(*std::move(event));
  }
  if (!request.is_final()) {
    co_return std::nullopt;
  }
  if (auto elsewhere = not_the_leader(*self->at_.core, self->at_.call->head())) {
    co_return elsewhere;
  }
  auto whole = std::move(batch);
  self->open_.erase(found);
  self->at_.core->spawn(write_batch(self, request.correlation_id(), std::move(whole)));
  co_return std::nullopt;
}

net::awaitable<Status> BatchCall::serve(std::shared_ptr<BatchCall> self) {
  const auto& call = self->at_.call;
  while (!self->over_) {
    auto request = co_await call->next<Request>();
    if (!request) {
      self->over_ = true;
      co_return request.error();
    }
    if (!*request) {
      break;
    }
    if (auto status = co_await take(self, **std::move(request))) {
      self->over_ = true;
      co_return *std::move(status);
    }
  }
  self->half_closed_ = true;
  call->on_cancel([weak = std::weak_ptr(self)] {
    if (const auto alive = weak.lock()) {
      alive->wake_.notify();
    }
  });
  while (!self->over_ && !call->cancelled()) {
    co_await self->wake_.wait();
  }
  co_return call->cancelled() ? grpc::client_gone() : Status{};
}

}  // namespace

net::awaitable<Status> batch_append(NodeCall at) {
  return BatchCall::serve(std::make_shared<BatchCall>(std::move(at)));
}

}  // namespace verger::node::rpc
