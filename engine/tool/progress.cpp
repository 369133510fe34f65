#include "engine/tool/progress.h"

#include <chrono>
#include <fmt/format.h>
#include <ostream>

#include <nlohmann/json.hpp>

#include "engine/tool/table.h"

namespace verger::tool {
namespace {

std::string_view name_of(Progress::Unit unit) {
  switch (unit) {
    case Progress::Unit::kBytes:
      return "bytes";
    case Progress::Unit::kEvents:
      return "events";
    case Progress::Unit::kStreams:
      return "streams";
  }
  return "units";
}

}  // namespace

Progress::Progress(ToolContext& tool, std::string what, std::uint64_t total, Unit unit)
    : tool_(tool),
      what_(std::move(what)),
      total_(total),
      unit_(unit),
      start_(tool.clock.monotonic()),
      last_(start_) {}

Progress::~Progress() {
  if (shown_ && tool_.terminal) {
    tool_.err << "\r\x1b[K" << std::flush;
  }
}

void Progress::update(std::uint64_t done) {
  const auto now = tool_.clock.monotonic();
  const auto pause =
      tool_.terminal && shown_ ? std::chrono::milliseconds(200) : std::chrono::milliseconds(1000);
  if (now - last_ < pause) {
    return;
  }
  last_ = now;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done) / seconds;
  const double share =
      total_ == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
  const double left = share > 0 ? seconds / share - seconds : 0;
  const auto count = static_cast<std::uint64_t>(rate);
  if (tool_.terminal) {
    const auto speed = unit_ == Unit::kBytes
                           ? human_bytes(count)
                           : human_count(count) + " " + std::string(name_of(unit_));
    tool_.err << "\r\x1b[K"
              << (total_ == 0 ? fmt::format("{}: {} ({}/s)", what_, human_count(done), speed)
                              : fmt::format("{}: {:.0f} %, {}/s, {:.0f} s left", what_, share * 100,
                                            speed, left))
              << std::flush;
    return;
  }
  const std::string unit(name_of(unit_));
  nlohmann::ordered_json line = {{"progress", what_}, {unit + "Done", done}};
  if (total_ != 0) {
    line[unit + "Total"] = total_;
  }
  line[unit + "PerSecond"] = count;
  if (total_ != 0) {
    line["secondsLeft"] = static_cast<std::uint64_t>(left);
  }
  tool_.err << line.dump() << '\n' << std::flush;
}

}  // namespace verger::tool
