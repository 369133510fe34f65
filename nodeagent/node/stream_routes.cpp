#include "nodeagent/node/detail/stream_routes.h"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

#include "engine/base/json_number.h"
#include "nodeagent/node/atom_xml.h"
#include "nodeagent/node/detail/core.h"

namespace verger::node {

using http::Response;
using http::RoutedRequest;
using nlohmann::ordered_json;

const std::vector<Format> kFeedFormats = {
    Format::kDescription, Format::kAtomXml,   Format::kAtomJson,  Format::kXml,       Format::kJson,
    Format::kEventXml,    Format::kEventJson, Format::kEventsXml, Format::kEventsJson};
const std::vector<Format> kWriteAnswerFormats = {
    Format::kDescription, Format::kAtomXml,  Format::kAtomJson,  Format::kXml,
    Format::kJson,        Format::kEventXml, Format::kEventJson, Format::kEventsXml,
    Format::kEventsJson,  Format::kBytes};

namespace {

enum class Flag : std::uint8_t { kAbsent, kFalse, kTrue, kWrong };

Flag flag_of(const http::Request& request, std::string_view name) {
  const auto value = request.headers.get(name);
  if (!value || value->empty()) {
    return Flag::kAbsent;
  }
  std::string text(*value);
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text == "true" ? Flag::kTrue : text == "false" ? Flag::kFalse : Flag::kWrong;
}

}  // namespace

Response empty_text(int status, std::string reason, std::string_view methods) {
  auto response = text_response(status, {}, methods, true);
  response.reason = std::move(reason);
  return response;
}

std::expected<StreamHeaders, Response> stream_headers(const http::Request& request, HeadersOf route,
                                                      std::string_view methods) {
  const auto wrong = [&](std::string_view name) {
    return std::unexpected(
        text_response(400, fmt::format("{} header in wrong format.", name), methods, false));
  };
  StreamHeaders headers;
  if (route == HeadersOf::kPage || route == HeadersOf::kPageForward) {
    const auto resolve = flag_of(request, "ES-ResolveLinkTos");
    if (resolve == Flag::kWrong) {
      return wrong("ES-ResolveLinkTos");
    }
    headers.resolve_links = resolve == Flag::kTrue;
  }
  const auto leader = flag_of(request, "ES-RequireLeader");
  const auto master = flag_of(request, "ES-RequireMaster");
  headers.require_leader = leader == Flag::kTrue || master == Flag::kTrue;
  // One good header of the two is enough.
  const bool asked = leader != Flag::kAbsent || master != Flag::kAbsent;
  if (asked && !headers.require_leader && leader != Flag::kFalse && master != Flag::kFalse) {
    return wrong("ES-RequireLeader");
  }
  if (route == HeadersOf::kDelete) {
    const auto hard = flag_of(request, "ES-HardDelete");
    if (hard == Flag::kWrong) {
      return wrong("ES-HardDelete");
    }
    headers.hard_delete = hard == Flag::kTrue;
  }
  if (route == HeadersOf::kPageForward || route == HeadersOf::kFilteredForward) {
    if (const auto text = request.headers.get("ES-LongPoll"); text && !text->empty()) {
      const auto seconds = parse_number<std::int32_t>(*text);
      if (!seconds || *seconds <= 0) {
        return wrong("ES-LongPoll");
      }
      headers.long_poll = std::chrono::seconds(*seconds);
    }
  }
  return headers;
}

std::optional<Response> redirect(Core& core, const http::Request& request,
                                 const StreamHeaders& headers, std::string_view methods) {
  if (!headers.require_leader || core.election->state() == api::NodeState::kLeader) {
    return std::nullopt;
  }
  // Without a leader: to the last one, as the server does, dead or not (node-interface.md §8.2).
  const auto leader =
      core.election->leader() ? core.election->leader() : core.election->last_leader();
  const auto* member = leader ? core.gossip->find(*leader) : nullptr;
  if (member == nullptr) {
    return empty_text(503, "Server Is Not Ready", methods);
  }
  auto response = empty_text(307, "Temporary Redirect", methods);
  response.headers.set("Location", member->http.url() + request.target);
  return response;
}

std::optional<Response> too_many(std::int64_t count, std::string_view methods) {
  if (count <= kMostCount) {
    return std::nullopt;
  }
  return empty_text(500, fmt::format("Read size too big, should be less than {} items", kMostCount),
                    methods);
}

std::optional<Response> not_modified(const http::Request& request, std::int64_t version,
                                     std::string_view media_type, std::string_view methods) {
  auto known = request.headers.get("If-None-Match").value_or("");
  while (known.starts_with('"')) {
    known.remove_prefix(1);
  }
  while (known.ends_with('"')) {
    known.remove_suffix(1);
  }
  return known == atom::etag(version, media_type) ? std::optional(empty_text(304, {}, methods))
                                                  : std::nullopt;
}

Response read_failure(Core& core, const Error& error, std::string_view methods) {
  core.env.log.error("read failed", {{"node", core.self}, {"reason", error.message}});
  return empty_text(500, "Read Error", methods);
}

std::optional<std::int64_t> cache_seconds_of(Core& core, const std::string& stream) {
  const auto metadata = core.db().metadata(stream);
  if (!metadata || metadata->number.value() < 0) {
    return std::nullopt;
  }
  const auto newest = core.db().read_backward("$$" + stream, metadata->number, 1);
  if (!newest || newest->events.empty()) {
    return std::nullopt;
  }
  const auto value = atom::event_json(newest->events.front())["data"];
  const auto seconds = value.is_object() ? value.value("$cacheControl", ordered_json()) : value;
  const bool counts = seconds.is_number_unsigned() && seconds > 0 &&
                      seconds <= std::numeric_limits<std::int32_t>::max();
  return counts ? std::optional(json_integer<std::int64_t>(seconds)) : std::nullopt;
}

Response cached(Response response, bool for_ever, std::int64_t version, std::string_view media_type,
                std::optional<std::int64_t> cache_seconds) {
  response.headers.set("Cache-Control", for_ever ? "max-age=31536000, private"
                                        : cache_seconds
                                            ? fmt::format("max-age={}, private", *cache_seconds)
                                            : "max-age=0, no-cache, must-revalidate");
  response.headers.set("Vary", "Accept");
  if (!for_ever) {
    response.headers.set("ETag", "\"" + atom::etag(version, media_type) + "\"");
  }
  return response;
}

std::string written(const ordered_json& value) {
  return value.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

std::string written_feed(const ordered_json& page, Format format) {
  switch (format) {
    case Format::kText:
      return "EventStore.Transport.Http.Atom.FeedElement";
    case Format::kXml:
    case Format::kAtomXml:
    case Format::kEventXml:
    case Format::kEventsXml:
      return atom::feed_xml(page);
    case Format::kJson:
    case Format::kDescription:
    case Format::kAtomJson:
    case Format::kEventJson:
    case Format::kEventsJson:
    case Format::kBytes:
      break;
  }
  return written(page);
}

net::awaitable<bool> wait_for_more(std::shared_ptr<Core> core, LogPosition seen, Monotonic until) {
  while (core->takes_work() && core->now() < until) {
    if (core->db().committed() != seen) {
      co_return true;
    }
    co_await core->env.timers.sleep_for(core->options.timings.tick);
  }
  co_return false;
}

void add_stream_route(http::Router& router, const std::shared_ptr<Core>& core, const char* method,
                      std::string_view pattern, StreamAction action, std::vector<Format> formats,
                      std::vector<Format> bodies, NodeHandler handler) {
  add_route(
      router, core, method, pattern,
      RouteRule{.need = Need::kNobody, .formats = std::move(formats), .bodies = std::move(bodies)},
      [action, handler = std::move(handler)](std::shared_ptr<Core> node,
                                             RoutedRequest routed) -> net::awaitable<Response> {
        const auto named = routed.parameter("stream");
        const std::string stream(named.empty() ? "$all" : named);
        if (!may(*node, identity_of(*node, routed.request), stream, action)) {
          return [](Response response) -> net::awaitable<Response> {
            co_return response;
          }(not_allowed());
        }
        return handler(std::move(node), std::move(routed));
      });
}

}  // namespace verger::node
