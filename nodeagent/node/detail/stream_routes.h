#pragma once

#include <chrono>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "nodeagent/node/atom_format.h"
#include "nodeagent/node/negotiation.h"
#include "nodeagent/node/node_api.h"

/// What the routes of streams share (node-interface.md §1.11, §1.12).
namespace verger::node {

/// The formats of a feed, in the server's order: a wish for anything gets the description.
extern const std::vector<Format> kFeedFormats;
/// Of the answer to a write; it is empty, but a wish that cannot be met is refused all the same.
extern const std::vector<Format> kWriteAnswerFormats;

inline constexpr std::size_t kDefaultCount = 20;
inline constexpr std::int64_t kMostCount = 4096;

http::Response empty_text(int status, std::string reason, std::string_view methods);

/// The headers that steer a request. A route looks at its own ones only: a wrong ES-LongPoll is
/// nothing to a write.
struct StreamHeaders {
  bool resolve_links = false;
  bool require_leader = false;
  bool hard_delete = false;
  std::chrono::seconds long_poll{0};  ///< 0: answer at once
};
enum class HeadersOf : std::uint8_t {
  kWrite,
  kDelete,       ///< also ES-HardDelete
  kPage,         ///< also ES-ResolveLinkTos
  kPageForward,  ///< and ES-LongPoll
  kFiltered,     ///< a page whose links are always followed
  kFilteredForward,
};
/// The error is the 400 that names the header.
std::expected<StreamHeaders, http::Response> stream_headers(const http::Request& request,
                                                            HeadersOf route,
                                                            std::string_view methods);

/// 307 to the leader where the request wants it and this is not the leader; else nothing.
std::optional<http::Response> redirect(Core& core, const http::Request& request,
                                       const StreamHeaders& headers, std::string_view methods);
/// Nothing, or the answer to a page of more events than the server reads at once.
std::optional<http::Response> too_many(std::int64_t count, std::string_view methods);
/// 304 where the request's If-None-Match is what `version` has as an ETag.
std::optional<http::Response> not_modified(const http::Request& request, std::int64_t version,
                                           std::string_view media_type, std::string_view methods);
http::Response read_failure(Core& core, const Error& error, std::string_view methods);
/// With what caches may do with it: for ever, or revalidate with the ETag of `version`, or after
/// the seconds of the stream's $cacheControl.
http::Response cached(http::Response response, bool for_ever, std::int64_t version,
                      std::string_view media_type,
                      std::optional<std::int64_t> cache_seconds = std::nullopt);
/// $cacheControl of the stream's metadata.
std::optional<std::int64_t> cache_seconds_of(Core& core, const std::string& stream);
/// A page in the chosen format.
std::string written_feed(const nlohmann::ordered_json& page, Format format);
std::string written(const nlohmann::ordered_json& value);

/// Sleeps until something more may be read, or `until`; true where it is worth a look.
net::awaitable<bool> wait_for_more(std::shared_ptr<Core> core, LogPosition seen, Monotonic until);

/// Adds a route on a stream, or on $all: formats first, then the stream's rights.
void add_stream_route(http::Router& router, const std::shared_ptr<Core>& core, const char* method,
                      std::string_view pattern, StreamAction action, std::vector<Format> formats,
                      std::vector<Format> bodies, NodeHandler handler);

void add_all_routes(http::Router& router, const std::shared_ptr<Core>& core);
void add_write_routes(http::Router& router, const std::shared_ptr<Core>& core);

}  // namespace verger::node
