#include "engine/tool/info_command.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/tool/table.h"

namespace verger::tool {

namespace {

using nlohmann::ordered_json;

ordered_json describe_chunks(const log::TransactionLog& log) {
  auto chunks = ordered_json::array();
  for (const auto& chunk : log.chunks()) {
    const auto footer = chunk->footer();
    chunks.push_back({{"file", chunk->path().filename().string()},
                      {"start", chunk->start().value()},
                      {"end", chunk->end().value()},
                      {"version", chunk->version()},
                      {"scavenged", chunk->header().scavenged},
                      {"completed", chunk->completed()},
                      {"formatVersion", chunk->header().effective_version()},
                      {"chunkId", chunk->header().chunk_id.to_string()},
                      {"dataBytes", chunk->data_size()},
                      {"logicalBytes", footer ? footer->logical_data_size : chunk->data_size()},
                      {"fileBytes", chunk->file_size()}});
  }
  return chunks;
}

ordered_json describe_index(const index::Index& index) {
  auto tables = ordered_json::array();
  for (const auto& slot : index.tables()) {
    tables.push_back({{"level", slot.level},
                      {"position", slot.position},
                      {"file", slot.table->path().filename().string()},
                      {"version", slot.table->version()},
                      {"entries", slot.table->count()},
                      {"bloomFilter", slot.table->has_bloom_filter()},
                      {"fileBytes", slot.table->file_size()}});
  }
  return {{"directory", index.directory().string()},
          {"prepareCheckpoint", index.prepare_checkpoint().value()},
          {"commitCheckpoint", index.commit_checkpoint().value()},
          {"memoryEntries", index.memory_entry_count()},
          {"tables", std::move(tables)}};
}

Result<ordered_json> describe(const streams::Database& database) {
  const auto& log = database.transaction_log();
  const auto checkpoints = log.checkpoints();
  ordered_json info = {{"directory", log.directory().string()},
                       {"chunkSize", log.chunk_size()},
                       {"logEnd", log.end().value()},
                       {"checkpoints",
                        {{"writer", checkpoints.writer.value()},
                         {"chaser", checkpoints.chaser.value()},
                         {"epoch", checkpoints.epoch.value()},
                         {"proposal", checkpoints.proposal},
                         {"truncate", checkpoints.truncate.value()}}}};
  info["chunks"] = describe_chunks(log);
  std::uint64_t bytes = 0;
  for (const auto& chunk : log.chunks()) {
    bytes += chunk->file_size();
  }
  info["chunkBytes"] = bytes;
  info["epochs"] = ordered_json::array();
  for (const auto& epoch : log.epochs().all()) {
    info["epochs"].push_back({{"number", epoch.number.value()},
                              {"position", epoch.position.value()},
                              {"id", epoch.id.to_string()},
                              {"time", format_ticks(epoch.timestamp)},
                              {"leaderInstanceId", epoch.leader_instance_id.to_string()}});
  }
  info["scavengePoints"] = ordered_json::array();
  VERGER_TRY(const auto points, streams::scavenge_points(database));
  for (const auto& point : points) {
    info["scavengePoints"].push_back({{"number", point.number.value()},
                                      {"position", point.position.value()},
                                      {"effectiveNow", format_ticks(point.effective_now)},
                                      {"threshold", point.threshold}});
  }
  info["index"] = describe_index(database.stream_index());
  return info;
}

std::string text(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void print_checkpoints(const ordered_json& info, std::ostream& out) {
  const auto& checkpoints = info["checkpoints"];
  out << fmt::format("database    {}\n", printable(text(info["directory"])));
  out << fmt::format("chunk size  {} bytes\n", human_count(info["chunkSize"]));
  out << fmt::format("log end     {}\n", info["logEnd"].dump());
  out << fmt::format("on disk     {} in {} chunk files\n", human_bytes(info["chunkBytes"]),
                     info["chunks"].size());
  out << fmt::format("checkpoints writer {}, chaser {}, epoch {}, proposal {}, truncate {}\n",
                     text(checkpoints["writer"]), text(checkpoints["chaser"]),
                     text(checkpoints["epoch"]), text(checkpoints["proposal"]),
                     text(checkpoints["truncate"]));
}

void print_chunks(const ordered_json& info, std::ostream& out) {
  using enum Table::Align;
  Table table({{"CHUNK FILE"},
               {"NUMBERS", kRight},
               {"DATA", kRight},
               {"LOGICAL", kRight},
               {"FILE", kRight},
               {"STATE"}});
  for (const auto& chunk : info["chunks"]) {
    const bool merged = chunk["start"] != chunk["end"];
    const auto numbers =
        merged ? text(chunk["start"]) + "-" + text(chunk["end"]) : text(chunk["start"]);
    const auto* state = !chunk["completed"].get<bool>()   ? "active"
                        : !chunk["scavenged"].get<bool>() ? "complete"
                        : merged                          ? "scavenged, merged"
                                                          : "scavenged";
    table.add({text(chunk["file"]), numbers, human_count(chunk["dataBytes"]),
               human_count(chunk["logicalBytes"]), human_bytes(chunk["fileBytes"]), state});
  }
  out << '\n';
  table.print(out);
}

void print_log_facts(const ordered_json& info, std::ostream& out) {
  using enum Table::Align;
  constexpr std::size_t kShown = 5;
  const auto& epochs = info["epochs"];
  if (!epochs.empty()) {
    Table table({{"EPOCH", kRight}, {"POSITION", kRight}, {"TIME"}, {"LEADER INSTANCE"}});
    for (auto i = epochs.size() - std::min(epochs.size(), kShown); i < epochs.size(); ++i) {
      table.add({text(epochs[i]["number"]), text(epochs[i]["position"]), text(epochs[i]["time"]),
                 text(epochs[i]["leaderInstanceId"])});
    }
    out << fmt::format("\n{} epochs, the last {}:\n", epochs.size(),
                       std::min(epochs.size(), kShown));
    table.print(out);
  }
  const auto& points = info["scavengePoints"];
  if (points.empty()) {
    out << "\nno scavenge point in the log\n";
    return;
  }
  Table table({{"POINT", kRight}, {"POSITION", kRight}, {"THRESHOLD", kRight}, {"EFFECTIVE NOW"}});
  for (const auto& point : points) {
    table.add({text(point["number"]), text(point["position"]), text(point["threshold"]),
               text(point["effectiveNow"])});
  }
  out << '\n';
  table.print(out);
}

void print_index(const ordered_json& info, std::ostream& out) {
  using enum Table::Align;
  const auto& index = info["index"];
  out << fmt::format("\nindex {}: up to {}/{}, {} entries in memory\n",
                     printable(text(index["directory"]), 60), text(index["prepareCheckpoint"]),
                     text(index["commitCheckpoint"]), human_count(index["memoryEntries"]));
  if (index["tables"].empty()) {
    return;
  }
  Table table({{"LEVEL", kRight},
               {"ENTRIES", kRight},
               {"FILE", kRight},
               {"VERSION", kRight},
               {"FILTER"},
               {"TABLE"}});
  for (const auto& slot : index["tables"]) {
    table.add({fmt::format("{}.{}", text(slot["level"]), text(slot["position"])),
               human_count(slot["entries"]), human_bytes(slot["fileBytes"]), text(slot["version"]),
               slot["bloomFilter"].get<bool>() ? "yes" : "no", text(slot["file"])});
  }
  table.print(out);
}

}  // namespace

void add_info_command(CLI::App& program, Action& chosen) {
  auto arguments = std::make_shared<DatabaseArguments>();
  auto* command = program.add_subcommand(
      "info", "Show chunks, checkpoints, epochs, scavenge points and index tables");
  add_database_arguments(*command, *arguments, /*writes=*/false);
  command->footer("Example:\n  verger-db info /var/lib/eventstore");
  command->callback([arguments, &chosen] {
    chosen = [arguments](ToolContext& tool) -> Result<int> {
      VERGER_TRY(const auto database, open_database(tool, *arguments, log::Access::kReadOnly));
      VERGER_TRY(const auto info, describe(*database));
      if (tool.json) {
        tool.out << info.dump() << '\n';
        return kExitDone;
      }
      print_checkpoints(info, tool.out);
      print_chunks(info, tool.out);
      print_log_facts(info, tool.out);
      print_index(info, tool.out);
      return kExitDone;
    };
  });
}

}  // namespace verger::tool
