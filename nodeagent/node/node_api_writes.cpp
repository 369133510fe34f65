// AtomPub over HTTP, writing: node-interface.md §1.11, §1.12.
#include <nlohmann/json.hpp>

#include "nodeagent/node/detail/allowed_methods.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/detail/stream_routes.h"
#include "nodeagent/node/write_service.h"

namespace verger::node {
namespace {

using http::Response;
using http::RoutedRequest;
using nlohmann::ordered_json;

const std::vector<Format> kWriteFormats = {Format::kEventsJson, Format::kJson, Format::kBytes,
                                           Format::kXml};
constexpr std::size_t kMostEventBytes = std::size_t{4} << 20U;

std::expected<std::int64_t, Response> expected_version(const http::Request& request,
                                                       std::string_view methods) {
  const auto header = request.headers.get("ES-ExpectedVersion");
  if (!header || header->empty()) {
    return streams::kExpectAny;
  }
  const auto value = parse_number<std::int64_t>(*header);
  if (!value || *value < streams::kExpectStreamExists) {
    return std::unexpected(
        text_response(400, "ES-ExpectedVersion header in wrong format.", methods, false));
  }
  if (*value < streams::kExpectAny && *value != streams::kExpectStreamExists) {
    // The server's handler fails here and answers 200 with nothing done (node-interface.md §8.2).
    return std::unexpected(Response{});
  }
  return *value;
}

/// What a request says of its events besides the body: checked before anything else.
struct EventHeaders {
  std::optional<Uuid> id;
  std::string type;
};
std::expected<EventHeaders, Response> event_headers(const RoutedRequest& routed, bool batch,
                                                    bool metadata, std::string_view methods,
                                                    const std::string& url) {
  const auto bad = [&](std::string text) {
    return std::unexpected(text_response(400, std::move(text), methods, false));
  };
  const auto header = [&](std::string_view name) {
    return std::string(routed.request.headers.get(name).value_or(""));
  };
  EventHeaders found{.id = std::nullopt, .type = header("ES-EventType")};
  if (!batch && !metadata && found.type.empty()) {
    return bad(
        "Must include an event type with the request either in body or as ES-EventType header.");
  }
  const std::string in_path(routed.parameter("guid"));
  if (const auto text = in_path.empty() ? header("ES-EventId") : in_path; !text.empty()) {
    const auto id = Uuid::parse(text);
    if (!id || id->is_zero()) {
      return bad(in_path.empty() ? "ES-EventId header in wrong format."
                                 : "Invalid request. Unable to parse guid");
    }
    found.id = *id;
  }
  if (metadata && !found.type.empty() && found.type != "$metadata") {
    return bad("Bad Request. You should not include an event type for metadata.");
  }
  if (!batch && !found.id) {
    auto response = text_response(307, "Forwarding to idempotent URI", methods, true);
    response.reason = "Temporary Redirect";
    response.headers.set("Location", url);
    return std::unexpected(std::move(response));
  }
  return found;
}

std::expected<std::vector<streams::NewEvent>, Response> events_of(const http::Request& request,
                                                                  Format format, bool metadata,
                                                                  EventHeaders headers,
                                                                  std::string_view methods) {
  const auto bad = [&](std::string text) {
    return std::unexpected(text_response(400, std::move(text), methods, false));
  };
  std::vector<streams::NewEvent> events;
  if (format == Format::kEventsJson) {
    auto parsed = atom::parse_events(request.body, metadata);
    if (!parsed) {
      return bad(parsed.error());
    }
    events = *std::move(parsed);
  } else {
    streams::NewEvent event;
    event.id = *headers.id;
    event.type = metadata ? "$metadata" : std::move(headers.type);
    event.is_json = format == Format::kJson;
    if (event.is_json && ordered_json::parse(request.body, nullptr, false).is_discarded()) {
      return bad("Write request body invalid.");
    }
    const auto view = as_bytes(request.body);
    event.data.assign(view.begin(), view.end());
    events.push_back(std::move(event));
  }
  for (const auto& event : events) {
    if (event.data.size() + event.metadata.size() > kMostEventBytes) {
      return std::unexpected(
          empty_response(413, "Too large events received. Limit is 4mb", methods));
    }
  }
  return events;
}

Response answer_of(const WriteReply& reply, std::string_view what, std::string_view methods) {
  switch (reply.status) {
    case WriteStatus::kDone:
      break;
    case WriteStatus::kWrongVersion: {
      auto response = empty_text(400, "Wrong expected EventNumber", methods);
      response.headers.set("ES-CurrentVersion", std::to_string(reply.current_version.value()));
      return response;
    }
    case WriteStatus::kDeleted:
      return empty_text(410, "Stream deleted", methods);
    case WriteStatus::kInvalid:
      return text_response(400, reply.message, methods, false);
    case WriteStatus::kNotReady:
      return empty_text(503, "Server Is Not Ready", methods);
    case WriteStatus::kTimeout:
      return empty_text(500, fmt::format("{} timeout", what), methods);
  }
  return empty_text(201, "Created", methods);
}

net::awaitable<Response> append(std::shared_ptr<Core> core, RoutedRequest routed, bool metadata) {
  const auto methods = metadata ? methods::kMetadata : methods::kStream;
  const std::string stream(routed.parameter("stream"));
  const auto format = content_format(routed.request, kWriteFormats);
  if (!format) {
    co_return empty_response(415, "Invalid or missing Content-Type", {});
  }
  if (metadata && stream.starts_with("$$")) {
    co_return text_response(
        400, "Invalid request. Stream must be non-empty string and should not be metastream",
        methods, false);
  }
  const auto own =
      fmt::format("{}/streams/{}", base_url(*core, routed.request), http::percent_encode(stream));
  auto event = event_headers(routed, *format == Format::kEventsJson, metadata, methods,
                             fmt::format("{}{}/incoming/{}", own, metadata ? "/metadata" : "",
                                         core->env.random.uuid().to_string()));
  if (!event) {
    co_return event.error();
  }
  const auto expected = expected_version(routed.request, methods);
  if (!expected) {
    co_return expected.error();
  }
  const auto headers = stream_headers(routed.request, methods);
  if (!headers) {
    co_return headers.error();
  }
  if (auto elsewhere = redirect(*core, routed.request, *headers, methods)) {
    co_return *std::move(elsewhere);
  }
  auto events = events_of(routed.request, *format, metadata, *std::move(event), methods);
  if (!events) {
    co_return events.error();
  }
  WriteRequest request;
  request.kind = metadata ? WriteRequest::Kind::kMetadata : WriteRequest::Kind::kAppend;
  request.stream = stream;
  request.expected_version = *expected;
  request.events = *std::move(events);
  const auto reply = co_await write(core, std::move(request));
  auto response = answer_of(reply, "Write", methods);
  if (reply.status == WriteStatus::kDone) {
    const auto target = metadata ? fmt::format("{}/streams/{}", base_url(*core, routed.request),
                                               http::percent_encode("$$" + stream))
                                 : own;
    response.headers.set("Location", fmt::format("{}/{}", target, reply.first.value()));
  }
  co_return response;
}

net::awaitable<Response> remove(std::shared_ptr<Core> core, RoutedRequest routed) {
  const auto expected = expected_version(routed.request, methods::kStream);
  if (!expected) {
    co_return expected.error();
  }
  const auto headers = stream_headers(routed.request, methods::kStream);
  if (!headers) {
    co_return headers.error();
  }
  if (auto elsewhere = redirect(*core, routed.request, *headers, methods::kStream)) {
    co_return *std::move(elsewhere);
  }
  WriteRequest request;
  request.kind =
      headers->hard_delete ? WriteRequest::Kind::kHardDelete : WriteRequest::Kind::kSoftDelete;
  request.stream = std::string(routed.parameter("stream"));
  request.expected_version = *expected;
  const auto reply = co_await write(core, std::move(request));
  co_return reply.status == WriteStatus::kDone ? empty_text(204, "Stream deleted", methods::kStream)
                                               : answer_of(reply, "Delete", methods::kStream);
}

}  // namespace

void add_write_routes(http::Router& router, const std::shared_ptr<Core>& core) {
  const auto add = [&](std::string_view pattern, bool metadata) {
    add_stream_route(router, core, "POST", pattern,
                     metadata ? StreamAction::kWriteMetadata : StreamAction::kWrite,
                     kWriteAnswerFormats, kWriteFormats,
                     [metadata](std::shared_ptr<Core> node, RoutedRequest request) {
                       return append(std::move(node), std::move(request), metadata);
                     });
  };
  add("/streams/{stream}", false);
  add("/streams/{stream}/incoming/{guid}", false);
  add("/streams/{stream}/metadata", true);
  add("/streams/{stream}/metadata/incoming/{guid}", true);
  add_stream_route(router, core, "DELETE", "/streams/{stream}", StreamAction::kDelete,
                   kWriteAnswerFormats, {}, remove);
}

}  // namespace verger::node
