#include "engine/tool/estimate_command.h"

#include <algorithm>
#include <chrono>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/base/digest.h"
#include "engine/scavenge/estimate.h"
#include "engine/tool/detail/preview_setup.h"
#include "engine/tool/progress.h"
#include "engine/tool/stop_signals.h"
#include "engine/tool/table.h"

namespace verger::tool {
namespace {

using nlohmann::ordered_json;
using scavenge::Estimate;
using scavenge::RemovalRule;
using scavenge::Volume;

struct EstimateOptions {
  PreviewArguments preview;
  std::size_t top = 10;
  double rate_mib = 0;  ///< 0: measured
  bool no_merge = false;
};

constexpr double kMebibyte = 1024 * 1024;
constexpr double kFasterThanDisks = 3e9;

/// Bytes per second, and where that comes from.
struct Rate {
  double bytes_per_second = 0;
  std::uint64_t measured_bytes = 0;  ///< 0: given
  bool from_memory = false;          ///< no disk reads so fast
};

/// Reads and hashes the beginning of the largest chunk, for a second at most: a scavenge hashes
/// all that it reads and writes, which takes longer than a fast disk does.
Result<Rate> measure(ToolContext& tool, const log::TransactionLog& log) {
  constexpr std::size_t kBlock = std::size_t{1} << 20U;
  constexpr std::uint64_t kMost = std::uint64_t{256} << 20U;
  std::shared_ptr<const log::Chunk> largest;
  for (const auto& chunk : log.chunks()) {
    if (largest == nullptr || chunk->data_size() > largest->data_size()) {
      largest = chunk;
    }
  }
  Rate rate;
  if (largest == nullptr) {
    return rate;
  }
  const auto size = std::min(kMost, static_cast<std::uint64_t>(largest->data_size()));
  Bytes block(kBlock);
  Md5 md5;
  const auto start = tool.clock.monotonic();
  Monotonic taken{};
  Monotonic reading{};
  while (rate.measured_bytes < size && taken < std::chrono::seconds(1)) {
    const auto piece = std::min<std::uint64_t>(kBlock, size - rate.measured_bytes);
    const auto part = MutableBytes(block).first(piece);
    const auto before = tool.clock.monotonic();
    VERGER_RETURN_IF_ERROR(largest->read_raw(log::kChunkHeaderSize + rate.measured_bytes, part));
    reading += tool.clock.monotonic() - before;
    md5.update(part);
    rate.measured_bytes += piece;
    taken = tool.clock.monotonic() - start;
  }
  const auto seconds = std::chrono::duration<double>(taken).count();
  rate.bytes_per_second = static_cast<double>(rate.measured_bytes) / std::max(seconds, 1e-6);
  rate.from_memory = static_cast<double>(rate.measured_bytes) >
                     kFasterThanDisks * std::chrono::duration<double>(reading).count();
  return rate;
}

double seconds_of(const Estimate& estimate, const Rate& rate) {
  const auto bytes = static_cast<double>(estimate.bytes_read + estimate.bytes_written);
  return rate.bytes_per_second > 0 ? bytes / rate.bytes_per_second : 0;
}

ordered_json to_json(const Volume& volume) {
  return {{"records", volume.records}, {"bytes", volume.bytes}};
}

ordered_json to_json(const OpenedPreview& opened, const Estimate& estimate, const Rate& rate) {
  ordered_json json = {{"point", point_json(opened)},
                       {"removed", to_json(estimate.removed)},
                       {"keptInExecutedChunks", to_json(estimate.kept)},
                       {"chunksExecuted", estimate.chunks_executed},
                       {"chunksSkipped", estimate.chunks_skipped},
                       {"entriesRemoved", estimate.entries_removed},
                       {"entriesKept", estimate.entries_kept},
                       {"spaceSaved", estimate.space_saved},
                       {"diskNeed",
                        {{"bytes", estimate.disk_need},
                         {"largestRewrite", estimate.largest_rewrite},
                         {"largestMerge", estimate.largest_merge},
                         {"largestTable", estimate.largest_table},
                         {"state", estimate.state_bytes}}},
                       {"time",
                        {{"seconds", seconds_of(estimate, rate)},
                         {"bytesRead", estimate.bytes_read},
                         {"bytesWritten", estimate.bytes_written},
                         {"bytesPerSecond", rate.bytes_per_second},
                         {"measuredBytes", rate.measured_bytes}}},
                       {"checksumsCompared", false},
                       {"rules", ordered_json::array()},
                       {"chunks", ordered_json::array()},
                       {"merges", ordered_json::array()},
                       {"tables", ordered_json::array()},
                       {"streamsLosing", estimate.streams_losing},
                       {"topIsExact", estimate.top_is_exact},
                       {"streams", ordered_json::array()}};
  for (std::size_t n = 0; n < estimate.by_rule.size(); ++n) {
    auto row = to_json(estimate.by_rule[n]);
    row["rule"] = to_string(static_cast<RemovalRule>(n));
    json["rules"].push_back(std::move(row));
  }
  for (const auto& chunk : estimate.chunks) {
    json["chunks"].push_back({{"file", chunk.file},
                              {"start", chunk.start},
                              {"end", chunk.end},
                              {"weight", chunk.weight},
                              {"executed", chunk.executed},
                              {"kept", to_json(chunk.kept)},
                              {"removed", to_json(chunk.removed)},
                              {"fileBytesBefore", chunk.file_bytes_before},
                              {"fileBytesAfter", chunk.file_bytes_after}});
  }
  for (const auto& merge : estimate.merges) {
    json["merges"].push_back({{"start", merge.start},
                              {"end", merge.end},
                              {"files", merge.files},
                              {"fileBytesBefore", merge.bytes_before},
                              {"fileBytesAfter", merge.bytes_after}});
  }
  for (const auto& table : estimate.tables) {
    json["tables"].push_back({{"file", table.file},
                              {"level", table.level},
                              {"position", table.position},
                              {"entriesKept", table.entries_kept},
                              {"entriesRemoved", table.entries_removed},
                              {"rewritten", table.rewritten},
                              {"fileBytesBefore", table.file_bytes_before},
                              {"fileBytesAfter", table.file_bytes_after}});
  }
  for (const auto& stream : estimate.top) {
    auto row = to_json(stream.removed);
    row["stream"] = stream.stream;
    json["streams"].push_back(std::move(row));
  }
  return json;
}

std::string duration_text(double seconds) {
  return seconds < 120    ? fmt::format("{:.1f} s", seconds)
         : seconds < 7200 ? fmt::format("{:.0f} min", seconds / 60)
                          : fmt::format("{:.1f} h", seconds / 3600);
}

void print_summary(const OpenedPreview& opened, const Estimate& estimate, const Rate& rate,
                   std::ostream& out) {
  const auto saved = estimate.space_saved;
  out << fmt::format("{}\n\n", point_text(opened));
  out << fmt::format("records to go  {} ({}) of {} in the chunks to be rewritten\n",
                     human_count(estimate.removed.records), human_bytes(estimate.removed.bytes),
                     human_count(estimate.removed.records + estimate.kept.records));
  out << fmt::format("chunk files    {} rewritten, {} left as they are; {} merges\n",
                     estimate.chunks_executed, estimate.chunks_skipped, estimate.merges.size());
  out << fmt::format("index entries  {} go, {} stay\n", human_count(estimate.entries_removed),
                     human_count(estimate.entries_kept));
  out << fmt::format("disk space     {} {}\n",
                     human_bytes(static_cast<std::uint64_t>(saved < 0 ? -saved : saved)),
                     saved < 0 ? "more than before" : "freed");
  out << fmt::format(
      "disk need      {} free meanwhile (largest rewritten chunk {}, merged chunk {}, index table "
      "{}; state {})\n",
      human_bytes(estimate.disk_need), human_bytes(estimate.largest_rewrite),
      human_bytes(estimate.largest_merge), human_bytes(estimate.largest_table),
      human_bytes(estimate.state_bytes));
  out << fmt::format(
      "time           about {}: {} to read and {} to write at {}/s, {}\n",
      duration_text(seconds_of(estimate, rate)), human_bytes(estimate.bytes_read),
      human_bytes(estimate.bytes_written),
      human_bytes(static_cast<std::uint64_t>(rate.bytes_per_second)),
      rate.measured_bytes == 0
          ? std::string("as given")
          : fmt::format("measured by reading and hashing {} of a chunk now{}",
                        human_bytes(rate.measured_bytes),
                        rate.from_memory ? " (from memory: give the disk's --rate)" : ""));
  out << fmt::format("checksums      {}\n", kNoChecksums);
}

void print_tables(const Estimate& estimate, std::ostream& out) {
  using enum Table::Align;
  Table rules({{"RECORDS", kRight}, {"BYTES", kRight}, {"RULE"}});
  for (std::size_t n = 0; n < estimate.by_rule.size(); ++n) {
    const auto& volume = estimate.by_rule[n];
    if (volume.records > 0) {
      rules.add({human_count(volume.records), human_bytes(volume.bytes),
                 std::string(to_string(static_cast<RemovalRule>(n)))});
    }
  }
  if (estimate.removed.records > 0) {
    out << '\n';
    rules.print(out);
  }
  Table chunks({{"CHUNK FILE"},
                {"WEIGHT", kRight},
                {"GO", kRight},
                {"STAY", kRight},
                {"BYTES TO GO", kRight},
                {"FILE NOW", kRight},
                {"THEN", kRight}});
  for (const auto& chunk : estimate.chunks) {
    chunks.add({chunk.file, fmt::format("{:.0f}", chunk.weight),
                chunk.executed ? human_count(chunk.removed.records) : "-",
                chunk.executed ? human_count(chunk.kept.records) : "-",
                chunk.executed ? human_bytes(chunk.removed.bytes) : "-",
                human_bytes(chunk.file_bytes_before),
                chunk.executed ? human_bytes(chunk.file_bytes_after) : "not rewritten"});
  }
  if (!estimate.chunks.empty()) {
    out << '\n';
    chunks.print(out);
  }
  Table merges({{"MERGED", kRight}, {"FILES", kRight}, {"NOW", kRight}, {"THEN", kRight}});
  for (const auto& merge : estimate.merges) {
    merges.add({fmt::format("{}-{}", merge.start, merge.end), std::to_string(merge.files),
                human_bytes(merge.bytes_before), human_bytes(merge.bytes_after)});
  }
  if (!estimate.merges.empty()) {
    out << '\n';
    merges.print(out);
  }
  Table streams({{"RECORDS", kRight}, {"BYTES", kRight}, {"STREAM"}});
  for (const auto& stream : estimate.top) {
    streams.add({human_count(stream.removed.records), human_bytes(stream.removed.bytes),
                 printable(stream.stream)});
  }
  if (!estimate.top.empty()) {
    out << fmt::format("\n{}{} streams lose records, most of all:{}\n",
                       estimate.top_is_exact ? "" : "at least ",
                       human_count(estimate.streams_losing),
                       estimate.top_is_exact ? "" : " (not all streams were followed)");
    streams.print(out);
  }
}

Result<int> run(ToolContext& tool, const EstimateOptions& options) {
  auto arguments = options.preview;
  arguments.options.merge_chunks = !options.no_merge;
  const StopSignals signals;
  VERGER_TRY(const auto opened, open_preview(tool, arguments));
  scavenge::EstimateJob job(*opened.preview, options.top);
  {
    Progress progress(tool, "estimate", job.bytes_total());
    for (;;) {
      VERGER_RETURN_IF_ERROR(StopSignals::check());
      VERGER_TRY(const auto outcome, job.step({.units = 65'536}));
      if (outcome.kind == StepOutcome::Kind::kDone) {
        break;
      }
      progress.update(job.bytes_done());
    }
  }
  Rate rate{.bytes_per_second = options.rate_mib * kMebibyte};
  if (options.rate_mib == 0) {
    VERGER_TRY(rate, measure(tool, opened.database->transaction_log()));
  }
  const auto& estimate = job.estimate();
  if (tool.json) {
    tool.out << to_json(opened, estimate, rate)
                    .dump(-1, ' ', false, ordered_json::error_handler_t::replace)
             << '\n';
  } else {
    print_summary(opened, estimate, rate, tool.out);
    print_tables(estimate, tool.out);
  }
  return kExitDone;
}

}  // namespace

void add_estimate_command(CLI::App& program, Action& chosen) {
  auto options = std::make_shared<EstimateOptions>();
  auto* command = program.add_subcommand(
      "estimate",
      "Tell what the next scavenge would remove, by chunk, rule and stream, and what time and disk "
      "space it needs. Changes nothing; a node may have the database open");
  add_preview_arguments(*command, options->preview);
  command->add_flag("--no-merge", options->no_merge, "As if small chunks were not merged");
  command
      ->add_option("--threads", options->preview.options.threads,
                   "Chunks rewritten, and groups of them merged, side by side; more of them need "
                   "more disk space")
      ->check(CLI::Range(1, 4));
  command
      ->add_option("--index-cache-depth", options->preview.index_cache_depth,
                   "Midpoints in index tables: 2 to the power of this (default 16)")
      ->check(CLI::Range(8, 28));
  command
      ->add_option("--rate", options->rate_mib,
                   "MiB per second that the scavenge reads and writes (default: measured)")
      ->check(CLI::PositiveNumber);
  command->add_option("--top", options->top, "How many streams to list (default 10)");
  command->footer("Example:\n  verger-db estimate /var/lib/eventstore --rate 150");
  command->callback([options, &chosen] {
    chosen = [options](ToolContext& tool) { return run(tool, *options); };
  });
}

}  // namespace verger::tool
