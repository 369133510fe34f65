// AtomPub over HTTP, writing: node-interface.md §1.11, §1.12.
#include <nlohmann/json.hpp>

#include "nodeagent/node/detail/allowed_methods.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/detail/lenient_words.h"
#include "nodeagent/node/detail/stream_routes.h"
#include "nodeagent/node/write_service.h"

namespace verger::node {
namespace {

using http::Response;
using http::RoutedRequest;
using nlohmann::ordered_json;

const std::vector<Format> kWriteFormats = {Format::kEventsJson, Format::kEventJson, Format::kJson,
                                           Format::kBytes, Format::kXml};
/// Where the path has the id there is one event, and no list of them.
const std::vector<Format> kIncomingFormats = {Format::kJson, Format::kXml};
const std::vector<Format> kIncomingAnswerFormats = {Format::kAtomXml, Format::kAtomJson,
                                                    Format::kXml, Format::kJson};
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

/// The three ways to write; what is checked, and in which order, differs.
enum class WriteRoute : std::uint8_t { kEvents, kIncoming, kMetadata };

/// What a request says of its events besides the body: checked before anything else.
struct EventHeaders {
  Uuid id{};  ///< zero: none
  std::string type;
};
std::expected<EventHeaders, Response> event_headers(const RoutedRequest& routed, WriteRoute route,
                                                    bool batch, std::string_view methods,
                                                    const std::string& url) {
  const auto bad = [&](std::string text) {
    return std::unexpected(text_response(400, std::move(text), methods, false));
  };
  const auto header = [&](std::string_view name) {
    return std::string(routed.request.headers.get(name).value_or(""));
  };
  EventHeaders found{.type = header("ES-EventType")};
  if (route == WriteRoute::kIncoming) {
    const auto id = parse_guid(routed.parameter("guid"));
    if (!id) {
      return bad("Invalid request. Unable to parse guid");
    }
    found.id = *id;
    return found;
  }
  if (route == WriteRoute::kEvents && !batch && found.type.empty()) {
    return bad(
        "Must include an event type with the request either in body or as ES-EventType header.");
  }
  if (const auto text = header("ES-EventId"); !text.empty()) {
    const auto id = parse_guid(text);
    if (!id || id->is_zero()) {
      return bad("ES-EventId header in wrong format.");
    }
    found.id = *id;
  }
  if (route == WriteRoute::kMetadata && !found.type.empty() && found.type != "$metadata") {
    return bad("Bad Request. You should not include an event type for metadata.");
  }
  if (route == WriteRoute::kEvents && !batch && found.id.is_zero()) {
    auto response = text_response(307, "Forwarding to idempotent URI", methods, true);
    response.reason = "Temporary Redirect";
    response.headers.set("Location", url);
    return std::unexpected(std::move(response));
  }
  return found;
}

bool is_batch(Format format) {
  return format == Format::kEventsJson || format == Format::kEventJson;
}

std::expected<std::vector<streams::NewEvent>, Response> events_of(const http::Request& request,
                                                                  Format format, bool metadata,
                                                                  EventHeaders headers,
                                                                  std::string_view methods) {
  const auto bad = [&](std::string text) {
    return std::unexpected(text_response(400, std::move(text), methods, false));
  };
  std::vector<streams::NewEvent> events;
  if (is_batch(format)) {
    auto parsed = atom::parse_events(request.body, metadata);
    if (!parsed) {
      return bad(parsed.error());
    }
    events = *std::move(parsed);
  } else {
    // Kept as it came: whether it is the JSON that it claims to be is not checked.
    streams::NewEvent event;
    event.id = headers.id;
    event.type = metadata ? "$metadata" : std::move(headers.type);
    event.is_json = format == Format::kJson;
    if (event.id.is_zero()) {
      return bad("Empty eventId provided. (Parameter 'eventId')");
    }
    if (event.type.empty()) {
      return bad("Empty eventType provided. (Parameter 'eventType')");
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

net::awaitable<Response> append(std::shared_ptr<Core> core, RoutedRequest routed,
                                WriteRoute route) {
  const bool metadata = route == WriteRoute::kMetadata;
  const auto methods = metadata                         ? methods::kMetadata
                       : route == WriteRoute::kIncoming ? methods::kIncoming
                                                        : methods::kStream;
  const std::string stream(routed.parameter("stream"));
  const auto format = content_format(
      routed.request, route == WriteRoute::kIncoming ? kIncomingFormats : kWriteFormats);
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
  auto event =
      event_headers(routed, route, is_batch(*format), methods,
                    fmt::format("{}/incoming/{}", own, core->env.random.uuid().to_string()));
  if (!event) {
    co_return event.error();
  }
  const auto expected = expected_version(routed.request, methods);
  if (!expected) {
    co_return expected.error();
  }
  const auto headers = stream_headers(routed.request, HeadersOf::kWrite, methods);
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
  const auto headers = stream_headers(routed.request, HeadersOf::kDelete, methods::kStream);
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
  const auto add = [&](std::string_view pattern, WriteRoute route) {
    const bool incoming = route == WriteRoute::kIncoming;
    add_stream_route(
        router, core, "POST", pattern,
        route == WriteRoute::kMetadata ? StreamAction::kWriteMetadata : StreamAction::kWrite,
        incoming ? kIncomingAnswerFormats : kWriteAnswerFormats,
        incoming ? kIncomingFormats : kWriteFormats,
        [route](std::shared_ptr<Core> node, RoutedRequest request) {
          return append(std::move(node), std::move(request), route);
        });
  };
  add("/streams/{stream}", WriteRoute::kEvents);
  add("/streams/{stream}/incoming/{guid}", WriteRoute::kIncoming);
  add("/streams/{stream}/metadata", WriteRoute::kMetadata);
  add_stream_route(router, core, "DELETE", "/streams/{stream}", StreamAction::kDelete,
                   kWriteAnswerFormats, {}, remove);
}

}  // namespace verger::node
