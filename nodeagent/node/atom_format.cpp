#include "nodeagent/node/atom_format.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <nlohmann/json.hpp>

#include "engine/base/json_depth.h"
#include "nodeagent/node/detail/lenient_words.h"

namespace verger::node::atom {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kLinkType = "$>";

std::string stream_url(const PageContext& context, std::string_view stream) {
  return fmt::format("{}/streams/{}", context.base_url, http::percent_encode(stream));
}

ordered_json link(std::string uri, std::string_view relation) {
  return {{"uri", std::move(uri)}, {"relation", relation}, {"type", nullptr}};
}

ordered_json author() { return {{"name", "EventStore"}}; }

std::optional<ordered_json> parsed(const Bytes& bytes) {
  if (json_depth(as_text(bytes)) > kMaxJsonDepth) {
    return std::nullopt;
  }
  auto value = ordered_json::parse(as_text(bytes), nullptr, false);
  return value.is_discarded() ? std::nullopt : std::optional(std::move(value));
}

/// Text of an event's bytes as a feed shows it.
std::string shown(const Bytes& bytes, Embed embed) {
  if (embed >= Embed::kPretty) {
    // Anything but an object is left as it is.
    if (const auto value = parsed(bytes); value && value->is_object()) {
      return value->dump(2, ' ', false, ordered_json::error_handler_t::replace);
    }
  }
  return std::string(as_text(bytes));
}

ordered_json shown_or_null(const Bytes& bytes, Embed embed) {
  return bytes.empty() ? ordered_json(nullptr) : ordered_json(shown(bytes, embed));
}

ordered_json entry(const PageContext& context, const ResolvedEvent& resolved, bool single = false) {
  const auto& event = resolved.event;
  const auto& original = resolved.original();
  const auto embed = context.embed;
  ordered_json out;
  if (embed >= Embed::kRich) {
    const bool body = embed >= Embed::kBody;
    bool is_json = event.is_json;
    out["eventId"] = event.id.to_string();
    out["eventType"] = event.type;
    out["eventNumber"] = event.number.value();
    if (body) {
      auto data = ordered_json(nullptr);
      if (event.is_json || embed == Embed::kTryHarder) {
        data = shown(event.data, embed);
        const auto value = is_json ? std::nullopt : parsed(event.data);
        is_json = is_json || event.data.empty() || (value && value->is_object());
      }
      out["data"] = std::move(data);
      out["metaData"] = shown_or_null(event.metadata, embed);
      out["linkMetaData"] = resolved.link ? ordered_json(shown(resolved.link->metadata, embed))
                                          : ordered_json(nullptr);
    }
    out["streamId"] = event.stream;
    out["isJson"] = is_json;
    // The server looks at metadata only where it shows them.
    out["isMetaData"] = body && !event.metadata.empty();
    out["isLinkMetaData"] = body && resolved.link && !resolved.link->metadata.empty();
    out["isRedacted"] = event.is_redacted;
    out["positionEventNumber"] = original.number.value();
    out["positionStreamId"] = original.stream;
  }
  const bool with_content = (single || embed == Embed::kContent) && event.is_json && !resolved.link;
  const auto url = fmt::format("{}/{}", stream_url(context, event.stream), event.number.value());
  out["title"] = fmt::format("{}@{}", event.number.value(), event.stream);
  out["id"] = url;
  out["updated"] = format_ticks(original.timestamp);
  out["author"] = author();
  out["summary"] = original.type;
  out["retryCount"] = nullptr;
  out["content"] = with_content ? event_json(event) : ordered_json(nullptr);
  out["links"] = ordered_json::array({link(url, "edit"), link(url, "alternate")});
  return out;
}

struct Feed {
  std::string title;
  std::string id;
  ordered_json stream;
  bool head = false;
  ordered_json self_url;
  ordered_json etag;
  ordered_json links = ordered_json::array();
  std::vector<ResolvedEvent> events;
  Ticks updated{};  ///< of the first event that was read
};

ordered_json write(const PageContext& context, Feed feed) {
  auto entries = ordered_json::array();
  for (const auto& event : feed.events) {
    entries.push_back(entry(context, event));
  }
  return {
      {"title", feed.title},          {"id", feed.id},      {"updated", format_ticks(feed.updated)},
      {"streamId", feed.stream},      {"author", author()}, {"headOfStream", feed.head},
      {"selfUrl", feed.self_url},     {"eTag", feed.etag},  {"links", feed.links},
      {"entries", std::move(entries)}};
}

Feed stream_feed(const PageContext& context) {
  Feed feed;
  feed.id = stream_url(context, context.stream);
  feed.title = fmt::format("Event stream '{}'", context.stream);
  feed.stream = context.stream;
  feed.links.push_back(link(feed.id, "self"));
  feed.links.push_back(link(fmt::format("{}/head/backward/{}", feed.id, context.count), "first"));
  return feed;
}

/// Pages of a filtered $all have none.
void add_metadata_link(const PageContext& context, Feed& feed) {
  if (context.stream == "$all") {
    feed.links.push_back(link(feed.id + "/metadata", "metadata"));
  }
}

Feed all_feed(const PageContext& context) {
  Feed feed;
  feed.id =
      context.base_url + "/streams/%24all" + context.stream.substr(std::string_view("$all").size());
  feed.title = "All events";
  feed.links.push_back(link(feed.id, "self"));
  feed.links.push_back(link(fmt::format("{}/head/backward/{}", feed.id, context.count), "first"));
  return feed;
}

}  // namespace

Embed embed_of(const http::Target& target) {
  constexpr std::array<std::pair<std::string_view, Embed>, 5> kNames = {
      {{"content", Embed::kContent},
       {"rich", Embed::kRich},
       {"body", Embed::kBody},
       {"pretty", Embed::kPretty},
       {"tryharder", Embed::kTryHarder}}};
  const auto value = target.parameter("embed").value_or("");
  const auto* const known = std::ranges::find_if(
      kNames, [value](const auto& name) { return same_word(name.first, value); });
  return known == kNames.end() ? Embed::kNone : known->second;
}

ResolvedEvent resolve(const streams::Database& database, streams::Event event) {
  if (event.type != kLinkType) {
    return {std::move(event), std::nullopt};
  }
  const auto text = as_text(event.data);
  const auto at = text.find('@');
  std::int64_t number = 0;
  if (at == std::string_view::npos ||
      std::from_chars(text.data(), text.data() + at, number).ptr != text.data() + at) {
    return {std::move(event), std::nullopt};
  }
  auto target = database.read_forward(text.substr(at + 1), EventNumber(number), 1);
  if (!target || target->events.empty() || target->events.front().number.value() != number) {
    return {std::move(event), std::nullopt};
  }
  return {std::move(target->events.front()), std::move(event)};
}

streams::StreamSlice page_of_numbers(streams::StreamSlice slice, EventNumber from,
                                     std::size_t count) {
  const auto last = slice.last_event_number.value();
  const auto start = std::max<std::int64_t>(from.value() - static_cast<std::int64_t>(count) + 1, 0);
  const auto oldest = slice.events.empty() ? -1 : slice.events.back().number.value();
  const bool at_first = slice.end_of_stream && oldest == start;
  std::erase_if(slice.events, [start](const auto& event) { return event.number.value() < start; });
  const bool has_start = !slice.events.empty() && slice.events.back().number.value() == start;
  slice.end_of_stream = start == 0 || at_first || (start <= last && !has_start);
  return slice;
}

ordered_json backward_page(const PageContext& context, const streams::StreamSlice& slice,
                           const streams::Database& database, EventNumber from, bool head) {
  auto feed = stream_feed(context);
  const auto last = slice.last_event_number.value();
  const auto count = static_cast<std::int64_t>(context.count);
  feed.head = head;
  if (head) {
    feed.self_url = feed.id;
    feed.etag = etag(last, "application/vnd.eventstore.atom+json");
  }
  if (!slice.end_of_stream) {
    feed.links.push_back(link(fmt::format("{}/0/forward/{}", feed.id, count), "last"));
    feed.links.push_back(
        link(fmt::format("{}/{}/backward/{}", feed.id, from.value() - count, count), "next"));
  }
  feed.links.push_back(
      link(fmt::format("{}/{}/forward/{}", feed.id, std::min(from.value(), last) + 1, count),
           "previous"));
  feed.links.push_back(link(feed.id + "/metadata", "metadata"));
  for (const auto& event : slice.events) {
    feed.events.push_back(resolve(database, event));
  }
  if (!feed.events.empty()) {
    feed.updated = feed.events.front().event.timestamp;
  }
  return write(context, std::move(feed));
}

ordered_json forward_page(const PageContext& context, const streams::StreamSlice& slice,
                          const streams::Database& database, EventNumber from) {
  auto feed = stream_feed(context);
  const auto count = static_cast<std::int64_t>(context.count);
  const auto last = slice.last_event_number.value();
  feed.head = slice.end_of_stream;
  if (from.value() > 0) {
    feed.links.push_back(link(fmt::format("{}/0/forward/{}", feed.id, count), "last"));
    feed.links.push_back(
        link(fmt::format("{}/{}/backward/{}", feed.id, from.value() - 1, count), "next"));
  }
  if (!slice.end_of_stream || !slice.events.empty()) {
    // Beyond the stream's end, wherever the page began.
    const auto next = from.value() > last
                          ? last + 1
                          : from.value() + std::min(count - 1, last - from.value()) + 1;
    feed.links.push_back(link(fmt::format("{}/{}/forward/{}", feed.id, next, count), "previous"));
  }
  feed.links.push_back(link(feed.id + "/metadata", "metadata"));
  for (auto event = slice.events.rbegin(); event != slice.events.rend(); ++event) {
    feed.events.push_back(resolve(database, *event));
  }
  if (!feed.events.empty()) {
    feed.updated = feed.events.back().event.timestamp;
  }
  return write(context, std::move(feed));
}

ordered_json all_backward_page(const PageContext& context, const streams::AllSlice& slice,
                               streams::AllPosition from, const streams::Database* links) {
  auto feed = all_feed(context);
  if (!slice.end) {
    feed.links.push_back(
        link(fmt::format("{}/{}/forward/{}", feed.id, position_text({}), context.count), "last"));
    feed.links.push_back(
        link(fmt::format("{}/{}/backward/{}", feed.id, position_text(slice.next), context.count),
             "next"));
  }
  feed.links.push_back(link(
      fmt::format("{}/{}/forward/{}", feed.id, position_text(from), context.count), "previous"));
  add_metadata_link(context, feed);
  for (const auto& event : slice.events) {
    feed.events.push_back(links == nullptr ? ResolvedEvent{event, std::nullopt}
                                           : resolve(*links, event));
  }
  if (!feed.events.empty()) {
    feed.updated = feed.events.front().event.timestamp;
  }
  return write(context, std::move(feed));
}

ordered_json all_forward_page(const PageContext& context, const streams::AllSlice& slice,
                              streams::AllPosition from, const streams::Database* links) {
  auto feed = all_feed(context);
  if (from > streams::AllPosition{}) {
    feed.links.push_back(
        link(fmt::format("{}/{}/forward/{}", feed.id, position_text({}), context.count), "last"));
    feed.links.push_back(link(
        fmt::format("{}/{}/backward/{}", feed.id, position_text(from), context.count), "next"));
  }
  if (!slice.end || !slice.events.empty()) {
    feed.links.push_back(
        link(fmt::format("{}/{}/forward/{}", feed.id, position_text(slice.next), context.count),
             "previous"));
  }
  add_metadata_link(context, feed);
  for (auto event = slice.events.rbegin(); event != slice.events.rend(); ++event) {
    feed.events.push_back(links == nullptr ? ResolvedEvent{*event, std::nullopt}
                                           : resolve(*links, *event));
  }
  if (!feed.events.empty()) {
    feed.updated = feed.events.front().event.timestamp;
  }
  return write(context, std::move(feed));
}

ordered_json event_json(const streams::Event& event) {
  const auto value = [&](const Bytes& bytes) {
    auto json = event.is_json ? parsed(bytes) : std::nullopt;
    return json ? *std::move(json) : ordered_json(std::string(as_text(bytes)));
  };
  return {{"eventStreamId", event.stream}, {"eventNumber", event.number.value()},
          {"eventType", event.type},       {"eventId", event.id.to_string()},
          {"data", value(event.data)},     {"metadata", value(event.metadata)}};
}

ordered_json single_entry(const PageContext& context, const ResolvedEvent& event) {
  return entry(context, event, /*single=*/true);
}

std::string etag(std::int64_t version, std::string_view media_type) {
  // The server's hashes of the media types, so that its clients' caches agree with ours.
  const auto hash = media_type == "application/json"                       ? 259277723
                    : media_type == "application/vnd.eventstore.atom+json" ? -1498793286
                                                                           : 0;
  return fmt::format("{};{}", version, hash);
}

std::string position_text(streams::AllPosition position) {
  return fmt::format("{:016X}{:016X}", position.commit.value(), position.prepare.value());
}

std::optional<streams::AllPosition> parse_position(std::string_view text) {
  if (text.size() != 32) {
    return std::nullopt;
  }
  const auto half = [](std::string_view digits) -> std::optional<std::int64_t> {
    std::uint64_t value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) {
      return std::nullopt;
    }
    return static_cast<std::int64_t>(value);
  };
  const auto commit = half(text.substr(0, 16));
  const auto prepare = half(text.substr(16));
  if (!commit || !prepare) {
    return std::nullopt;
  }
  return streams::AllPosition{LogPosition(*commit), LogPosition(*prepare)};
}

std::expected<std::vector<streams::NewEvent>, std::string> parse_events(const std::string& body,
                                                                        bool metadata) {
  constexpr auto invalid = "Write request body invalid.";
  if (json_depth(body) > kMaxJsonDepth) {
    return std::unexpected(invalid);
  }
  const auto list = ordered_json::parse(body, nullptr, false);
  if (!list.is_array() || list.empty()) {
    return std::unexpected(invalid);
  }
  const auto bytes = [](const ordered_json* value, bool& is_json) -> Bytes {
    std::string text;
    if (value != nullptr && value->is_structured()) {
      is_json = true;
      text = value->dump(2, ' ', false, ordered_json::error_handler_t::replace);
    } else if (value != nullptr && value->is_string()) {
      text = value->get<std::string>();
    }
    const auto view = as_bytes(text);
    return {view.begin(), view.end()};
  };
  std::vector<streams::NewEvent> events;
  for (const auto& entry : list) {
    if (!entry.is_object()) {
      return std::unexpected(invalid);
    }
    streams::NewEvent event;
    event.is_json = false;
    if (const auto* id = member_of(entry, "eventId"); id != nullptr && !id->is_null()) {
      const auto parsed_id = id->is_string() ? parse_guid(id->get<std::string>()) : std::nullopt;
      if (!parsed_id) {
        return std::unexpected(invalid);
      }
      event.id = *parsed_id;
    }
    if (event.id.is_zero()) {
      return std::unexpected("Empty eventId provided. (Parameter 'eventId')");
    }
    if (const auto* type = member_of(entry, "eventType"); type != nullptr && type->is_string()) {
      event.type = type->get<std::string>();
    }
    if (metadata) {
      event.type = "$metadata";
    }
    if (event.type.empty()) {
      return std::unexpected("Empty eventType provided. (Parameter 'eventType')");
    }
    event.data = bytes(member_of(entry, "data"), event.is_json);
    event.metadata = bytes(member_of(entry, "metadata"), event.is_json);
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace verger::node::atom
