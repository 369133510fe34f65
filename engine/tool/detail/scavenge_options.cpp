#include "engine/tool/detail/scavenge_options.h"

#include <nlohmann/json.hpp>

#include "engine/base/clock.h"
#include "engine/base/json_number.h"
#include "engine/base/number_from_text.h"

namespace verger::tool {
namespace {

constexpr std::uint64_t kLargestPointFile = 64ULL * 1024;

struct StageWord {
  std::string_view word;
  scavenge::Stage stage;
};
constexpr StageWord kStageWords[] = {
    {"accumulate", scavenge::Stage::kAccumulating}, {"calculate", scavenge::Stage::kCalculating},
    {"execute", scavenge::Stage::kExecutingChunks}, {"merge", scavenge::Stage::kMergingChunks},
    {"index", scavenge::Stage::kExecutingIndex},    {"clean", scavenge::Stage::kCleaning},
};

}  // namespace

std::string_view word_of(scavenge::Stage stage) {
  for (const auto& known : kStageWords) {
    if (known.stage == stage) {
      return known.word;
    }
  }
  return "done";
}

Result<streams::ScavengePoint> read_point_file(FileSystem& files, const Path& path) {
  VERGER_TRY(const auto content, read_file(files, path, kLargestPointFile));
  const auto wrong = [&](std::string_view what) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: {}; expected {{\"position\":1048576,\"eventNumber\":0,"
                             "\"effectiveNow\":\"2022-01-05T00:00:00.0000000Z\",\"threshold\":0}}",
                             path.string(), what)};
  };
  try {
    const auto json = nlohmann::json::parse(as_text(content));
    const auto now = parse_ticks(json.at("effectiveNow").get<std::string>());
    if (!now) {
      return wrong(now.error().message);
    }
    streams::ScavengePoint point;
    point.position = LogPosition(json_integer<std::int64_t>(json.at("position")));
    point.number = EventNumber(json_integer<std::int64_t>(json.at("eventNumber")));
    point.effective_now = *now;
    point.threshold = json_integer_or<std::int32_t>(json, "threshold", 0);
    if (point.position.value() < 0 || point.number.value() < 0) {
      return wrong("position and eventNumber cannot be negative");
    }
    return point;
  } catch (const std::exception& error) {
    return wrong(error.what());
  }
}

Result<scavenge::StopAfter> parse_stop_after(std::string_view text) {
  const auto colon = text.find(':');
  const auto word = text.substr(0, colon);
  scavenge::StopAfter result;
  if (colon != std::string_view::npos) {
    result.nth = number_from_text<decltype(result.nth)>(text.substr(colon + 1)).value_or(0);
    if (result.nth == 0) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("--stop-after {}: a number from 1 on must follow the colon", text)};
    }
  }
  for (const auto& known : kStageWords) {
    if (known.word == word) {
      result.stage = known.stage;
      return result;
    }
  }
  return Error{Errc::kInvalidArgument,
               fmt::format("--stop-after {}: the stages are accumulate, calculate, execute, merge, "
                           "index and clean",
                           text)};
}

}  // namespace verger::tool
