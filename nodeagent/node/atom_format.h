#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "engine/streams/event_store.h"
#include "nodeagent/node/negotiation.h"

/// The JSON forms of AtomPub pages and events, as the server writes them (node-interface.md §1.11).
namespace verger::node::atom {

/// In the server's order: each shows what the one before shows, and more. kPretty: JSON objects are
/// indented; kTryHarder: so is data that is not marked as JSON, where it is.
enum class Embed : std::uint8_t { kNone, kContent, kRich, kBody, kPretty, kTryHarder };
/// By the `embed` parameter, in any case; unknown names are kNone.
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

/// The part of `slice`, read backward, that the server gives for the page of `count` numbers that
/// begins with `from`: it counts numbers, not events, and a page beyond the stream's end is empty.
/// end_of_stream is the server's: whether there are links to older pages.
streams::StreamSlice page_of_numbers(streams::StreamSlice slice, EventNumber from,
                                     std::size_t count);
/// Newest first, as read; `slice` is a page_of_numbers().
nlohmann::ordered_json backward_page(const PageContext& context, const streams::StreamSlice& slice,
                                     const streams::Database& database, EventNumber from,
                                     bool head);
nlohmann::ordered_json forward_page(const PageContext& context, const streams::StreamSlice& slice,
                                    const streams::Database& database, EventNumber from);
/// `from` is where the page begins. `links`: where they are followed; null: they stay themselves.
nlohmann::ordered_json all_backward_page(const PageContext& context, const streams::AllSlice& slice,
                                         streams::AllPosition from, const streams::Database* links);
nlohmann::ordered_json all_forward_page(const PageContext& context, const streams::AllSlice& slice,
                                        streams::AllPosition from, const streams::Database* links);

/// "application/vnd.eventstore.event+json"
nlohmann::ordered_json event_json(const streams::Event& event);
/// The entry of one event, with its content where that is JSON.
nlohmann::ordered_json single_entry(const PageContext& context, const ResolvedEvent& event);

/// "<version>;<hash of the media type>", without quotes.
std::string etag(std::int64_t version, std::string_view media_type);
/// 32 upper-case hex digits: commit, prepare.
std::string position_text(streams::AllPosition position);
std::optional<streams::AllPosition> parse_position(std::string_view text);

/// The events of `application/vnd.eventstore.events+json`, as the server reads them: names of
/// members in any case; objects and arrays are kept re-indented by two spaces, a string as its
/// characters, any other value as nothing; an event is JSON where its data or its metadata is an
/// object or an array. The error is the answer's text.
std::expected<std::vector<streams::NewEvent>, std::string> parse_events(const std::string& body,
                                                                        bool metadata);

}  // namespace verger::node::atom
