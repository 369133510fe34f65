#include "engine/tool/stats_command.h"

#include <algorithm>
#include <unordered_map>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/streams/metadata.h"
#include "engine/streams/stream_names.h"
#include "engine/tool/progress.h"
#include "engine/tool/table.h"

namespace verger::tool {

namespace {

using nlohmann::ordered_json;

struct StatsOptions {
  DatabaseArguments database;
  std::size_t top = 20;
};

struct StreamTotals {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::int64_t metadata_number = -1;
  std::optional<std::int64_t> max_count, max_age, truncate_before;
  bool tombstone = false;
};

/// Records up to 2^(6+i) bytes, the last one without bound.
constexpr std::size_t kSizeClasses = 12;

struct Totals {
  std::unordered_map<std::string, StreamTotals> streams;
  std::array<std::pair<std::uint64_t, std::uint64_t>, kSizeClasses> sizes{};  // records, bytes
  std::uint64_t prepares = 0;
  std::uint64_t commits = 0;
  std::uint64_t epochs = 0;
};

std::size_t size_class(std::uint64_t bytes) {
  std::size_t index = 0;
  while (index + 1 < kSizeClasses && bytes > (std::uint64_t{64} << index)) {
    ++index;
  }
  return index;
}

void count(Totals& totals, const log::LogRecord& record) {
  const auto bytes = record.framed.size();
  auto& [records_of_size, bytes_of_size] = totals.sizes[size_class(bytes)];
  ++records_of_size;
  bytes_of_size += bytes;
  const auto* prepare = record.prepare();
  if (prepare == nullptr) {
    ++(std::holds_alternative<log::Commit>(record.record) ? totals.commits : totals.epochs);
    return;
  }
  ++totals.prepares;
  auto& stream = totals.streams[std::string(prepare->stream)];
  ++stream.records;
  stream.bytes += bytes;
  stream.tombstone |= prepare->has(log::prepare_flags::kStreamDelete);
  if (!streams::is_metastream(prepare->stream) || !prepare->has(log::prepare_flags::kIsCommitted) ||
      !prepare->has(log::prepare_flags::kData)) {
    return;
  }
  auto& original = totals.streams[std::string(streams::original_of(prepare->stream))];
  const auto number = prepare->event_number().value();
  if (number <= original.metadata_number) {
    return;
  }
  streams::StreamMetadata metadata;
  if (prepare->has(log::prepare_flags::kIsJson) && !prepare->data.empty()) {
    metadata = streams::parse_metadata(prepare->data, prepare->version);
  }
  original.metadata_number = number;
  original.max_count = metadata.max_count;
  original.max_age = metadata.max_age_seconds;
  original.truncate_before = metadata.truncate_before;
}

std::string retention(const StreamTotals& stream) {
  if (stream.tombstone) {
    return "deleted";
  }
  if (stream.truncate_before == kDeletedStream.value()) {
    return "soft-deleted";
  }
  std::string text;
  const auto add = [&](std::string_view name, const std::optional<std::int64_t>& value) {
    if (value) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, *value);
    }
  };
  add("maxCount", stream.max_count);
  add("maxAge", stream.max_age);
  add("tb", stream.truncate_before);
  return text.empty() ? "-" : text;
}

struct RetentionTotals {
  std::string name;
  std::uint64_t streams = 0;
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
};

std::vector<RetentionTotals> by_retention(const Totals& totals) {
  std::vector<RetentionTotals> rows{{"deleted"}, {"soft-deleted"}, {"maxCount"}, {"maxAge"},
                                    {"tb"},      {"metastream"},   {"none"}};
  for (const auto& [name, stream] : totals.streams) {
    if (stream.records == 0) {
      continue;
    }
    const std::size_t row = streams::is_metastream(name)                       ? 5
                            : stream.tombstone                                 ? 0
                            : stream.truncate_before == kDeletedStream.value() ? 1
                            : stream.max_count                                 ? 2
                            : stream.max_age                                   ? 3
                            : stream.truncate_before                           ? 4
                                                                               : 6;
    ++rows[row].streams;
    rows[row].records += stream.records;
    rows[row].bytes += stream.bytes;
  }
  return rows;
}

using Ranked = std::vector<const std::pair<const std::string, StreamTotals>*>;

Ranked largest(const Totals& totals, std::size_t top) {
  Ranked ranked;
  for (const auto& stream : totals.streams) {
    if (stream.second.records > 0) {
      ranked.push_back(&stream);
    }
  }
  const auto shown = std::min(top, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(shown),
                    ranked.end(), [](const auto* a, const auto* b) {
                      return a->second.bytes != b->second.bytes ? a->second.bytes > b->second.bytes
                                                                : a->first < b->first;
                    });
  ranked.resize(shown);
  return ranked;
}

std::string class_name(std::size_t index) {
  return index + 1 < kSizeClasses
             ? fmt::format("<= {}", human_bytes(std::uint64_t{64} << index))
             : fmt::format("> {}", human_bytes(std::uint64_t{64} << (kSizeClasses - 2)));
}

ordered_json to_json(const Totals& totals, std::size_t top) {
  ordered_json result = {{"streams", totals.streams.size()}, {"prepares", totals.prepares},
                         {"commits", totals.commits},        {"epochs", totals.epochs},
                         {"largest", ordered_json::array()}, {"retention", ordered_json::array()},
                         {"sizes", ordered_json::array()}};
  for (const auto* stream : largest(totals, top)) {
    result["largest"].push_back({{"stream", stream->first},
                                 {"records", stream->second.records},
                                 {"bytes", stream->second.bytes},
                                 {"retention", retention(stream->second)}});
  }
  for (const auto& row : by_retention(totals)) {
    result["retention"].push_back({{"setting", row.name},
                                   {"streams", row.streams},
                                   {"records", row.records},
                                   {"bytes", row.bytes}});
  }
  for (std::size_t i = 0; i < kSizeClasses; ++i) {
    ordered_json row = {{"records", totals.sizes[i].first}, {"bytes", totals.sizes[i].second}};
    if (i + 1 < kSizeClasses) {
      row["upToBytes"] = std::uint64_t{64} << i;
    }
    result["sizes"].push_back(std::move(row));
  }
  return result;
}

void print(const Totals& totals, std::size_t top, std::ostream& out) {
  using enum Table::Align;
  out << fmt::format("{} streams; {} prepares, {} commits, {} epochs\n\n",
                     human_count(totals.streams.size()), human_count(totals.prepares),
                     human_count(totals.commits), human_count(totals.epochs));
  Table streams({{"SIZE", kRight}, {"RECORDS", kRight}, {"RETENTION"}, {"STREAM"}});
  for (const auto* stream : largest(totals, top)) {
    streams.add({human_bytes(stream->second.bytes), human_count(stream->second.records),
                 retention(stream->second), printable(stream->first)});
  }
  streams.print(out);
  out << '\n';
  Table settings({{"SIZE", kRight}, {"RECORDS", kRight}, {"STREAMS", kRight}, {"SETTING"}});
  for (const auto& row : by_retention(totals)) {
    settings.add(
        {human_bytes(row.bytes), human_count(row.records), human_count(row.streams), row.name});
  }
  settings.print(out);
  out << '\n';
  Table sizes({{"RECORD SIZE", kRight}, {"RECORDS", kRight}, {"TOTAL", kRight}});
  for (std::size_t i = 0; i < kSizeClasses; ++i) {
    if (totals.sizes[i].first > 0) {
      sizes.add(
          {class_name(i), human_count(totals.sizes[i].first), human_bytes(totals.sizes[i].second)});
    }
  }
  sizes.print(out);
}

Result<int> run(ToolContext& tool, const StatsOptions& options) {
  VERGER_TRY(const auto database, open_database(tool, options.database, log::Access::kReadOnly));
  const auto& log = database->transaction_log();
  std::uint64_t bytes = 0;
  for (const auto& chunk : log.chunks()) {
    bytes += static_cast<std::uint64_t>(chunk->data_size());
  }
  Totals totals;
  {
    Progress progress(tool, "stats", bytes);
    std::uint64_t done = 0;
    log::LogCursor cursor(log, LogPosition(0), log.end());
    for (;;) {
      VERGER_TRY(const auto record, cursor.next());
      if (!record) {
        break;
      }
      count(totals, *record);
      done += record->framed.size();
      progress.update(done);
    }
  }
  if (tool.json) {
    tool.out
        << to_json(totals, options.top).dump(-1, ' ', false, ordered_json::error_handler_t::replace)
        << '\n';
  } else {
    print(totals, options.top, tool.out);
  }
  return kExitDone;
}

}  // namespace

void add_stats_command(CLI::App& program, Action& chosen) {
  auto options = std::make_shared<StatsOptions>();
  auto* command = program.add_subcommand(
      "stats", "Show the largest streams, retention settings and sizes of records");
  add_database_arguments(*command, options->database, /*writes=*/false);
  command->add_option("--top", options->top, "How many streams to list (default 20)");
  command->footer("Example:\n  verger-db stats /var/lib/eventstore --top 50");
  command->callback([options, &chosen] {
    chosen = [options](ToolContext& tool) { return run(tool, *options); };
  });
}

}  // namespace verger::tool
