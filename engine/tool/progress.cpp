#include "engine/tool/progress.h"

#include <chrono>
#include <fmt/format.h>
#include <ostream>

#include <nlohmann/json.hpp>

#include "engine/tool/table.h"

namespace verger::tool {

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
  if (tool_.terminal) {
    const auto count = static_cast<std::uint64_t>(rate);
    tool_.err << fmt::format(
                     "\r\x1b[K{}: {:.0f} %, {}/s, {:.0f} s left", what_, share * 100,
                     unit_ == Unit::kBytes ? human_bytes(count) : human_count(count) + " events",
                     left)
              << std::flush;
    return;
  }
  const bool bytes = unit_ == Unit::kBytes;
  const nlohmann::ordered_json line = {
      {"progress", what_},
      {bytes ? "bytesDone" : "eventsDone", done},
      {bytes ? "bytesTotal" : "eventsTotal", total_},
      {bytes ? "bytesPerSecond" : "eventsPerSecond", static_cast<std::uint64_t>(rate)},
      {"secondsLeft", static_cast<std::uint64_t>(left)}};
  tool_.err << line.dump() << '\n' << std::flush;
}

}  // namespace verger::tool
