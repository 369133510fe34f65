#include <nlohmann/json.hpp>

#include "engine/streams/detail/scavenge_point_json.h"
#include "engine/streams/event_store.h"
#include "engine/streams/stream_names.h"

namespace verger::streams {

namespace detail {

std::optional<std::int32_t> parse_point_threshold(ByteView data) {
  const auto json = nlohmann::json::parse(as_text(data), nullptr, false);
  if (!json.is_object()) {
    return std::nullopt;
  }
  const auto threshold = json.find("threshold");
  if (threshold == json.end()) {
    return 0;
  }
  if (!threshold->is_number_integer()) {
    return std::nullopt;
  }
  const auto value = threshold->get<std::int64_t>();
  if (value != static_cast<std::int32_t>(value)) {
    return std::nullopt;
  }
  return static_cast<std::int32_t>(value);
}

}  // namespace detail

namespace {

Result<std::int32_t> threshold_of(const Event& event) {
  const auto threshold = detail::parse_point_threshold(event.data);
  if (!threshold) {
    return Error{Errc::kCorruption,
                 fmt::format("scavenge point {} at log position {}: its data is not the JSON "
                             "object of a scavenge point",
                             event.number, event.prepare_position)};
  }
  return *threshold;
}

}  // namespace

Result<std::vector<ScavengePoint>> scavenge_points(const Database& database) {
  constexpr std::size_t kPage = 256;
  std::vector<ScavengePoint> points;
  auto from = EventNumber(0);
  for (;;) {
    VERGER_TRY(const auto page, database.read_forward(kScavengePointsStream, from, kPage));
    for (const auto& event : page.events) {
      if (event.type != kScavengePointType) {
        return Error{Errc::kCorruption,
                     fmt::format("stream {}: event {} is a '{}', not a scavenge point; no scavenge "
                                 "can be started on this log",
                                 kScavengePointsStream, event.number, event.type)};
      }
      VERGER_TRY(const auto threshold, threshold_of(event));
      points.push_back({event.prepare_position, event.number, event.timestamp, threshold});
    }
    if (page.end_of_stream) {
      return points;
    }
    from = page.next;
  }
}

}  // namespace verger::streams
