#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/scavenge/events.h"
#include "engine/tool/tool_context.h"

namespace verger::tool {

/// Progress of long work on stderr, as `--progress` requests it: one line on a terminal, or a JSON
/// object per line with progress, unit, done, total, perSecond, seconds, secondsLeft, expectedEnd;
/// total and the last two only where the total is known. Nothing is written for work that takes
/// less than a second.
class Progress {
 public:
  enum class Unit : std::uint8_t { kBytes, kEvents, kStreams, kChunks, kTables };
  /// `total` in units; 0 where it is not known. `before` of them were done by an earlier run.
  Progress(ToolContext& tool, std::string what, std::uint64_t total, Unit unit = Unit::kBytes,
           std::uint64_t before = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::uint64_t done);

 private:
  void print_line(std::uint64_t done, double seconds);
  void print_json(std::uint64_t done, double seconds);
  /// In units per second; 0 where nothing is done yet.
  [[nodiscard]] double rate(std::uint64_t done, double seconds) const;
  [[nodiscard]] std::optional<double> seconds_left(std::uint64_t done, double seconds) const;

  ToolContext& tool_;
  std::string what_;
  std::uint64_t total_;
  Unit unit_;
  std::uint64_t before_;
  bool is_line_;
  bool is_json_;
  Monotonic start_;
  Monotonic last_;
  bool shown_ = false;
};

/// Progress of a scavenge: each stage in its unit, as work of its own.
class StageProgress {
 public:
  explicit StageProgress(ToolContext& tool) : tool_(tool) {}
  void update(const scavenge::ScavengeProgress& progress);

 private:
  ToolContext& tool_;
  std::optional<scavenge::Stage> stage_;
  bool counts_ = false;  ///< the stage's first unit is done: what a stopped run did lies before it
  std::optional<Progress> progress_;
};

}  // namespace verger::tool
