#include <algorithm>
#include <fmt/format.h>

#include "engine/base/number_from_text.h"
#include "engine/streams/detail/lenient_json.h"
#include "engine/streams/detail/scavenge_point_json.h"
#include "engine/streams/event_store.h"
#include "engine/streams/latest_scavenge_point.h"
#include "engine/streams/stream_names.h"

namespace verger::streams {

namespace detail {
namespace {

/// As names are compared without regard to case; `wanted` is in lower case.
bool is_name(std::string_view name, std::string_view wanted) {
  return std::ranges::equal(name, wanted, [](char c, char w) {
    return (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c) == w;
  });
}

/// Blanks around it and a sign are allowed.
std::optional<std::int64_t> parse_integer(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) {
    return std::nullopt;
  }
  text = text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
  if (text.starts_with('+') && !text.starts_with("+-")) {
    text.remove_prefix(1);
  }
  return number_from_text<std::int64_t>(text);
}

/// The next token that is no comment.
bool read_token(LenientJsonReader& reader) {
  while (reader.read()) {
    if (reader.token() != JsonToken::kComment) {
      return true;
    }
  }
  return false;
}

/// The value behind the name. 0, also for what counts as absent; nullopt: refused.
std::optional<std::int32_t> read_threshold(LenientJsonReader& reader) {
  if (!read_token(reader)) {
    return std::nullopt;
  }
  std::optional<std::int64_t> value;
  if (reader.token() == JsonToken::kNull) {
    value = 0;
  } else if (reader.token() == JsonToken::kInteger) {
    value = reader.integer();
  } else if (reader.token() == JsonToken::kString) {
    value = reader.text().empty() ? 0 : parse_integer(reader.text());
  }
  if (!value || *value != static_cast<std::int32_t>(*value)) {
    return std::nullopt;
  }
  return static_cast<std::int32_t>(*value);
}

}  // namespace

std::optional<std::int32_t> parse_point_threshold(ByteView data) {
  if (as_text(data).starts_with("\xEF\xBB\xBF")) {
    return std::nullopt;
  }
  LenientJsonReader reader(data);
  if (!read_token(reader) || reader.token() != JsonToken::kStartObject) {
    return std::nullopt;
  }
  std::int32_t threshold = 0;
  for (;;) {
    if (!read_token(reader)) {
      return std::nullopt;
    }
    if (reader.token() == JsonToken::kEndObject) {
      return reader.only_comments_follow() ? std::optional(threshold) : std::nullopt;
    }
    if (reader.token() != JsonToken::kPropertyName) {
      return std::nullopt;
    }
    if (!is_name(reader.text(), "threshold")) {
      if (!reader.read() || !reader.skip_value()) {
        return std::nullopt;
      }
      continue;
    }
    const auto value = read_threshold(reader);
    if (!value) {
      return std::nullopt;
    }
    if (*value != 0) {
      threshold = *value;  // 0 is the default, which is as good as absent
    }
  }
}

}  // namespace detail

namespace {

std::optional<ScavengePoint> as_point(const Event& event) {
  const auto threshold = detail::parse_point_threshold(event.data);
  if (event.type != kScavengePointType || !threshold) {
    return std::nullopt;
  }
  return ScavengePoint{event.prepare_position, event.number, event.timestamp, *threshold};
}

}  // namespace

std::optional<ScavengePoint> scavenge_point_in(const log::Prepare& prepare) {
  const auto threshold = prepare.stream == kScavengePointsStream &&
                                 prepare.type == kScavengePointType &&
                                 prepare.has(log::prepare_flags::kData)
                             ? detail::parse_point_threshold(prepare.data)
                             : std::nullopt;
  return threshold ? std::optional(ScavengePoint{prepare.position, prepare.event_number(),
                                                 prepare.timestamp, *threshold})
                   : std::nullopt;
}

Result<std::vector<ScavengePoint>> scavenge_points(const Database& database) {
  constexpr std::size_t kPage = 256;
  std::vector<ScavengePoint> points;
  auto from = EventNumber(0);
  for (;;) {
    VERGER_TRY(const auto page, database.read_forward(kScavengePointsStream, from, kPage));
    for (const auto& event : page.events) {
      if (const auto point = as_point(event)) {
        points.push_back(*point);
      }
    }
    if (page.end_of_stream) {
      return points;
    }
    from = page.next;
  }
}

Result<std::optional<ScavengePoint>> latest_scavenge_point(const Database& database) {
  VERGER_TRY(const auto last, database.read_backward(kScavengePointsStream, kDeletedStream, 1));
  if (last.status == StreamStatus::kDeleted) {
    return Error{
        Errc::kDeleted,
        fmt::format("the stream {} is deleted for good: no scavenge point can be read from "
                    "this log or written to it, so no scavenge of it can be started",
                    kScavengePointsStream)};
  }
  if (last.events.empty()) {
    return std::optional<ScavengePoint>();
  }
  const auto& event = last.events.front();
  auto point = as_point(event);
  if (!point) {
    return Error{
        Errc::kUnsupported,
        fmt::format("the last event of {}, number {} at log position {}, is no scavenge "
                    "point (its type is '{}'): no scavenge can be started before a point "
                    "follows it",
                    kScavengePointsStream, event.number, event.prepare_position, event.type)};
  }
  return point;
}

}  // namespace verger::streams
