#include "nodeagent/node/write_service.h"

#include <array>

#include <nlohmann/json.hpp>

#include "engine/base/json_number.h"
#include "nodeagent/http/base64.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/detail/leadership.h"

namespace verger::node {
namespace {

using nlohmann::json;

constexpr std::array<const char*, 5> kKinds = {"append", "metadata", "softDelete", "hardDelete",
                                               "scavengePoint"};

std::string encode(const Bytes& bytes) { return http::base64_encode(as_text(bytes)); }

Bytes decode(const json& value) {
  const auto text = http::base64_decode(value.get<std::string>());
  if (!text) {
    throw std::invalid_argument("bytes are not base64");
  }
  const auto view = as_bytes(*text);
  return {view.begin(), view.end()};
}

std::string encode_request(const WriteRequest& request) {
  auto events = json::array();
  for (const auto& event : request.events) {
    events.push_back({{"id", event.id.to_string()},
                      {"type", event.type},
                      {"isJson", event.is_json},
                      {"data", encode(event.data)},
                      {"metadata", encode(event.metadata)}});
  }
  return json({{"kind", kKinds[static_cast<std::size_t>(request.kind)]},
               {"stream", request.stream},
               {"expectedVersion", request.expected_version},
               {"threshold", request.threshold},
               {"events", std::move(events)}})
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<WriteRequest> decode_request(const std::string& body) {
  try {
    const auto value = json::parse(body);
    WriteRequest request;
    const auto kind = value.at("kind").get<std::string>();
    const auto found = std::ranges::find(kKinds, kind);
    if (found == kKinds.end()) {
      return Error{Errc::kInvalidArgument, "unknown kind of write '" + kind + "'"};
    }
    request.kind = static_cast<WriteRequest::Kind>(found - kKinds.begin());
    request.stream = value.at("stream").get<std::string>();
    request.expected_version = json_integer<std::int64_t>(value.at("expectedVersion"));
    request.threshold = json_integer<std::int32_t>(value.at("threshold"));
    for (const auto& entry : value.at("events")) {
      streams::NewEvent event;
      VERGER_TRY(event.id, Uuid::parse(entry.at("id").get<std::string>()));
      event.type = entry.at("type").get<std::string>();
      event.is_json = entry.at("isJson").get<bool>();
      event.data = decode(entry.at("data"));
      event.metadata = decode(entry.at("metadata"));
      request.events.push_back(std::move(event));
    }
    return request;
  } catch (const std::exception& e) {
    return Error{Errc::kInvalidArgument, std::string("forwarded write: ") + e.what()};
  }
}

std::string encode_reply(const WriteReply& reply) {
  return json({{"status", static_cast<int>(reply.status)},
               {"first", reply.first.value()},
               {"last", reply.last.value()},
               {"currentVersion", reply.current_version.value()},
               {"position", reply.position.value()},
               {"message", reply.message}})
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

WriteReply unknown_outcome(std::string message) {
  WriteReply reply;
  reply.status = WriteStatus::kTimeout;
  reply.message = std::move(message);
  return reply;
}

WriteReply decode_reply(const std::string& body) {
  try {
    const auto value = json::parse(body);
    WriteReply reply;
    const auto status = json_integer<int>(value.at("status"));
    if (status < 0 || status > static_cast<int>(WriteStatus::kTimeout)) {
      return unknown_outcome("the leader's answer makes no sense");
    }
    reply.status = static_cast<WriteStatus>(status);
    reply.first = EventNumber(json_integer<std::int64_t>(value.at("first")));
    reply.last = EventNumber(json_integer<std::int64_t>(value.at("last")));
    reply.current_version = EventNumber(json_integer<std::int64_t>(value.at("currentVersion")));
    reply.position = LogPosition(json_integer<std::int64_t>(value.at("position")));
    reply.message = value.at("message").get<std::string>();
    return reply;
  } catch (const std::exception& e) {
    return unknown_outcome(std::string("the leader's answer cannot be read: ") + e.what());
  }
}

streams::WriteResult append(streams::Database& database, WriteRequest request) {
  switch (request.kind) {
    case WriteRequest::Kind::kAppend:
      return database.append(request.stream, request.expected_version, std::move(request.events),
                             streams::Flush::kLater);
    case WriteRequest::Kind::kMetadata:
      if (request.events.size() != 1) {
        return std::unexpected(streams::WriteFailure{
            Error{Errc::kInvalidArgument, "metadata is one event"}, kNoStream});
      }
      return database.set_metadata(request.stream, request.expected_version,
                                   std::move(request.events.front()), streams::Flush::kLater);
    case WriteRequest::Kind::kSoftDelete:
      return database.soft_delete(request.stream, request.expected_version, streams::Flush::kLater);
    case WriteRequest::Kind::kHardDelete:
      return database.hard_delete(request.stream, request.expected_version, streams::Flush::kLater);
    case WriteRequest::Kind::kScavengePoint:
      return database.append_scavenge_point(request.expected_version, request.threshold);
  }
  return std::unexpected(
      streams::WriteFailure{Error{Errc::kInvalidArgument, "unknown kind of write"}, kNoStream});
}

net::awaitable<WriteReply> write_here(std::shared_ptr<Core> core, WriteRequest request) {
  if (!core->leadership->accepts_writes()) {
    co_return WriteReply{};
  }
  const auto outcome = append(core->db(), std::move(request));
  WriteReply reply;
  if (!outcome) {
    const auto& failure = outcome.error();
    reply.current_version = failure.current_version;
    reply.message = failure.error.message;
    switch (failure.error.code) {
      case Errc::kConflict:
      case Errc::kDeleted:
        if (!co_await Leadership::confirm(core->keep(*core->leadership))) {
          co_return WriteReply{};
        }
        reply.status = failure.error.code == Errc::kConflict ? WriteStatus::kWrongVersion
                                                             : WriteStatus::kDeleted;
        break;
      case Errc::kInvalidArgument:
        reply.status = WriteStatus::kInvalid;
        break;
      default:
        core->fail(failure.error.within("append"));
        reply.status = WriteStatus::kTimeout;
    }
    co_return reply;
  }
  if (core->log().end() < outcome->end) {
    core->leadership->appended();
  } else {
    core->leadership->advance_commit();  // repeated, or flushed with its chunk
  }
  if (!co_await Leadership::wait_for_commit(core->keep(*core->leadership), outcome->end)) {
    co_return unknown_outcome("not committed in time");
  }
  reply.status = WriteStatus::kDone;
  reply.first = outcome->first;
  reply.last = outcome->last;
  reply.position = outcome->position;
  co_return reply;
}

}  // namespace

namespace {

/// Sends it to the leader. nullopt: the request certainly did not reach it.
net::awaitable<std::optional<WriteReply>> forward(std::shared_ptr<Core> core,
                                                  http::Endpoint endpoint,
                                                  const WriteRequest& request) {
  http::Request forwarded;
  forwarded.method = "POST";
  forwarded.target = "/verger/v1/write";
  forwarded.headers.set("Content-Type", "application/json");
  forwarded.body = encode_request(request);
  const auto limit = core->options.timings.write_timeout * 2;
  const auto response = co_await core->env.client.send(endpoint, std::move(forwarded), limit);
  if (!response) {
    if (response.error().code == Errc::kUnavailable) {
      co_return std::nullopt;
    }
    co_return unknown_outcome(response.error().message);
  }
  if (response->status != 200) {
    co_return response->status == 503 ? WriteReply{}
                                      : unknown_outcome("the leader could not read the write");
  }
  co_return decode_reply(response->body);
}

}  // namespace

net::awaitable<WriteReply> write(std::shared_ptr<Core> core, WriteRequest request) {
  // A node that has lost its leader waits for it or the next, and then does not know, as the
  // server does: "Write timeout" after 4.5 s (node-interface.md §1.12).
  const auto until = core->now() + core->options.timings.quorum_loss_wait * 3 / 2;
  for (;;) {
    if (!core->takes_work()) {
      co_return WriteReply{};
    }
    bool waiting = false;
    switch (core->election->state()) {
      case api::NodeState::kFollower:
      case api::NodeState::kClone:
      case api::NodeState::kCatchingUp:
      case api::NodeState::kReadOnlyReplica: {
        const auto leader = core->election->leader();
        const auto* member = leader ? core->gossip->find(*leader) : nullptr;
        if (member != nullptr) {
          if (auto reply = co_await forward(core, member->http, request)) {
            co_return *std::move(reply);
          }
        }
        waiting = true;
        break;
      }
      case api::NodeState::kUnknown:
      case api::NodeState::kPreReplica:
      case api::NodeState::kPreReadOnlyReplica:
      case api::NodeState::kReadOnlyLeaderless:
        waiting = core->election->last_leader().has_value();
        break;
      default:
        break;
    }
    if (!waiting) {
      co_return co_await write_here(core, std::move(request));
    }
    if (core->now() >= until) {
      co_return unknown_outcome("there is no leader");
    }
    co_await core->env.timers.sleep_for(core->options.timings.tick);
  }
}

net::awaitable<http::Response> answer_write(std::shared_ptr<Core> core, std::string body) {
  auto request = decode_request(body);
  http::Response response;
  if (!request) {
    response.status = 400;
    response.body = request.error().message;
    co_return response;
  }
  const auto reply = co_await write_here(core, *std::move(request));
  response.headers.set("Content-Type", "application/json");
  response.body = encode_reply(reply);
  co_return response;
}

}  // namespace verger::node
