#include "engine/tool/detail/preview_setup.h"

#include <filesystem>

#include <CLI/CLI.hpp>

#include "engine/scavenge/start_decision.h"
#include "engine/streams/find_scavenge_point.h"
#include "engine/tool/progress.h"
#include "engine/tool/stop_signals.h"

namespace verger::tool {
namespace {

using scavenge::Stage;

Result<void> assume_point(ToolContext& tool, const PreviewArguments& arguments,
                          const std::vector<streams::ScavengePoint>& points,
                          scavenge::Preview& preview) {
  const auto& checkpoint = preview.checkpoint();
  if (checkpoint && checkpoint->stage != Stage::kDone) {
    return Error{
        Errc::kRefused,
        fmt::format("the scavenge of point {} is unfinished and has to finish before any other: "
                    "ask without --new-point",
                    checkpoint->point.number)};
  }
  auto now = tool.clock.now();
  if (!arguments.now.empty()) {
    VERGER_TRY(now, parse_ticks(arguments.now));
  }
  const auto number = points.empty() ? 0 : points.back().number.value() + 1;
  preview.assume(EventNumber(number), now, arguments.threshold);
  return {};
}

Result<void> choose_given(std::int64_t number, const std::vector<streams::ScavengePoint>& points,
                          scavenge::Preview& preview) {
  const auto& checkpoint = preview.checkpoint();
  if (checkpoint && checkpoint->stage == Stage::kDone &&
      checkpoint->point.number.value() >= number) {
    return Error{Errc::kRefused,
                 fmt::format("scavenge point {} is reached already: the last finished one is {}",
                             number, checkpoint->point.number)};
  }
  VERGER_TRY(const auto point, streams::find_scavenge_point(points, number));
  preview.choose(point);
  return {};
}

Result<void> choose(ToolContext& tool, const PreviewArguments& arguments, OpenedPreview& opened) {
  auto& preview = *opened.preview;
  VERGER_TRY(const auto points, streams::scavenge_points(*opened.database));
  if (arguments.point) {
    return choose_given(*arguments.point, points, preview);
  }
  if (!arguments.new_point && arguments.now.empty()) {
    VERGER_TRY(const auto decision, scavenge::find_start(preview.checkpoint(), *opened.database,
                                                         /*sync_only=*/true));
    if (decision.point) {
      preview.choose(*decision.point);
      return {};
    }
    opened.assumed_because = points.empty()
                                 ? "there is no scavenge point in the log"
                                 : fmt::format("scavenge point {}, the last in the log, is reached",
                                               points.back().number);
  }
  return assume_point(tool, arguments, points, preview);
}

Result<void> run(ToolContext& tool, scavenge::Preview& preview) {
  constexpr Budget kBudget{.units = 32'768};
  StageProgress progress(tool);
  for (;;) {
    VERGER_RETURN_IF_ERROR(StopSignals::check());
    VERGER_TRY(const auto outcome, preview.step(kBudget));
    if (outcome.kind == StepOutcome::Kind::kDone) {
      return {};
    }
    progress.update(preview.progress());
  }
}

}  // namespace

void add_preview_arguments(CLI::App& command, PreviewArguments& arguments) {
  add_database_arguments(command, arguments.database, /*writes=*/false);
  auto* point = command.add_option("--point", arguments.point,
                                   "Number of the scavenge point (default: the last one in the log "
                                   "that is not reached; if there is none, a new one now)");
  auto* fresh = command.add_flag("--new-point", arguments.new_point,
                                 "Assume a new scavenge point behind everything in the log");
  auto* now =
      command.add_option("--now", arguments.now,
                         "Time of the assumed point, such as 2024-05-01T00:00:00Z (default: "
                         "now); implies --new-point");
  now->check(check_time);
  point->excludes(fresh)->excludes(now);
  command.add_option("--threshold", arguments.threshold, "Threshold of the assumed point")
      ->excludes(point);
  command.add_flag("--unsafe-ignore-hard-delete", arguments.options.unsafe_ignore_hard_delete,
                   "As if the scavenge removed tombstones, too");
  command.add_option(
      "--tmp-dir", arguments.scratch,
      "Where the copy of the scavenge state is kept meanwhile (default: the system's "
      "directory for temporary files)");
}

Result<OpenedPreview> open_preview(ToolContext& tool, const PreviewArguments& arguments) {
  OpenedPreview opened;
  IndexSettings settings;
  settings.cache_depth = arguments.index_cache_depth.value_or(settings.cache_depth);
  VERGER_TRY(opened.database,
             open_database(tool, arguments.database, log::Access::kReadOnly, settings));
  const scavenge::ScavengeParts parts{opened.database->transaction_log(),
                                      opened.database->stream_index(),
                                      tool.files,
                                      tool.clock,
                                      tool.random,
                                      tool.log};
  const auto scratch = arguments.scratch.empty() ? std::filesystem::temp_directory_path()
                                                 : std::filesystem::path(arguments.scratch);
  auto options = arguments.options;
  options.hash_in_background = true;  // chunks are read side by side
  VERGER_TRY(opened.preview, scavenge::Preview::open(parts, {tool.files, scratch}, options));
  VERGER_RETURN_IF_ERROR(choose(tool, arguments, opened));
  VERGER_RETURN_IF_ERROR(run(tool, *opened.preview));
  return opened;
}

std::string point_text(const OpenedPreview& opened) {
  const auto& preview = *opened.preview;
  const auto& point = preview.point();
  if (preview.assumed()) {
    return fmt::format(
        "as if a scavenge point were written now{}: number {}, time {}, threshold {}",
        opened.assumed_because.empty() ? "" : " (" + opened.assumed_because + ")", point.number,
        format_ticks(point.effective_now), point.threshold);
  }
  const auto& checkpoint = preview.checkpoint();
  const bool resumes = checkpoint && checkpoint->stage != Stage::kDone;
  return fmt::format("scavenge point {} at log position {}, time {}, threshold {}{}", point.number,
                     point.position, format_ticks(point.effective_now), point.threshold,
                     resumes ? fmt::format("; its unfinished scavenge continues at {}",
                                           to_string(checkpoint->stage))
                             : "");
}

nlohmann::ordered_json point_json(const OpenedPreview& opened) {
  const auto& point = opened.preview->point();
  nlohmann::ordered_json json = {{"eventNumber", point.number.value()},
                                 {"position", point.position.value()},
                                 {"effectiveNow", format_ticks(point.effective_now)},
                                 {"threshold", point.threshold},
                                 {"assumed", opened.preview->assumed()}};
  if (!opened.assumed_because.empty()) {
    json["assumedBecause"] = opened.assumed_because;
  }
  return json;
}

}  // namespace verger::tool
