#pragma once

#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "engine/scavenge/preview.h"
#include "engine/tool/tool_context.h"

namespace verger::tool {

/// The arguments of `estimate` and `explain`: as `scavenge`, but nothing is written.
struct PreviewArguments {
  DatabaseArguments database;
  std::optional<std::int64_t> point;
  bool new_point = false;
  std::string now;  ///< of the new point; empty: the clock
  std::int32_t threshold = 0;
  std::string scratch;  ///< empty: the system's directory for temporary files
  std::optional<int> index_cache_depth;
  scavenge::ScavengeOptions options;
};

void add_preview_arguments(CLI::App& command, PreviewArguments& arguments);

/// A database with a finished preview of its next scavenge.
struct OpenedPreview {
  std::unique_ptr<streams::Database> database;
  std::unique_ptr<scavenge::Preview> preview;
  /// Why a point had to be assumed although none was requested; empty otherwise.
  std::string assumed_because;
};

/// Opens read-only, chooses the point, accumulates and calculates with progress. The caller holds
/// StopSignals until the preview is destroyed, which removes its files. Errors: kCancelled (by such
/// a signal), and others.
Result<OpenedPreview> open_preview(ToolContext& tool, const PreviewArguments& arguments);

/// "scavenge point 3 at log position 4096 of 2024-01-31T00:00:00Z, threshold 0", a line.
std::string point_text(const OpenedPreview& opened);
nlohmann::ordered_json point_json(const OpenedPreview& opened);

}  // namespace verger::tool
