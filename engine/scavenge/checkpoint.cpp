#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/clock.h"
#include "engine/base/json_number.h"
#include "engine/scavenge/types.h"

namespace verger::scavenge {
namespace {

struct StageName {
  Stage stage;
  std::string_view name;
};
constexpr StageName kStageNames[] = {
    {Stage::kAccumulating, "Accumulating"},
    {Stage::kCalculating, "Calculating"},
    {Stage::kExecutingChunks, "ExecutingChunks"},
    {Stage::kMergingChunks, "MergingChunks"},
    {Stage::kExecutingIndex, "ExecutingIndex"},
    {Stage::kCleaning, "Cleaning"},
    {Stage::kDone, "Done"},
};

using OrderedJson = nlohmann::ordered_json;

OrderedJson encode_handle(const StreamHandle& handle) {
  OrderedJson json = OrderedJson::object();
  if (handle.by_name()) {
    json["kind"] = "Id";
    json["streamId"] = handle.name;
  } else {
    json["kind"] = "Hash";
    json["streamHash"] = handle.hash.value();
  }
  return json;
}

/// Throws nlohmann's exceptions, and std::out_of_range for an unknown name.
Checkpoint decode(std::string_view text) {
  const auto json = nlohmann::json::parse(text);
  const auto& point = json.at("scavengePoint");
  Checkpoint result;
  result.point.position = LogPosition(json_integer_or<std::int64_t>(point, "position", 0));
  result.point.number = EventNumber(json_integer_or<std::int64_t>(point, "eventNumber", 0));
  const auto now = parse_ticks(point.at("effectiveNow").get<std::string>());
  const auto stage = stage_from_string(json.at("checkpointStage").get<std::string>());
  if (!now || !stage) {
    throw std::out_of_range("checkpoint");
  }
  result.point.effective_now = *now;
  result.point.threshold = json_integer_or<std::int32_t>(point, "threshold", 0);
  result.stage = *stage;
  if (const auto done = json.find("doneLogicalChunkNumber"); done != json.end()) {
    result.done_chunk = json_integer<std::int32_t>(*done);
  }
  if (const auto done = json.find("doneStreamHandle"); done != json.end()) {
    const auto kind = done->at("kind").get<std::string>();
    StreamHandle handle;
    if (kind == "Id") {
      handle.name = done->at("streamId").get<std::string>();
    } else {
      handle.hash = StreamHash(json_integer_or<std::uint64_t>(*done, "streamHash", 0));
    }
    result.done_stream = handle;
  }
  return result;
}

}  // namespace

std::string_view to_string(Stage stage) {
  return kStageNames[static_cast<std::size_t>(stage) - 1].name;
}

std::optional<Stage> stage_from_string(std::string_view name) {
  for (const auto& known : kStageNames) {
    if (known.name == name) {
      return known.stage;
    }
  }
  return std::nullopt;
}

std::string encode_checkpoint(const Checkpoint& checkpoint) {
  OrderedJson point = OrderedJson::object();
  if (checkpoint.point.position.value() != 0) {
    point["position"] = checkpoint.point.position.value();
  }
  if (checkpoint.point.number.value() != 0) {
    point["eventNumber"] = checkpoint.point.number.value();
  }
  auto now = format_ticks(checkpoint.point.effective_now);
  if (now.ends_with('Z')) {
    now.pop_back();  // the server's text has no zone
  }
  point["effectiveNow"] = now;
  if (checkpoint.point.threshold != 0) {
    point["threshold"] = checkpoint.point.threshold;
  }
  OrderedJson json = OrderedJson::object();
  json["scavengePoint"] = std::move(point);
  json["schemaVersion"] = "V0";
  json["checkpointStage"] = to_string(checkpoint.stage);
  if (checkpoint.done_chunk) {
    json["doneLogicalChunkNumber"] = *checkpoint.done_chunk;
  }
  if (checkpoint.done_stream) {
    json["doneStreamHandle"] = encode_handle(*checkpoint.done_stream);
  }
  // Names are written by the rule of the server's serializer, which leaves non-ASCII as it is; a
  // broken UTF-8 name must not stop a scavenge.
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::optional<std::string> unknown_stage(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    auto stage = json.at("checkpointStage").get<std::string>();
    const bool has_point = json.at("scavengePoint").is_object();
    return has_point && !stage_from_string(stage) ? std::optional(std::move(stage)) : std::nullopt;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

Error unknown_stage_error(std::string_view file, std::string_view stage) {
  return Error{Errc::kUnsupported,
               fmt::format("{}: how far the scavenge came is not known: its checkpoint has the "
                           "stage \"{}\", which a newer server wrote; let that server finish its "
                           "scavenge, or delete the directory index/scavenging, and the next "
                           "scavenge begins anew",
                           file, stage)};
}

std::optional<Checkpoint> decode_checkpoint(std::string_view json) {
  try {
    return decode(json);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace verger::scavenge
