#include "engine/tool/generate_command.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/base/number_from_text.h"
#include "engine/tool/progress.h"
#include "engine/tool/table.h"
#include "engine/tool/workload.h"

namespace verger::tool {
namespace {

struct GenerateOptions {
  std::string directory;
  std::string size = "160";
  std::string start;
  bool no_index = false;
  Workload workload;
};

/// "160" or "100-300".
Result<void> read_size(std::string_view text, Workload& workload) {
  const auto dash = text.find('-');
  const auto first = number_from_text<std::uint64_t>(text.substr(0, dash));
  const auto last = dash == std::string_view::npos
                        ? first
                        : number_from_text<std::uint64_t>(text.substr(dash + 1));
  if (!first || !last) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("--size {}: a number of bytes, or two as in 100-300", text)};
  }
  workload.size_min = *first;
  workload.size_max = *last;
  return {};
}

Result<int> run(ToolContext& tool, const GenerateOptions& options) {
  auto workload = options.workload;
  workload.index = !options.no_index;
  VERGER_RETURN_IF_ERROR(read_size(options.size, workload));
  if (!options.start.empty()) {
    VERGER_TRY(workload.start, parse_ticks(options.start));
  }
  const auto start = tool.clock.monotonic();
  Generated result;
  {
    Progress progress(tool, "generate", workload.events, Progress::Unit::kEvents);
    VERGER_TRY(result, generate_workload(tool.files, options.directory, workload, tool.log,
                                         [&](std::uint64_t done) { progress.update(done); }));
  }
  const auto seconds = std::chrono::duration<double>(tool.clock.monotonic() - start).count();
  const auto rate = static_cast<double>(workload.events) / std::max(seconds, 1e-9);
  if (tool.json) {
    tool.out << nlohmann::ordered_json{{"events", workload.events},
                                       {"streams", workload.streams},
                                       {"records", result.records},
                                       {"metadataRecords", result.metadata_records},
                                       {"tombstones", result.tombstones},
                                       {"indexEntries", result.index_entries},
                                       {"chunks", result.chunks},
                                       {"logEnd", result.end.value()},
                                       {"seconds", seconds},
                                       {"eventsPerSecond", rate}}
                    .dump()
             << '\n';
  } else {
    tool.out << fmt::format(
        "{}: {} events in {} streams, {} records in {} chunks, log end {}; {} index entries "
        "({:.1f} s, {} events/s)\n",
        printable(options.directory), human_count(workload.events), human_count(workload.streams),
        human_count(result.records), result.chunks, result.end, human_count(result.index_entries),
        seconds, human_count(static_cast<std::uint64_t>(rate)));
  }
  return kExitDone;
}

}  // namespace

void add_generate_command(CLI::App& program, Action& chosen) {
  auto options = std::make_shared<GenerateOptions>();
  auto& workload = options->workload;
  auto* command = program.add_subcommand(
      "generate", "Write a database of made-up events; the same seed gives the same bytes");
  command->add_option("DIR", options->directory, "Directory to be made; empty if it is there")
      ->required();
  command->add_option("--events", workload.events, "How many events (default 1,000,000)");
  command->add_option("--streams", workload.streams, "In how many streams (default 1,000)");
  command->add_option("--size", options->size,
                      "Bytes of an event's data; or a range, such as 100-300 (default 160)");
  command->add_option("--max-count", workload.max_count, "$maxCount of --max-count-percent")
      ->check(check_positive<std::int64_t>);
  command->add_option("--max-count-percent", workload.max_count_percent,
                      "Share of the streams that keep --max-count events");
  command->add_option("--max-age", workload.max_age_seconds, "$maxAge in seconds")
      ->check(check_positive<std::int64_t>);
  command->add_option("--max-age-percent", workload.max_age_percent,
                      "Share of the streams that keep their events for --max-age");
  command->add_option("--truncate-before", workload.truncate_before, "$tb")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--truncate-percent", workload.truncate_percent,
                      "Share of the streams that are truncated before --truncate-before");
  command->add_option("--soft-deleted-percent", workload.soft_deleted_percent,
                      "Share of the streams that are soft-deleted at the end");
  command->add_option("--deleted-percent", workload.deleted_percent,
                      "Share of the streams that get a tombstone at the end");
  command
      ->add_option("--start", options->start,
                   "Time of the first event (default 2024-01-01T00:00:00Z)")
      ->check(check_time);
  command->add_option("--span", workload.span_seconds,
                      "Seconds from the first event to the end (default 30 days)");
  command->add_flag("--point", workload.scavenge_point,
                    "End with a scavenge point, its time that of the end");
  command->add_option("--threshold", workload.threshold, "Threshold of that point (default 0)");
  command->add_option("--seed", workload.seed, "Another seed gives other bytes (default 1)");
  command->add_option("--prefix", workload.prefix, "Streams are PREFIX-0000000 and so on");
  command->add_option("--type", workload.type, "Type of the events");
  command->add_option("--chunk-size", workload.chunk_size, "Size of one chunk (default 256 MiB)")
      ->check(check_positive<std::int32_t>);
  command->add_flag("--no-index", options->no_index,
                    "Write no index: a node, or `index rebuild`, makes it");
  command
      ->add_option("--max-mem-table-size", workload.max_mem_table_size,
                   "Entries of an index table when it is first written")
      ->check(check_positive<std::uint64_t>);
  command->add_option("--index-cache-depth", workload.cache_depth, "Midpoints in index tables")
      ->check(CLI::Range(8, 28));
  command->add_option("--existence-filter-size", workload.existence_filter_size,
                      "Bytes of the stream existence filter (default 256,000,000; 0: none)");
  command->footer(
      "Example: a database of 3.2 GiB, in which 60 % of the streams keep 80 of 480 events\n"
      "  verger-db generate /tmp/db --events 12000000 --streams 25000 --max-count 80 \\\n"
      "      --max-count-percent 60 --point");
  command->callback([options, &chosen] {
    chosen = [options](ToolContext& tool) { return run(tool, *options); };
  });
}

}  // namespace verger::tool
