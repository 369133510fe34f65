// AtomPub over HTTP, reading, and the two read routes of $scavenges: node-interface.md §1.11,
// §1.12.
#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "engine/streams/stream_names.h"
#include "nodeagent/node/atom_xml.h"
#include "nodeagent/node/detail/allowed_methods.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/detail/stream_routes.h"

namespace verger::node {
namespace {

using http::Response;
using http::RoutedRequest;
using nlohmann::ordered_json;

const std::vector<Format> kHistoryFormats = {Format::kText, Format::kJson, Format::kXml};
const std::vector<Format> kEventFormats = {Format::kAtomXml, Format::kAtomJson, Format::kXml,
                                           Format::kJson,    Format::kEventXml, Format::kEventJson,
                                           Format::kBytes};

std::optional<Response> no_stream(streams::StreamStatus status, std::string_view methods) {
  if (status == streams::StreamStatus::kNoStream) {
    return empty_text(404, {}, methods);
  }
  if (status == streams::StreamStatus::kDeleted) {
    return empty_text(410, "Deleted", methods);
  }
  return std::nullopt;
}

/// Data requested as application/json: JSON as the server writes it, anything else, and what was
/// redacted, as a JSON string.
std::string data_as_json(const streams::Event& event) {
  return written(atom::event_json(event)["data"]);
}

/// One event in the chosen format.
std::string event_text(const atom::PageContext& context, const atom::ResolvedEvent& resolved,
                       Format format) {
  const auto& event = resolved.event;
  switch (format) {
    case Format::kBytes:
      return std::string(as_text(event.data));
    case Format::kJson:
      return data_as_json(event);
    case Format::kXml:
      return atom::value_xml("data", atom::event_json(event)["data"]);
    case Format::kEventXml:
      return atom::value_xml("event", atom::event_json(event));
    case Format::kEventJson:
      return written(atom::event_json(event));
    case Format::kAtomXml:
      return atom::entry_xml(atom::single_entry(context, resolved));
    case Format::kText:
    case Format::kDescription:
    case Format::kAtomJson:
    case Format::kEventsXml:
    case Format::kEventsJson:
      break;
  }
  return written(atom::single_entry(context, resolved));
}

// --- Reading ---

Response backward(Core& core, const RoutedRequest& routed, const std::string& stream,
                  std::optional<std::int64_t> from, std::size_t count, const Negotiated& format,
                  std::string_view methods) {
  auto slice = core.db().read_backward(stream, from ? EventNumber(*from) : kDeletedStream, count);
  if (!slice) {
    return read_failure(core, slice.error(), methods);
  }
  const auto last = slice->last_event_number.value();
  if (slice->status == streams::StreamStatus::kSuccess) {
    if (auto same = not_modified(routed.request, last, format.media_type, methods)) {
      return *std::move(same);
    }
  }
  if (auto missing = no_stream(slice->status, methods)) {
    return *std::move(missing);
  }
  EventNumber begin(from.value_or(last));
  if (!from && slice->events.empty()) {
    // Where all was cut off the server has no number to begin at, and says so in its links.
    if (const auto limits = core.db().metadata(stream);
        limits && limits->truncate_before.value_or(0) > last) {
      begin = kNoStream;
    }
  }
  const auto page = atom::page_of_numbers(*std::move(slice), begin, count);
  const atom::PageContext context{base_url(core, routed.request), stream, count,
                                  atom::embed_of(routed.target)};
  const auto feed = atom::backward_page(context, page, core.db(), begin, !from);
  return cached(formatted(format, written_feed(feed, format.format), methods),
                from && *from <= last, last, format.media_type, cache_seconds_of(core, stream));
}

net::awaitable<Response> forward(std::shared_ptr<Core> core, const RoutedRequest& routed,
                                 const std::string& stream, std::int64_t from, std::size_t count,
                                 const Negotiated& format, std::chrono::seconds long_poll,
                                 std::string_view methods) {
  auto seen = core->db().committed();
  auto slice = core->db().read_forward(stream, EventNumber(from), count);
  const auto until = core->now() + long_poll;
  while (slice && slice->status != streams::StreamStatus::kDeleted &&
         from > slice->last_event_number.value() && co_await wait_for_more(core, seen, until)) {
    seen = core->db().committed();
    slice = core->db().read_forward(stream, EventNumber(from), count);
  }
  if (!slice) {
    co_return read_failure(*core, slice.error(), methods);
  }
  if (auto missing = no_stream(slice->status, methods)) {
    co_return *std::move(missing);
  }
  const auto last = slice->last_event_number.value();
  if (auto same = not_modified(routed.request, last, format.media_type, methods)) {
    co_return *std::move(same);
  }
  const atom::PageContext context{base_url(*core, routed.request), stream, count,
                                  atom::embed_of(routed.target)};
  const auto page = atom::forward_page(context, *slice, core->db(), EventNumber(from));
  const bool full = last >= from && last - from + 1 >= static_cast<std::int64_t>(count);
  co_return cached(formatted(format, written_feed(page, format.format), methods), full, last,
                   format.media_type, cache_seconds_of(*core, stream));
}

/// A feed requested in no form, or in any, gets a description of what there is, and no success.
Response description(const http::Request& request, const std::string& stream,
                     std::string_view methods) {
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
                            written(body), methods);
  const auto accept = request.headers.get("Accept").value_or("");
  response.status = accept.empty() || accept.contains("*/*") ? 406 : 200;
  response.reason = "Description Document";
  return response;
}

/// A page of `stream`, whose event number, count and direction the path names; the head where it
/// names none.
net::awaitable<Response> read_page(std::shared_ptr<Core> core, RoutedRequest routed,
                                   std::string stream, bool ahead, bool metadata,
                                   std::string_view methods) {
  const auto bad = [&](std::string text) {
    return text_response(400, std::move(text), methods, false);
  };
  const auto format = choose_format(routed, kFeedFormats);
  if (!format) {
    co_return format.error();
  }
  if (!ahead && !metadata && format->format == Format::kDescription) {
    co_return description(routed.request, stream, methods);
  }
  const auto event = routed.parameter("event");
  const auto from = parse_number<std::int64_t>(event);
  const bool head = !ahead && (event.empty() || event == "head");
  if (!head && (!from || *from < 0)) {
    co_return bad(fmt::format("'{}' is not valid event number", event));
  }
  const auto count_text = routed.parameter("count");
  const auto count = count_text.empty() ? std::optional(static_cast<std::int32_t>(kDefaultCount))
                                        : parse_number<std::int32_t>(count_text);
  if (!count || *count <= 0) {
    co_return bad(fmt::format("'{}' is not valid count. Should be positive integer", count_text));
  }
  const auto headers =
      stream_headers(routed.request, ahead ? HeadersOf::kPageForward : HeadersOf::kPage, methods);
  if (!headers) {
    co_return headers.error();
  }
  if (auto elsewhere = redirect(*core, routed.request, *headers, methods)) {
    co_return *std::move(elsewhere);
  }
  if (auto refused = too_many(*count, methods)) {
    co_return *std::move(refused);
  }
  const auto whole = static_cast<std::size_t>(*count);
  if (ahead) {
    co_return co_await forward(core, routed, stream, *from, whole, *format, headers->long_poll,
                               methods);
  }
  co_return backward(*core, routed, stream, head ? std::nullopt : from, whole, *format, methods);
}

/// Is it the metastream of a stream that there is? An event that it does not have is then no
/// failure, but empty metadata (node-interface.md, 8.3).
bool metadata_of_existing(Core& core, std::string_view stream) {
  if (!streams::is_metastream(stream)) {
    return false;
  }
  const auto last = core.db().last_event_number(streams::original_of(stream));
  return last && last->value() >= 0;
}

/// One event of `stream`: the path's, or the newest.
net::awaitable<Response> read_one(std::shared_ptr<Core> core, RoutedRequest routed,
                                  std::string stream, std::string_view methods) {
  const auto format = choose_format(routed, kEventFormats);
  if (!format) {
    co_return format.error();
  }
  const auto text = routed.parameter("event");
  const auto wanted = parse_number<std::int64_t>(text);
  const bool head = text.empty() || text == "head";
  if (!head && (!wanted || *wanted < 0)) {
    co_return text_response(400, fmt::format("'{}' is not valid event number", text), methods,
                            false);
  }
  const auto headers = stream_headers(routed.request, HeadersOf::kPage, methods);
  if (!headers) {
    co_return headers.error();
  }
  if (auto elsewhere = redirect(*core, routed.request, *headers, methods)) {
    co_return *std::move(elsewhere);
  }
  const auto slice =
      core->db().read_backward(stream, head ? kDeletedStream : EventNumber(*wanted), 1);
  if (!slice) {
    co_return read_failure(*core, slice.error(), methods);
  }
  // An empty result in the requested format; in XML that is nothing.
  const bool xml = format->format == Format::kAtomXml || format->format == Format::kXml ||
                   format->format == Format::kEventXml;
  const std::string nothing = xml ? "" : "{}";
  if (slice->status == streams::StreamStatus::kDeleted) {
    auto gone = text_response(410, nothing, methods, true);
    gone.reason = "Deleted";
    co_return gone;
  }
  if (slice->events.empty() || (!head && slice->events.front().number.value() != *wanted)) {
    if (metadata_of_existing(*core, stream)) {
      co_return formatted(*format, nothing, methods);
    }
    co_return text_response(404, nothing, methods, true);
  }
  const auto resolved = atom::resolve(core->db(), slice->events.front());
  const atom::PageContext context{base_url(*core, routed.request), stream, 1,
                                  atom::embed_of(routed.target)};
  co_return cached(formatted(*format, event_text(context, resolved, format->format), methods),
                   !head, slice->last_event_number.value(), format->media_type,
                   head ? cache_seconds_of(*core, stream) : std::nullopt);
}

/// The stream that the path names, or the one of its metadata; the error is the 400.
std::expected<std::string, Response> named_stream(const RoutedRequest& routed, bool metadata,
                                                  std::string_view methods) {
  std::string stream(routed.parameter("stream"));
  if (!metadata) {
    return stream;
  }
  if (stream.starts_with("$$")) {
    return std::unexpected(text_response(
        400, "Stream must be non-empty string and should not be metastream", methods, false));
  }
  return "$$" + stream;
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
  const auto from = parse_number<std::int64_t>(event);
  const auto count = parse_number<std::int32_t>(routed.parameter("count"));
  if (event != "head" && (!from || *from < 0)) {
    co_return text_response(400, fmt::format("'{}' is not valid event number", event),
                            methods::kGet, false);
  }
  if (!count || *count <= 0) {
    co_return text_response(400,
                            fmt::format("'{}' is not valid count. Should be positive integer",
                                        routed.parameter("count")),
                            methods::kGet, false);
  }
  if (auto refused = too_many(*count, methods::kGet)) {
    co_return *std::move(refused);
  }
  co_return backward(*core, routed, "$scavenges-" + std::string(routed.parameter("id")), from,
                     static_cast<std::size_t>(*count), *format, methods::kGet);
}

net::awaitable<Response> page_of_stream(std::shared_ptr<Core> core, RoutedRequest request,
                                        bool ahead, bool metadata, std::string_view methods) {
  auto stream = named_stream(request, metadata, methods);
  if (!stream) {
    co_return stream.error();
  }
  co_return co_await read_page(std::move(core), std::move(request), *std::move(stream), ahead,
                               metadata, methods);
}

net::awaitable<Response> event_of_stream(std::shared_ptr<Core> core, RoutedRequest request,
                                         bool metadata, std::string_view methods) {
  auto stream = named_stream(request, metadata, methods);
  if (!stream) {
    co_return stream.error();
  }
  co_return co_await read_one(std::move(core), std::move(request), *std::move(stream), methods);
}

}  // namespace

void add_scavenge_history_routes(http::Router& router, const std::shared_ptr<Core>& core) {
  const RouteRule rule{.need = Need::kOperator, .formats = kHistoryFormats};
  add_route(router, core, "GET", "/streams/$scavenges", rule, history);
  add_route(router, core, "GET", "/streams/$scavenges/{id}/{event}/{count}", rule, history_of_run);
}

void add_stream_routes(http::Router& router, const std::shared_ptr<Core>& core) {
  const auto pages = [&](std::string_view pattern, bool ahead, bool metadata,
                         std::string_view methods) {
    add_stream_route(router, core, "GET", pattern,
                     metadata ? StreamAction::kReadMetadata : StreamAction::kRead, kFeedFormats, {},
                     [ahead, metadata, methods](std::shared_ptr<Core> node, RoutedRequest request) {
                       return page_of_stream(std::move(node), std::move(request), ahead, metadata,
                                             methods);
                     });
  };
  const auto event = [&](std::string_view pattern, bool metadata, std::string_view methods) {
    add_stream_route(
        router, core, "GET", pattern, metadata ? StreamAction::kReadMetadata : StreamAction::kRead,
        kEventFormats, {}, [metadata, methods](std::shared_ptr<Core> node, RoutedRequest request) {
          return event_of_stream(std::move(node), std::move(request), metadata, methods);
        });
  };
  pages("/streams/{stream}", false, false, methods::kStream);
  event("/streams/{stream}/{event}", false, methods::kGet);
  pages("/streams/{stream}/{event}/{count}", false, false, methods::kGet);
  pages("/streams/{stream}/{event}/backward/{count}", false, false, methods::kGet);
  pages("/streams/{stream}/{event}/forward/{count}", true, false, methods::kGet);
  event("/streams/{stream}/metadata", true, methods::kMetadata);
  event("/streams/{stream}/metadata/{event}", true, methods::kGetTwice);
  pages("/streams/{stream}/metadata/{event}/{count}", false, true, methods::kGet);
  pages("/streams/{stream}/metadata/{event}/backward/{count}", false, true, methods::kGet);
  pages("/streams/{stream}/metadata/{event}/forward/{count}", true, true, methods::kGet);
  add_all_routes(router, core);
  add_write_routes(router, core);
}

}  // namespace verger::node
