#include "engine/tool/progress.h"

#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <ostream>

#include <nlohmann/json.hpp>

#include "engine/tool/detail/scavenge_options.h"
#include "engine/tool/table.h"

namespace verger::tool {
namespace {

using std::chrono::milliseconds;

std::string_view name_of(Progress::Unit unit) {
  switch (unit) {
    case Progress::Unit::kBytes:
      return "bytes";
    case Progress::Unit::kEvents:
      return "events";
    case Progress::Unit::kStreams:
      return "streams";
    case Progress::Unit::kChunks:
      return "chunks";
    case Progress::Unit::kTables:
      return "tables";
  }
  return "units";
}

/// "12.0 MiB", "1,234 streams"
std::string amount(std::uint64_t count, Progress::Unit unit) {
  return unit == Progress::Unit::kBytes ? human_bytes(count)
                                        : fmt::format("{} {}", human_count(count), name_of(unit));
}

/// "45 s", "12 min", "3 h 05 min"
std::string time_text(double seconds) {
  constexpr double kMinute = 60;
  constexpr double kHour = 3600;
  if (seconds < 2 * kMinute) {
    return fmt::format("{:.0f} s", seconds);
  }
  if (seconds < 2 * kHour) {
    return fmt::format("{:.0f} min", seconds / kMinute);
  }
  const auto minutes = static_cast<std::int64_t>(std::llround(seconds / kMinute));
  return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
}

std::string end_text(Clock& clock, double seconds_left) {
  constexpr double kMost = 1e9;  // some 30 years: a first unit that took long says nothing yet
  const auto ticks =
      std::llround(std::min(seconds_left, kMost) * static_cast<double>(kTicksPerSecond));
  return format_ticks(Ticks(clock.now().value() + ticks));
}

Progress::Unit unit_of(scavenge::Stage stage) {
  switch (stage) {
    case scavenge::Stage::kAccumulating:
      return Progress::Unit::kChunks;
    case scavenge::Stage::kCalculating:
      return Progress::Unit::kStreams;
    case scavenge::Stage::kExecutingChunks:
    case scavenge::Stage::kMergingChunks:
      return Progress::Unit::kBytes;
    case scavenge::Stage::kExecutingIndex:
    case scavenge::Stage::kCleaning:
    case scavenge::Stage::kDone:
      return Progress::Unit::kTables;
  }
  return Progress::Unit::kTables;
}

}  // namespace

Progress::Progress(ToolContext& tool, std::string what, std::uint64_t total, Unit unit,
                   std::uint64_t before)
    : tool_(tool),
      what_(std::move(what)),
      total_(total),
      unit_(unit),
      before_(before),
      is_line_(tool.progress == ProgressStyle::kAuto && tool.terminal),
      is_json_(tool.progress == ProgressStyle::kJson),
      start_(tool.clock.monotonic()),
      last_(start_) {}

Progress::~Progress() {
  if (shown_ && is_line_) {
    tool_.err << "\r\x1b[K" << std::flush;
  }
}

double Progress::rate(std::uint64_t done, double seconds) const {
  return static_cast<double>(done - std::min(done, before_)) / seconds;
}

std::optional<double> Progress::seconds_left(std::uint64_t done, double seconds) const {
  const auto speed = rate(done, seconds);
  if (total_ == 0 || speed <= 0) {
    return std::nullopt;
  }
  return static_cast<double>(total_ - std::min(done, total_)) / speed;
}

void Progress::update(std::uint64_t done) {
  if (!is_line_ && !is_json_) {
    return;
  }
  const auto now = tool_.clock.monotonic();
  if (now - last_ < milliseconds(is_line_ && shown_ ? 200 : 1000)) {
    return;
  }
  last_ = now;
  shown_ = true;
  const auto seconds = std::chrono::duration<double>(now - start_).count();
  if (is_line_) {
    print_line(done, seconds);
  } else {
    print_json(done, seconds);
  }
}

void Progress::print_line(std::uint64_t done, double seconds) {
  auto line = total_ == 0 ? fmt::format("{}: {}", what_, amount(done, unit_))
                          : fmt::format("{}: {:.0f} %", what_,
                                        100.0 * static_cast<double>(std::min(done, total_)) /
                                            static_cast<double>(total_));
  line += fmt::format(", {}/s", amount(static_cast<std::uint64_t>(rate(done, seconds)), unit_));
  if (const auto left = seconds_left(done, seconds)) {
    // Of "2026-01-02T03:04:05.1234567Z" the time of day.
    line += fmt::format(", {} left, ends at {} UTC", time_text(*left),
                        end_text(tool_.clock, *left).substr(11, 8));
  } else {
    line += fmt::format(", for {}", time_text(seconds));
  }
  tool_.err << "\r\x1b[K" << line << std::flush;
}

void Progress::print_json(std::uint64_t done, double seconds) {
  nlohmann::ordered_json line = {{"progress", what_}, {"unit", name_of(unit_)}, {"done", done}};
  if (total_ != 0) {
    line["total"] = total_;
  }
  line["perSecond"] = static_cast<std::uint64_t>(rate(done, seconds));
  line["seconds"] = static_cast<std::uint64_t>(seconds);
  if (const auto left = seconds_left(done, seconds)) {
    line["secondsLeft"] = static_cast<std::uint64_t>(std::llround(*left));
    line["expectedEnd"] = end_text(tool_.clock, *left);
  }
  tool_.err << line.dump() << '\n' << std::flush;
}

void StageProgress::update(const scavenge::ScavengeProgress& progress) {
  if (stage_ != progress.stage || (!counts_ && progress.done > 0)) {
    stage_ = progress.stage;
    counts_ = progress.done > 0;
    progress_.emplace(tool_, std::string(word_of(progress.stage)), progress.total,
                      unit_of(progress.stage), progress.done);
  }
  progress_->update(progress.done);
}

}  // namespace verger::tool
