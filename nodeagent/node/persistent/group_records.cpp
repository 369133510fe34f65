#include "nodeagent/node/persistent/group_records.h"

#include <fmt/ranges.h>
#include <limits>

#include <nlohmann/json.hpp>

#include "engine/base/json_number.h"

namespace verger::node::persistent {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kPrefix = "$persistentsubscription-";
/// What stands in "startFrom", which knows numbers alone, for a position of $all.
constexpr std::int64_t kNoNumber = std::numeric_limits<std::int64_t>::min();

std::string text_of(const ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

/// As the server's: "+00:00" for UTC.
std::string time_text(Ticks time) {
  auto text = format_ticks(time);
  if (text.ends_with('Z')) {
    text.replace(text.size() - 1, 1, "+00:00");
  }
  return text;
}

/// An empty one keeps its place.
std::string joined(const std::vector<std::string>& texts) {
  return fmt::format("{}", fmt::join(texts, ","));
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    out.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(text.size(), comma + 1));
  }
  return out;
}

ordered_json entry_of(const GroupConfig& group) {
  const auto& settings = group.settings;
  ordered_json out = {{"stream", group.key.stream}, {"group", group.key.group}};
  if (settings.filter) {
    const bool regex = !settings.filter->regex.empty();
    out["filter"] = {{"context", settings.filter->by_stream ? "streamid" : "eventtype"},
                     {"type", regex ? "regex" : "prefix"},
                     {"data", regex ? settings.filter->regex : joined(settings.filter->prefixes)},
                     {"isAllStream", true}};
  }
  const auto number = [&](const char* name, std::int64_t value) {
    if (value != 0) {
      out[name] = value;
    }
  };
  if (settings.resolve_links) {
    out["resolveLinkTos"] = true;
  }
  if (settings.extra_statistics) {
    out["extraStatistics"] = true;
  }
  number("messageTimeout", settings.message_timeout_ms);
  const auto* start = std::get_if<EventNumber>(&settings.start);
  number("startFrom", start != nullptr ? start->value() : kNoNumber);
  out["startPosition"] = to_text(settings.start);
  number("liveBufferSize", settings.live_buffer_size);
  number("historyBufferSize", settings.history_buffer_size);
  number("maxRetryCount", settings.max_retry_count);
  number("readBatchSize", settings.read_batch_size);
  number("checkPointAfter", settings.checkpoint_after_ms);
  number("minCheckPointCount", settings.min_checkpoint_count);
  number("maxCheckPointCount", settings.max_checkpoint_count);
  number("maxSubscriberCount", settings.max_subscriber_count);
  out["namedConsumerStrategy"] = name_of(settings.strategy);
  return out;
}

/// Throws, as nlohmann::json does.
GroupConfig group_of(const ordered_json& entry) {
  GroupConfig out;
  out.key = {.stream = entry.at("stream").get<std::string>(),
             .group = entry.value("group", std::string())};
  auto& settings = out.settings;
  if (const auto filter = entry.find("filter"); filter != entry.end() && filter->is_object()) {
    EventPattern pattern{.by_stream = filter->at("context").get<std::string>() == "streamid"};
    const auto data = filter->value("data", std::string());
    if (filter->at("type").get<std::string>() == "regex") {
      pattern.regex = data;
    } else {
      pattern.prefixes = split(data);
    }
    settings.filter = std::move(pattern);
  }
  const auto number = [&](const char* name) {
    return json_integer_or<std::int32_t>(entry, name, 0);
  };
  settings.resolve_links = entry.value("resolveLinkTos", false);
  settings.extra_statistics = entry.value("extraStatistics", false);
  settings.message_timeout_ms = number("messageTimeout");
  settings.live_buffer_size = number("liveBufferSize");
  settings.history_buffer_size = number("historyBufferSize");
  settings.max_retry_count = number("maxRetryCount");
  settings.read_batch_size = number("readBatchSize");
  settings.checkpoint_after_ms = number("checkPointAfter");
  settings.min_checkpoint_count = number("minCheckPointCount");
  settings.max_checkpoint_count = number("maxCheckPointCount");
  settings.max_subscriber_count = number("maxSubscriberCount");
  settings.strategy = strategy_of(entry.value("namedConsumerStrategy", std::string()))
                          .value_or(Strategy::kRoundRobin);
  const auto start =
      parse_source_position(entry.value("startPosition", std::string()), out.key.all());
  // Older documents have the number alone.
  settings.start =
      start ? *start : EventNumber(json_integer_or<std::int64_t>(entry, "startFrom", 0));
  if (out.key.all() && !start) {
    throw std::invalid_argument("a group of $all without its startPosition");
  }
  return out;
}

}  // namespace

std::string checkpoint_stream(const GroupKey& key) {
  return std::string(kPrefix) + key.id() + "-checkpoint";
}

std::string parked_stream(const GroupKey& key) {
  return std::string(kPrefix) + key.id() + "-parked";
}

std::string config_json(const std::vector<GroupConfig>& groups, Ticks updated,
                        std::string_view updated_by) {
  auto entries = ordered_json::array();
  for (const auto& group : groups) {
    entries.push_back(entry_of(group));
  }
  return text_of({{"version", "2"},
                  {"updated", time_text(updated)},
                  {"updatedBy", updated_by},
                  {"entries", std::move(entries)}},
                 2);
}

Result<std::vector<GroupConfig>> parse_config(ByteView bytes) {
  const auto json = ordered_json::parse(as_text(bytes), nullptr, false);
  try {
    std::vector<GroupConfig> out;
    for (const auto& entry : json.at("entries")) {
      out.push_back(group_of(entry));
    }
    return out;
  } catch (const std::exception& error) {
    return Error{Errc::kCorruption,
                 fmt::format("configuration of persistent subscriptions: {}", error.what())};
  }
}

std::string checkpoint_json(const SourcePosition& position) {
  return '"' + to_text(position) + '"';
}

std::optional<SourcePosition> parse_checkpoint(ByteView bytes, bool all) {
  const auto json = nlohmann::json::parse(as_text(bytes), nullptr, false);
  if (json.is_string()) {
    return parse_source_position(json.get<std::string>(), all);
  }
  // Older servers wrote a number.
  return json.is_number_integer() && !all ? parse_source_position(json.dump(), false)
                                          : std::nullopt;
}

std::string parked_link(const SourceEvent& event) {
  if (event.is_link && !event.target) {
    return std::string(as_text(event.record.data));  // where it points to nothing, so does this one
  }
  const auto& parked = event.target ? *event.target : event.record;
  return fmt::format("{}@{}", parked.number, parked.stream);
}

std::string parked_metadata(const SourceEvent& event, Ticks added, std::string_view reason) {
  ordered_json out = {{"added", time_text(added)}, {"reason", reason}};
  if (event.record.number.value() != 0) {
    out["subscriptionEventNumber"] = event.record.number.value();
  }
  return text_of(out, 2);
}

std::string parked_stream_metadata(EventNumber before) {
  const auto admins = "$admins";
  return text_of(
      {{"$tb", before.value()},
       {"$acl",
        {{"$r", admins}, {"$w", admins}, {"$d", admins}, {"$mr", admins}, {"$mw", admins}}}},
      -1);
}

}  // namespace verger::node::persistent
