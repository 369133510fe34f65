#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "engine/streams/event_store.h"
#include "nodeagent/node/negotiation.h"

/// The JSON forms of AtomPub pages and events, as the server writes them (node-interface.md §1.11).
namespace verger::node::atom {

enum class Embed : std::uint8_t { kNone, kContent, kRich, kBody };
/// By the `embed` parameter; unknown names are kNone. ("pretty" and "tryharder" are bodies here.)
Embed embed_of(const http::Target& target);

/// An event and, where it came by a link, the link.
struct ResolvedEvent {
  streams::Event event;
  std::optional<streams::Event> link;
  [[nodiscard]] const streams::Event& original() const { return link ? *link : event; }
};
/// Follows `$>` links; a link whose target is gone stays itself.
ResolvedEvent resolve(const streams::Database& database, streams::Event event);

struct PageContext {
  std::string base_url;  ///< "http://host:port"
  std::string stream;    ///< also "$all" and "$all/filtered"
  std::size_t count = 20;
  Embed embed = Embed::kNone;
};

/// Newest first, as read.
nlohmann::ordered_json backward_page(const PageContext& context, const streams::StreamSlice& slice,
                                     const streams::Database& database, EventNumber from,
                                     bool head);
nlohmann::ordered_json forward_page(const PageContext& context, const streams::StreamSlice& slice,
                                    const streams::Database& database, EventNumber from);
/// `from` is where the page begins; `end` the end of the committed log.
nlohmann::ordered_json all_backward_page(const PageContext& context, const streams::AllSlice& slice,
                                         streams::AllPosition from, bool head);
nlohmann::ordered_json all_forward_page(const PageContext& context, const streams::AllSlice& slice,
                                        streams::AllPosition from);

/// "application/vnd.eventstore.event+json"
nlohmann::ordered_json event_json(const streams::Event& event);
/// The entry of one event, with its content.
nlohmann::ordered_json entry_with_content(const PageContext& context, const ResolvedEvent& event);

/// "<version>;<hash of the media type>", without quotes.
std::string etag(std::int64_t version, std::string_view media_type);
/// 32 upper-case hex digits: commit, prepare.
std::string position_text(streams::AllPosition position);
std::optional<streams::AllPosition> parse_position(std::string_view text);

/// An event of `application/vnd.eventstore.events+json`: JSON is kept re-indented by two spaces.
/// The error is the answer's text.
std::expected<std::vector<streams::NewEvent>, std::string> parse_events(const std::string& body,
                                                                        bool metadata);

}  // namespace verger::node::atom
