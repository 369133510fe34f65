// AtomPub over HTTP and the two read routes of $scavenges: node-interface.md §1.11, §1.12.
#include <algorithm>
#include <array>
#include <charconv>

#include <nlohmann/json.hpp>

#include "nodeagent/node/atom_format.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/node_api.h"
#include "nodeagent/node/write_service.h"

namespace verger::node {
namespace {

using http::Response;
using http::RoutedRequest;
using nlohmann::ordered_json;

constexpr std::string_view kStream = "POST, DELETE, GET, OPTIONS";
constexpr std::string_view kPage = "GET, OPTIONS";
constexpr std::string_view kMetadata = "GET, POST, GET, OPTIONS";
constexpr std::size_t kDefaultCount = 20;
constexpr std::int64_t kMostCount = 4096;
constexpr std::array kFeedFormats = {Format::kAtomJson, Format::kJson};
constexpr std::array kHistoryFormats = {Format::kText, Format::kJson};
constexpr std::array kEventFormats = {Format::kAtomJson, Format::kEventJson, Format::kJson};
constexpr std::array kWriteFormats = {Format::kEventsJson, Format::kJson, Format::kBytes,
                                      Format::kText, Format::kXml};

bool header_is_true(const http::Request& request, std::string_view name) {
  const auto value = request.headers.get(name);
  return value && (*value == "True" || *value == "true" || *value == "TRUE");
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && read.ec == std::errc() && read.ptr == text.data() + text.size()
             ? std::optional(value)
             : std::nullopt;
}

Response empty_text(int status, std::string reason, std::string_view methods) {
  auto response = text_response(status, {}, methods, true);
  response.reason = std::move(reason);
  return response;
}

/// 307 to the leader where the request wants it and this is not the leader; else nothing.
std::optional<Response> redirect(Core& core, const http::Request& request,
                                 std::string_view methods) {
  if (!header_is_true(request, "ES-RequireLeader") &&
      !header_is_true(request, "ES-RequireMaster")) {
    return std::nullopt;
  }
  if (core.state() == api::NodeState::kLeader) {
    return std::nullopt;
  }
  // Without a leader: to the last one, as the server does, dead or not (node-interface.md §8.2).
  const auto leader = core.leader_id() ? core.leader_id() : core.last_leader;
  const auto* member = leader ? core.members.find(*leader) : nullptr;
  if (member == nullptr) {
    return empty_text(503, "Server Is Not Ready", methods);
  }
  auto response = empty_text(307, "Temporary Redirect", methods);
  response.headers.set("Location", member->http.url() + request.target);
  return response;
}

Response read_failure(Core& core, const Error& error, std::string_view methods) {
  core.env.log.error("read failed", {{"node", core.self}, {"reason", error.message}});
  return empty_text(500, "Read Error", methods);
}

std::optional<Response> no_stream(streams::StreamStatus status, std::string_view methods) {
  if (status == streams::StreamStatus::kNoStream) {
    return empty_text(404, {}, methods);
  }
  if (status == streams::StreamStatus::kDeleted) {
    return empty_text(410, "Deleted", methods);
  }
  return std::nullopt;
}

Response cached(Response response, bool for_ever, std::int64_t version,
                std::string_view media_type) {
  response.headers.set("Cache-Control", for_ever ? "max-age=31536000, private"
                                                 : "max-age=0, no-cache, must-revalidate");
  response.headers.set("Vary", "Accept");
  if (!for_ever) {
    response.headers.set("ETag", "\"" + atom::etag(version, media_type) + "\"");
  }
  return response;
}

std::optional<Response> not_modified(const http::Request& request, std::int64_t version,
                                     std::string_view media_type, std::string_view methods) {
  const auto known = request.headers.get("If-None-Match");
  if (known && *known == "\"" + atom::etag(version, media_type) + "\"") {
    return empty_text(304, {}, methods);
  }
  return std::nullopt;
}

/// Data asked for as application/json: JSON as it is stored, anything else as a JSON string.
std::string data_as_json(const streams::Event& event) {
  return event.is_json ? std::string(as_text(event.data))
                       : ordered_json(as_text(event.data))
                             .dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string written(const ordered_json& value) {
  return value.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

// --- Reading ---

Response backward(Core& core, const RoutedRequest& routed, const std::string& stream,
                  std::optional<std::int64_t> from, std::size_t count, const Negotiated& format,
                  std::string_view methods) {
  const auto start = from ? EventNumber(*from) : kDeletedStream;
  const auto slice = core.db().read_backward(stream, start, count);
  if (!slice) {
    return read_failure(core, slice.error(), methods);
  }
  if (auto missing = no_stream(slice->status, methods)) {
    return *std::move(missing);
  }
  const auto last = slice->last_event_number.value();
  if (auto same = not_modified(routed.request, last, format.media_type, methods)) {
    return *std::move(same);
  }
  const bool head = !from.has_value();
  if (format.format == Format::kText) {
    return cached(formatted(format, "EventStore.Transport.Http.Atom.FeedElement", methods), false,
                  last, format.media_type);
  }
  const atom::PageContext context{base_url(core, routed.request), stream, count,
                                  atom::embed_of(routed.target)};
  const auto page = atom::backward_page(context, *slice, core.db(), start, head);
  return cached(formatted(format, written(page), methods), !head && *from < last, last,
                format.media_type);
}

Response forward(Core& core, const RoutedRequest& routed, const std::string& stream,
                 std::int64_t from, std::size_t count, const Negotiated& format) {
  const auto slice = core.db().read_forward(stream, EventNumber(from), count);
  if (!slice) {
    return read_failure(core, slice.error(), kPage);
  }
  if (auto missing = no_stream(slice->status, kPage)) {
    return *std::move(missing);
  }
  const auto last = slice->last_event_number.value();
  const atom::PageContext context{base_url(core, routed.request), stream, count,
                                  atom::embed_of(routed.target)};
  const auto page = atom::forward_page(context, *slice, core.db(), EventNumber(from));
  return cached(formatted(format, written(page), kPage), !slice->end_of_stream, last,
                format.media_type);
}

/// A feed asked for without Accept gets a description of what there is.
Response description(const std::string& stream) {
  const auto path = "/streams/" + http::percent_encode(stream);
  const ordered_json body = {
      {"title", fmt::format("Description document for '{}'", stream)},
      {"description",
       "The description document will be presented when no accept header is present or it was "
       "requested"},
      {"_links",
       {{"self",
         {{"href", path},
          {"supportedContentTypes",
           ordered_json::array({"application/vnd.eventstore.streamdesc+json"})}}},
        {"stream",
         {{"href", path},
          {"supportedContentTypes",
           ordered_json::array({"application/atom+xml", "application/vnd.eventstore.atom+json"})}}},
        {"streamSubscription", nullptr}}}};
  auto response = formatted({Format::kJson, "application/vnd.eventstore.streamdesc+json"},
                            written(body), kStream);
  response.status = 406;
  response.reason = "Description Document";
  return response;
}

net::awaitable<Response> read_head(std::shared_ptr<Core> core, RoutedRequest routed) {
  const std::string stream(routed.parameter("stream"));
  if (auto elsewhere = redirect(*core, routed.request, kStream)) {
    co_return *std::move(elsewhere);
  }
  if (!routed.request.headers.get("Accept") && !routed.target.parameter("format")) {
    co_return description(stream);
  }
  const auto format = choose_format(routed, kFeedFormats);
  if (!format) {
    co_return format.error();
  }
  co_return backward(*core, routed, stream, std::nullopt, kDefaultCount, *format, kStream);
}

net::awaitable<Response> read_page(std::shared_ptr<Core> core, RoutedRequest routed, bool ahead) {
  const std::string stream(routed.parameter("stream"));
  if (auto elsewhere = redirect(*core, routed.request, kPage)) {
    co_return *std::move(elsewhere);
  }
  const auto format = choose_format(routed, kFeedFormats);
  if (!format) {
    co_return format.error();
  }
  const auto event = routed.parameter("event");
  const auto from = number<std::int64_t>(event);
  const auto count = number<std::int64_t>(routed.parameter("count"));
  if ((!from || *from < 0) && (ahead || event != "head")) {
    co_return text_response(400, fmt::format("'{}' is not valid event number", event), kPage,
                            false);
  }
  if (!count || *count <= 0) {
    co_return text_response(400,
                            fmt::format("'{}' is not valid count. Should be positive integer",
                                        routed.parameter("count")),
                            kPage, false);
  }
  const auto limited = static_cast<std::size_t>(std::min(*count, kMostCount));
  co_return ahead ? forward(*core, routed, stream, *from, limited, *format)
                  : backward(*core, routed, stream, from, limited, *format, kPage);
}

net::awaitable<Response> read_event(std::shared_ptr<Core> core, RoutedRequest routed) {
  const std::string stream(routed.parameter("stream"));
  if (auto elsewhere = redirect(*core, routed.request, kPage)) {
    co_return *std::move(elsewhere);
  }
  const auto format = choose_format(routed, kEventFormats);
  if (!format) {
    co_return format.error();
  }
  const auto text = routed.parameter("event");
  const auto wanted = number<std::int64_t>(text);
  const bool head = text == "head";
  if (!head && (!wanted || *wanted < 0)) {
    co_return text_response(400, fmt::format("'{}' is not valid event number", text), kPage, false);
  }
  const auto slice =
      core->db().read_backward(stream, head ? kDeletedStream : EventNumber(*wanted), 1);
  if (!slice) {
    co_return read_failure(*core, slice.error(), kPage);
  }
  if (slice->status == streams::StreamStatus::kDeleted) {
    co_return empty_text(410, "Deleted", kPage);
  }
  if (slice->events.empty() || (!head && slice->events.front().number.value() != *wanted)) {
    co_return text_response(404, "{}", kPage, true);
  }
  const auto resolved = atom::resolve(core->db(), slice->events.front());
  const atom::PageContext context{base_url(*core, routed.request), stream, 1, atom::Embed::kNone};
  const auto body = format->format == Format::kJson ? data_as_json(resolved.event)
                    : format->format == Format::kEventJson
                        ? written(atom::event_json(resolved.event))
                        : written(atom::entry_with_content(context, resolved));
  co_return cached(formatted(*format, body, kPage), !head, slice->last_event_number.value(),
                   format->media_type);
}

net::awaitable<Response> read_metadata(std::shared_ptr<Core> core, RoutedRequest routed) {
  const auto stream = "$$" + std::string(routed.parameter("stream"));
  if (auto elsewhere = redirect(*core, routed.request, kMetadata)) {
    co_return *std::move(elsewhere);
  }
  const auto format = choose_format(routed, kEventFormats);
  if (!format) {
    co_return format.error();
  }
  const auto slice = core->db().read_backward(stream, kDeletedStream, 1);
  if (!slice) {
    co_return read_failure(*core, slice.error(), kMetadata);
  }
  if (slice->status == streams::StreamStatus::kDeleted) {
    co_return empty_text(410, "Deleted", kMetadata);
  }
  if (slice->events.empty()) {
    co_return text_response(404, "{}", kMetadata, true);
  }
  const auto& event = slice->events.front();
  const atom::PageContext context{base_url(*core, routed.request), stream, 1, atom::Embed::kNone};
  const auto body = format->format == Format::kJson ? data_as_json(event)
                    : format->format == Format::kEventJson
                        ? written(atom::event_json(event))
                        : written(atom::entry_with_content(context, {event, std::nullopt}));
  co_return cached(formatted(*format, body, kMetadata), false, event.number.value(),
                   format->media_type);
}

net::awaitable<Response> read_all(std::shared_ptr<Core> core, RoutedRequest routed, bool ahead) {
  const std::string_view methods =
      routed.target.segments.size() == 2 ? "POST, DELETE, GET, GET, OPTIONS" : "GET, GET, OPTIONS";
  const auto format = choose_format(routed, kFeedFormats);
  if (!format) {
    co_return format.error();
  }
  const auto text = routed.parameter("position");
  const bool head = text.empty() || text == "head";
  const auto end = core->db().committed();
  const auto position =
      head ? std::optional(streams::AllPosition{end, end}) : atom::parse_position(text);
  const auto count_text = routed.parameter("count");
  const auto count = count_text.empty() ? std::optional<std::int64_t>(kDefaultCount)
                                        : number<std::int64_t>(count_text);
  if (!position) {
    co_return text_response(400, fmt::format("Invalid position argument: {}", text), methods,
                            false);
  }
  if (!count || *count <= 0) {
    co_return text_response(400, fmt::format("Invalid count argument: {}", count_text), methods,
                            false);
  }
  const auto limited = static_cast<std::size_t>(std::min(*count, kMostCount));
  const auto slice = ahead ? core->db().read_all_forward(*position, limited)
                           : core->db().read_all_backward(*position, limited);
  if (!slice) {
    co_return read_failure(*core, slice.error(), methods);
  }
  const atom::PageContext context{base_url(*core, routed.request), "$all", limited,
                                  atom::embed_of(routed.target)};
  const auto page = ahead ? atom::all_forward_page(context, *slice, *position)
                          : atom::all_backward_page(context, *slice, *position, head);
  co_return cached(formatted(*format, written(page), methods), ahead && !slice->end, end.value(),
                   format->media_type);
}

// --- Writing ---

std::expected<std::int64_t, Response> expected_version(const http::Request& request,
                                                       std::string_view methods) {
  const auto header = request.headers.get("ES-ExpectedVersion");
  if (!header) {
    return streams::kExpectAny;
  }
  const auto value = number<std::int64_t>(*header);
  if (!value) {
    return std::unexpected(
        text_response(400, "ES-ExpectedVersion header in wrong format.", methods, false));
  }
  if (*value < -2 && *value != streams::kExpectStreamExists) {
    // The server's handler fails here and answers 200 with nothing done (node-interface.md §8.2).
    return std::unexpected(Response{});
  }
  return *value;
}

std::expected<std::vector<streams::NewEvent>, Response> events_of(const RoutedRequest& routed,
                                                                  Format format, bool metadata,
                                                                  std::string_view methods,
                                                                  const std::string& url) {
  const auto bad = [&](std::string text) {
    return std::unexpected(text_response(400, std::move(text), methods, false));
  };
  const auto& request = routed.request;
  if (format == Format::kEventsJson) {
    auto parsed = atom::parse_events(request.body, metadata);
    if (!parsed) {
      return bad(parsed.error());
    }
    return *std::move(parsed);
  }
  streams::NewEvent event;
  const auto id_header = request.headers.get("ES-EventId");
  const auto in_path = routed.parameter("guid");
  const auto id_text = id_header ? std::string(*id_header) : std::string(in_path);
  const auto type = request.headers.get("ES-EventType");
  if (!metadata && (!type || type->empty())) {
    return bad(
        "Must include an event type with the request either in body or as ES-EventType header.");
  }
  if (metadata && type && *type != "$metadata") {
    return bad("Bad value for event type header: it must be $metadata.");
  }
  if (id_text.empty()) {
    auto response = text_response(307, "Forwarding to idempotent URI", methods, true);
    response.reason = "Temporary Redirect";
    response.headers.set("Location", url);
    return std::unexpected(std::move(response));
  }
  const auto id = Uuid::parse(id_text);
  if (!id || id->is_zero()) {
    return bad("ES-EventId header in wrong format.");
  }
  event.id = *id;
  event.type = metadata ? "$metadata" : std::string(*type);
  event.is_json = format == Format::kJson;
  if (event.is_json && ordered_json::parse(request.body, nullptr, false).is_discarded()) {
    return bad("Write request body invalid.");
  }
  const auto view = as_bytes(request.body);
  event.data.assign(view.begin(), view.end());
  std::vector<streams::NewEvent> events;
  events.push_back(std::move(event));
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
  const auto methods = metadata ? kMetadata : kStream;
  const std::string stream(routed.parameter("stream"));
  const auto format = content_format(routed.request, kWriteFormats);
  if (!format) {
    co_return empty_response(415, "Invalid or missing Content-Type", {});
  }
  if (auto elsewhere = redirect(*core, routed.request, methods)) {
    co_return *std::move(elsewhere);
  }
  const auto expected = expected_version(routed.request, methods);
  if (!expected) {
    co_return expected.error();
  }
  const auto own =
      fmt::format("{}/streams/{}", base_url(*core, routed.request), http::percent_encode(stream));
  auto events = events_of(routed, *format, metadata, methods,
                          fmt::format("{}{}/incoming/{}", own, metadata ? "/metadata" : "",
                                      core->env.random.uuid().to_string()));
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
  if (auto elsewhere = redirect(*core, routed.request, kStream)) {
    co_return *std::move(elsewhere);
  }
  const auto expected = expected_version(routed.request, kStream);
  if (!expected) {
    co_return expected.error();
  }
  WriteRequest request;
  request.kind = header_is_true(routed.request, "ES-HardDelete") ? WriteRequest::Kind::kHardDelete
                                                                 : WriteRequest::Kind::kSoftDelete;
  request.stream = std::string(routed.parameter("stream"));
  request.expected_version = *expected;
  const auto reply = co_await write(core, std::move(request));
  co_return reply.status == WriteStatus::kDone ? empty_text(204, "Stream deleted", kStream)
                                               : answer_of(reply, "Delete", kStream);
}

// --- The two read routes of the admin part ---

net::awaitable<Response> history(std::shared_ptr<Core> core, RoutedRequest routed) {
  const auto format = choose_format(routed, kHistoryFormats);
  if (!format) {
    co_return format.error();
  }
  co_return backward(*core, routed, "$scavenges", std::nullopt, kDefaultCount, *format,
                     "POST, DELETE, GET, GET, OPTIONS");
}

net::awaitable<Response> history_of_run(std::shared_ptr<Core> core, RoutedRequest routed) {
  const auto format = choose_format(routed, kHistoryFormats);
  if (!format) {
    co_return format.error();
  }
  const auto event = routed.parameter("event");
  const auto from = number<std::int64_t>(event);
  const auto count = number<std::int64_t>(routed.parameter("count"));
  if (event != "head" && (!from || *from < 0)) {
    co_return text_response(400, fmt::format("'{}' is not valid event number", event), kPage,
                            false);
  }
  if (!count || *count <= 0) {
    co_return text_response(400,
                            fmt::format("'{}' is not valid count. Should be positive integer",
                                        routed.parameter("count")),
                            kPage, false);
  }
  co_return backward(*core, routed, "$scavenges-" + std::string(routed.parameter("id")), from,
                     static_cast<std::size_t>(std::min(*count, kMostCount)), *format, kPage);
}

}  // namespace

void add_scavenge_history_routes(http::Router& router, const std::shared_ptr<Core>& core) {
  const RouteRule rule{.need = Need::kOperator,
                       .formats = {kHistoryFormats.begin(), kHistoryFormats.end()}};
  add_route(router, core, "GET", "/streams/$scavenges", rule, history);
  add_route(router, core, "GET", "/streams/$scavenges/{id}/{event}/{count}", rule, history_of_run);
}

void add_stream_routes(http::Router& router, const std::shared_ptr<Core>& core) {
  const auto with = [](auto handler, bool flag) {
    return [handler, flag](std::shared_ptr<Core> node, RoutedRequest request) {
      return handler(std::move(node), std::move(request), flag);
    };
  };
  // The stream's ACL is asked first; `$all` is a stream to it.
  const auto add = [&](const char* method, std::string_view pattern, StreamAction action,
                       NodeHandler handler) {
    add_route(router, core, method, pattern, RouteRule{.need = Need::kNobody},
              [action, handler = std::move(handler)](
                  std::shared_ptr<Core> node, RoutedRequest routed) -> net::awaitable<Response> {
                const auto named = routed.parameter("stream");
                const std::string stream(named.empty() ? "$all" : named);
                if (!may(*node, identity_of(*node, routed.request), stream, action)) {
                  return [](Response response) -> net::awaitable<Response> {
                    co_return response;
                  }(not_allowed());
                }
                return handler(std::move(node), std::move(routed));
              });
  };
  using enum StreamAction;
  add("GET", "/streams/{stream}", kRead, read_head);
  add("GET", "/streams/{stream}/{event}", kRead, read_event);
  add("GET", "/streams/{stream}/{event}/backward/{count}", kRead, with(read_page, false));
  add("GET", "/streams/{stream}/{event}/forward/{count}", kRead, with(read_page, true));
  add("GET", "/streams/{stream}/metadata", kReadMetadata, read_metadata);
  add("GET", "/streams/$all", kRead, with(read_all, false));
  add("GET", "/streams/$all/{position}/backward/{count}", kRead, with(read_all, false));
  add("GET", "/streams/$all/{position}/forward/{count}", kRead, with(read_all, true));
  add("POST", "/streams/{stream}", kWrite, with(append, false));
  add("POST", "/streams/{stream}/incoming/{guid}", kWrite, with(append, false));
  add("POST", "/streams/{stream}/metadata", kWriteMetadata, with(append, true));
  add("POST", "/streams/{stream}/metadata/incoming/{guid}", kWriteMetadata, with(append, true));
  add("DELETE", "/streams/{stream}", kDelete, remove);
}

}  // namespace verger::node
