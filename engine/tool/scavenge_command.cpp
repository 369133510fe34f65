#include "engine/tool/scavenge_command.h"

#include <ostream>
#include <thread>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/scavenge/scavenge_run.h"
#include "engine/streams/find_scavenge_point.h"
#include "engine/streams/latest_scavenge_point.h"
#include "engine/tool/detail/check_sound.h"
#include "engine/tool/detail/scavenge_options.h"
#include "engine/tool/progress.h"
#include "engine/tool/stop_signals.h"
#include "engine/tool/table.h"

namespace verger::tool {

namespace {

struct ScavengeArguments {
  DatabaseArguments database;
  IndexSettings index;
  std::optional<std::int64_t> point;
  std::string point_file;
  bool new_point = false;
  bool force = false;
  std::int32_t threshold = 0;
  bool no_merge = false;
  bool skip_checksums = false;
  std::string stop_after;
  scavenge::ScavengeOptions options;
};

using scavenge::StartKind;

/// Which point of the log to work on; nullopt when there is nothing to do. Writes nothing.
Result<std::optional<streams::ScavengePoint>> choose_point(
    ToolContext& tool, const ScavengeArguments& arguments, const streams::Database& database,
    const std::optional<scavenge::Checkpoint>& checkpoint) {
  const bool unfinished = checkpoint && checkpoint->stage != scavenge::Stage::kDone;
  const auto reached = [&](const streams::ScavengePoint& point) {
    return checkpoint && !unfinished && point.position <= checkpoint->point.position;
  };
  if (!arguments.point_file.empty()) {
    VERGER_TRY(auto point, read_point_file(tool.files, arguments.point_file));
    return reached(point) ? std::nullopt : std::optional(point);
  }
  if (arguments.point) {
    if (unfinished && checkpoint->point.number.value() == *arguments.point) {
      return checkpoint->point;
    }
    VERGER_TRY(const auto points, streams::scavenge_points(database));
    const auto point = streams::find_scavenge_point(points, *arguments.point);
    if (!point) {
      auto error = point.error();
      error.message += points.empty() ? "; `--new-point` writes one" : "";
      return error;
    }
    return reached(*point) ? std::nullopt : std::optional(*point);
  }
  if (arguments.new_point && unfinished) {
    return Error{Errc::kRefused, fmt::format("the scavenge of point {} is unfinished: run without "
                                             "--new-point first",
                                             checkpoint->point.number)};
  }
  VERGER_TRY(const auto decision, scavenge::find_start(checkpoint, database, /*sync_only=*/true));
  return decision.point;
}

/// Writes a point that follows the last one in the log. Like the server it does not where the state
/// knows of a later one than the log.
Result<streams::ScavengePoint> write_point(streams::Database& database,
                                           const std::optional<scavenge::Checkpoint>& checkpoint,
                                           std::int32_t threshold) {
  VERGER_TRY(const auto decision, scavenge::find_start(checkpoint, database, /*sync_only=*/false));
  const auto expected = decision.kind == StartKind::kCreatePoint ? decision.expected_version
                                                                 : decision.point->number.value();
  const auto written = database.append_scavenge_point(expected, threshold);
  if (!written) {
    return written.error().error;
  }
  VERGER_RETURN_IF_ERROR(database.commit_up_to(written->end));
  VERGER_TRY(const auto point, streams::latest_scavenge_point(database));
  if (!point || point->position != written->position) {
    return Error{Errc::kRefused,
                 fmt::format("the new scavenge point at log position {} is not the last event that "
                             "readers see of $scavengePoints: remove the limits in that stream's "
                             "metadata",
                             written->position)};
  }
  return *point;
}

/// A state that names a point which the log does not have makes the server expect its number of
/// $scavengePoints, whose last is then another; a stream without any point it begins anew.
/// Error: kRefused, for a number that the log gave to another point.
Result<bool> breaks_scavenges_of_server(const streams::Database& database,
                                        const streams::ScavengePoint& point) {
  VERGER_TRY(const auto latest, streams::latest_scavenge_point(database));
  if (latest && latest->number >= point.number) {
    return Error{
        Errc::kRefused,
        fmt::format("the log holds scavenge point {} at log position {} already, and point "
                    "{} at {} would follow it: the point belongs to another database",
                    latest->number, latest->position, point.number, point.position)};
  }
  return latest.has_value();
}

/// A point from a file may lie at the log's end or behind it: the server wrote it, or would have,
/// after these files were copied. Then everything in the log is before it. The last chunk is
/// completed, as after a point's record: what is written later belongs to the next scavenge. True:
/// it is such a point. Error: kRefused, where it is too far away to be of this log, or, without
/// `force`, where a server's next scavenge would fail.
Result<bool> take_outside_point(ToolContext& tool, streams::Database& database,
                                const streams::ScavengePoint& point, bool force) {
  auto& log = database.transaction_log();
  const auto end = log.end().value();
  const auto size = log.chunk_size();
  const auto position = point.position.value();
  if (position < end) {
    return false;
  }
  if (end % size == 0 || position / size != end / size) {
    return Error{Errc::kRefused,
                 fmt::format("the point's log position {} is not in the log's last chunk, which "
                             "ends at {}: the point belongs to another database, or to a later "
                             "copy of this one",
                             position, end)};
  }
  VERGER_TRY(const bool fails, breaks_scavenges_of_server(database, point));
  if (fails && !force) {
    return Error{
        Errc::kRefused,
        fmt::format("the log ends at {}, before point {} at {}, and holds earlier points: a server "
                    "that opens the files after this scavenge fails each scavenge of its own with "
                    "WrongExpectedVersion, until its log has got that point or index/scavenging is "
                    "deleted. Where the node will get the point from its leader, add --force",
                    end, point.number, position)};
  }
  tool.err << fmt::format(
      "verger-db: the log ends at {}, before point {} at {}: all of it is scavenged, and its last "
      "chunk is completed. {}\n",
      end, point.number, position,
      fails ? "Until the log has got that point, or index/scavenging is deleted, each scavenge of "
              "a server on these files fails with WrongExpectedVersion"
            : "The log holds no point at all: a server that scavenges these files next begins with "
              "point 0");
  VERGER_RETURN_IF_ERROR(log.complete_chunk());
  return true;
}

/// A point ends its chunk. A server that died right behind the point's record has left the chunk
/// open, and resumes in it; where nothing has followed yet, it is completed here. Error: kRefused.
Result<void> end_chunk_of(log::TransactionLog& log, const streams::ScavengePoint& point) {
  const auto chunk = log.chunk_at(point.position);
  if (chunk == nullptr || chunk->completed()) {
    return {};
  }
  Bytes buffer;
  const auto record = log.read(point.position, buffer);
  if (!record) {
    return {};  // there is no such point: that is said later
  }
  if (record->next < log.end()) {
    return Error{
        Errc::kRefused,
        fmt::format("{}: the chunk of scavenge point {} (log position {}) is not completed, and "
                    "records follow the point in it: a server cannot scavenge to this point now "
                    "either; repeat when the log has gone on to its next chunk",
                    chunk->path().string(), point.number, point.position)};
  }
  return log.complete_chunk();
}

/// Finds damage and a missing point before anything is opened for writing. False: the log holds no
/// point and there is no state of a scavenge to resume, so there is nothing to do.
Result<bool> look_first(ToolContext& tool, const ScavengeArguments& arguments) {
  VERGER_TRY(const auto database,
             open_database(tool, arguments.database, log::Access::kReadOnly, arguments.index));
  VERGER_TRY(
      const bool has_state,
      tool.files.exists(scavenge::ScavengeState::path_in(database->stream_index().directory())));
  if (has_state) {
    return true;
  }
  VERGER_TRY(const auto point, choose_point(tool, arguments, *database, std::nullopt));
  return point.has_value();
}

int nothing_to_do(ToolContext& tool, const std::optional<scavenge::Checkpoint>& checkpoint) {
  if (tool.json) {
    tool.out << R"({"result":"nothing to do"})" << '\n';
  } else {
    tool.out << (checkpoint ? fmt::format("nothing to do: scavenge point {} is reached already\n",
                                          checkpoint->point.number)
                            : std::string("nothing to do: the log holds no scavenge point\n"));
  }
  return kExitDone;
}

/// As long as the job's throttle says. In slices, so that a signal ends it within a tenth of a
/// second.
void rest(std::chrono::milliseconds duration) {
  constexpr std::chrono::milliseconds kSlice{100};
  while (duration.count() > 0 && !StopSignals::requested()) {
    std::this_thread::sleep_for(std::min(duration, kSlice));
    duration -= kSlice;
  }
}

Result<void> drive(scavenge::ScavengeJob& job, StageProgress& progress) {
  // Large steps: less to do between the threads' pieces, and still far below a second.
  constexpr Budget kBudget{.units = 32'768};
  const StopSignals::Forward forward(job.stop_flag());
  for (;;) {
    VERGER_TRY(const auto outcome, job.step(kBudget));
    progress.update(job.progress());
    if (outcome.kind == StepOutcome::Kind::kDone) {
      return {};
    }
    rest(outcome.rest);
  }
}

void print_result(ToolContext& tool, std::string_view result, const streams::ScavengePoint& point,
                  const scavenge::ScavengeProgress& progress, double seconds) {
  if (tool.json) {
    tool.out << nlohmann::ordered_json{{"result", result},
                                       {"point",
                                        {{"position", point.position.value()},
                                         {"eventNumber", point.number.value()},
                                         {"effectiveNow", format_ticks(point.effective_now)},
                                         {"threshold", point.threshold}}},
                                       {"stage", to_string(progress.stage)},
                                       {"recordsAccumulated", progress.records_accumulated},
                                       {"streamsCalculated", progress.streams_calculated},
                                       {"chunksExecuted", progress.chunks_executed},
                                       {"chunksSkipped", progress.chunks_skipped},
                                       {"recordsKept", progress.records_kept},
                                       {"recordsDiscarded", progress.records_discarded},
                                       {"groupsMerged", progress.groups_merged},
                                       {"entriesKept", progress.entries_kept},
                                       {"entriesDiscarded", progress.entries_discarded},
                                       {"spaceSaved", progress.space_saved},
                                       {"seconds", seconds}}
                    .dump()
             << '\n';
    return;
  }
  const auto saved = progress.space_saved;
  tool.out << fmt::format(
      "scavenge {} at point {} (log position {}), stage {}, {:.1f} s\n"
      "  chunks: {} executed, {} skipped, {} groups merged\n"
      "  records: {} removed, {} kept in executed chunks\n"
      "  index entries: {} removed, {} kept\n"
      "  disk space: {} {}\n",
      result, point.number, point.position, to_string(progress.stage), seconds,
      progress.chunks_executed, progress.chunks_skipped, progress.groups_merged,
      human_count(progress.records_discarded), human_count(progress.records_kept),
      human_count(progress.entries_discarded), human_count(progress.entries_kept),
      human_bytes(static_cast<std::uint64_t>(saved < 0 ? -saved : saved)),
      saved < 0 ? "more than before" : "freed");
}

Result<int> run(ToolContext& tool, const ScavengeArguments& arguments) {
  auto options = arguments.options;
  options.merge_chunks = !arguments.no_merge;
  options.compare_checksums = !arguments.skip_checksums;
  options.hash_in_background = true;
  if (!arguments.stop_after.empty()) {
    VERGER_TRY(const auto stop_after, parse_stop_after(arguments.stop_after));
    if (stop_after.nth == 0) {
      options.last_stage = stop_after.stage;
    } else {
      options.stop_after = stop_after;
    }
  }
  const StopSignals signals;
  const auto start = tool.clock.monotonic();
  VERGER_TRY(const bool has_point, look_first(tool, arguments));
  if (!has_point && !arguments.new_point) {
    return nothing_to_do(tool, std::nullopt);
  }
  VERGER_TRY(const auto database,
             open_database(tool, arguments.database, log::Access::kWrite, arguments.index));
  VERGER_TRY(const auto scavenge,
             scavenge::ScavengeRun::open(
                 *database,
                 {.files = tool.files, .clock = tool.clock, .random = tool.random, .log = tool.log},
                 options.state));
  const auto& checkpoint = scavenge->checkpoint();
  VERGER_TRY(auto point, choose_point(tool, arguments, *database, checkpoint));
  if (arguments.new_point) {
    if (options.compare_checksums) {
      VERGER_RETURN_IF_ERROR(check_sound(tool, *database));
      options.compare_checksums = false;  // each file once a run
    }
    VERGER_TRY(point, write_point(*database, checkpoint, arguments.threshold));
  }
  if (!point) {
    return nothing_to_do(tool, checkpoint);
  }
  if (!arguments.point_file.empty() &&
      (!checkpoint || checkpoint->point.position != point->position)) {
    VERGER_TRY(options.assumed_point, take_outside_point(tool, *database, *point, arguments.force));
  } else if (checkpoint && checkpoint->point.position == point->position) {
    // It continues with a point that may have come from a file.
    options.assumed_point = !arguments.point_file.empty();
  }
  if (!options.assumed_point) {
    VERGER_RETURN_IF_ERROR(end_chunk_of(database->transaction_log(), *point));
  }
  scavenge::ScavengeEvents events;
  auto& job = scavenge->begin(
      *point, options, events,
      options.threads > 1 ? scavenge::make_thread_runner(options.threads) : nullptr);
  Result<void> outcome;
  {
    StageProgress progress(tool);
    outcome = drive(job, progress);
  }
  const bool cancelled = !outcome && outcome.error().code == Errc::kCancelled;
  if (!outcome && !cancelled) {
    return outcome.error();
  }
  const bool stopped = cancelled || job.progress().stage != scavenge::Stage::kDone;
  if (stopped) {
    tool.err << fmt::format("verger-db: stopped; run the same command again{} to continue\n",
                            arguments.new_point ? " without --new-point" : "");
  }
  const auto seconds = std::chrono::duration<double>(tool.clock.monotonic() - start).count();
  print_result(tool, stopped ? "stopped" : "finished", job.point(), job.progress(), seconds);
  return stopped ? kExitStopped : kExitDone;
}

}  // namespace

void add_scavenge_command(CLI::App& program, Action& chosen) {
  auto arguments = std::make_shared<ScavengeArguments>();
  auto* command = program.add_subcommand(
      "scavenge",
      "Remove what streams no longer keep, up to a scavenge point: by default the last one in the "
      "log that is not reached yet. An unfinished scavenge is finished first");
  add_database_arguments(*command, arguments->database, /*writes=*/true);
  add_index_settings(*command, arguments->index);
  auto* point = command->add_option("--point", arguments->point, "Number of the scavenge point");
  point->check(CLI::NonNegativeNumber);
  auto* file = command->add_option(
      "--point-file", arguments->point_file,
      "JSON file with position, eventNumber, effectiveNow, threshold; the point "
      "may lie behind the end of the log, in its last chunk");
  command
      ->add_flag("--force", arguments->force,
                 "Also to a point behind the end of a log that holds earlier points: a server's "
                 "own scavenges fail until its log has got that point")
      ->needs(file);
  auto* fresh = command->add_flag(
      "--new-point", arguments->new_point,
      "Write a new scavenge point first. For single-node databases only: in a cluster a point "
      "belongs into the leader's log");
  point->excludes(file)->excludes(fresh);
  file->excludes(fresh);
  command->add_option("--threshold", arguments->threshold, "Threshold of the new point")
      ->needs(fresh);
  command->add_flag("--no-merge", arguments->no_merge, "Leave small chunks as they are");
  command->add_flag("--unsafe-ignore-hard-delete", arguments->options.unsafe_ignore_hard_delete,
                    "Remove tombstones, too");
  command
      ->add_option("--threads", arguments->options.threads,
                   "Chunks rewritten, and groups of them merged, side by side")
      ->check(CLI::Range(1, 4));
  command
      ->add_option("--throttle-percent", arguments->options.throttle_percent,
                   "Share of the time spent working; only with one thread")
      ->check(CLI::Range(1, 100));
  command
      ->add_option("--scavenge-page-size", arguments->options.state.page_size,
                   "Page size of scavenging.db, as the server's option")
      ->check(CLI::Range(512, 65536));
  command->add_flag("--skip-checksums", arguments->skip_checksums,
                    "Trust chunks and index tables without comparing them with their checksums");
  command
      ->add_option("--stop-after", arguments->stop_after,
                   "Stop once this stage is finished: accumulate, calculate, execute, merge, index "
                   "or clean. A later run, or a server's scavenge, continues with the next one. "
                   "STAGE:N: after its nth chunk, stream or table, as a stop at that moment")
      ->check([](const std::string& text) {
        const auto parsed = parse_stop_after(text);
        return parsed ? std::string() : parsed.error().message;
      });
  command->footer(
      "Exit codes: 0 finished or nothing to do, 1 failed, 2 refused, 3 stopped (run again to "
      "continue), 64 wrong usage.\n" +
      std::string(kWhoseFiles) + "Example:\n  verger-db scavenge /var/lib/eventstore --threads 2");
  command->callback([arguments, &chosen] {
    if (arguments->options.threads > 1 && arguments->options.throttle_percent != 100) {
      throw CLI::ValidationError("--throttle-percent", "must be 100 with more than one thread");
    }
    chosen = [arguments](ToolContext& tool) { return run(tool, *arguments); };
  });
}

}  // namespace verger::tool
