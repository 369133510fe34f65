#pragma once

#include <cstdint>
#include <string>

#include "engine/tool/tool_context.h"

namespace verger::tool {

/// Progress of long work on stderr: on a terminal one line with rate and time left, otherwise a
/// JSON object per line. Nothing is written for work that takes less than a second.
class Progress {
 public:
  enum class Unit : std::uint8_t { kBytes, kEvents, kStreams };
  /// `total` in units; 0 where it is not known.
  Progress(ToolContext& tool, std::string what, std::uint64_t total, Unit unit = Unit::kBytes);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::uint64_t done);

 private:
  ToolContext& tool_;
  std::string what_;
  std::uint64_t total_;
  Unit unit_;
  Monotonic start_;
  Monotonic last_;
  bool shown_ = false;
};

}  // namespace verger::tool
