#include "engine/tool/records_command.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/base/json_depth.h"
#include "engine/tool/table.h"

namespace verger::tool {

namespace {

using nlohmann::ordered_json;

struct RecordsOptions {
  DatabaseArguments database;
  std::int64_t from = 0;
  std::int64_t to = std::numeric_limits<std::int64_t>::max();
  std::string stream;
  std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
};

std::string flag_names(std::uint16_t flags) {
  using log::prepare_flags::kData;
  using log::prepare_flags::kIsCommitted;
  using log::prepare_flags::kIsJson;
  using log::prepare_flags::kIsRedacted;
  using log::prepare_flags::kStreamDelete;
  using log::prepare_flags::kTransactionBegin;
  using log::prepare_flags::kTransactionEnd;
  constexpr std::pair<std::uint16_t, std::string_view> kNames[] = {{kData, "data"},
                                                                   {kTransactionBegin, "begin"},
                                                                   {kTransactionEnd, "end"},
                                                                   {kStreamDelete, "tombstone"},
                                                                   {kIsCommitted, "committed"},
                                                                   {kIsJson, "json"},
                                                                   {kIsRedacted, "redacted"}};
  std::string text;
  for (const auto& [bit, name] : kNames) {
    if ((flags & bit) != 0) {
      text += text.empty() ? "" : ",";
      text += name;
    }
  }
  return text;
}

ordered_json to_json(const log::LogRecord& record) {
  ordered_json line = {{"position", record.position().value()},
                       {"bytes", record.framed.size()},
                       {"fileOffset", record.file_offset}};
  if (const auto* prepare = record.prepare()) {
    line["kind"] = "prepare";
    line["version"] = prepare->version;
    line["flags"] = flag_names(prepare->flags);
    line["stream"] = std::string(prepare->stream);
    line["expectedVersion"] = prepare->expected_version;
    line["type"] = std::string(prepare->type);
    line["eventId"] = prepare->event_id.to_string();
    line["time"] = format_ticks(prepare->timestamp);
    line["transactionPosition"] = prepare->transaction_position.value();
    line["transactionOffset"] = prepare->transaction_offset;
    line["dataBytes"] = prepare->data.size();
    line["metadataBytes"] = prepare->metadata.size();
  } else if (const auto* commit = std::get_if<log::Commit>(&record.record)) {
    line["kind"] = "commit";
    line["version"] = commit->version;
    line["transactionPosition"] = commit->transaction_position.value();
    line["firstEventNumber"] = commit->first_event_number.value();
    line["time"] = format_ticks(commit->timestamp);
  } else if (const auto* system = std::get_if<log::SystemRecord>(&record.record)) {
    line["kind"] = "epoch";
    line["time"] = format_ticks(system->timestamp);
    const auto text = as_text(system->json);
    line["epoch"] = json_depth(text) > kMaxJsonDepth ? ordered_json()
                                                     : ordered_json::parse(text, nullptr, false);
  }
  return line;
}

/// "position  kind  number@stream  type": the stream comes last, where a long name may be cut.
std::string to_text(const log::LogRecord& record) {
  const auto head = fmt::format("{:>14} {:>8} ", record.position().value(), record.framed.size());
  if (const auto* prepare = record.prepare()) {
    const auto committed = prepare->has(log::prepare_flags::kIsCommitted);
    const auto number = prepare->has(log::prepare_flags::kStreamDelete) ? "deleted"
                        : committed ? std::to_string(prepare->event_number().value())
                                    : fmt::format("tx+{}", prepare->transaction_offset);
    return head + fmt::format("prepare  {:<22} {:>8} {}", printable(prepare->type, 22), number,
                              printable(prepare->stream, 35));
  }
  if (const auto* commit = std::get_if<log::Commit>(&record.record)) {
    return head + fmt::format("commit   of the transaction at {}, events from {}",
                              commit->transaction_position, commit->first_event_number);
  }
  const auto& system = std::get<log::SystemRecord>(record.record);
  const auto epoch = log::decode_epoch_json(system.json);
  return head +
         (epoch ? fmt::format("epoch    {} since {}", epoch->number, format_ticks(epoch->timestamp))
                : "epoch    (unreadable)");
}

Result<int> run(ToolContext& tool, const RecordsOptions& options) {
  VERGER_TRY(const auto database, open_database(tool, options.database, log::Access::kReadOnly));
  const auto end = std::min(LogPosition(options.to), database->transaction_log().end());
  log::LogCursor cursor(database->transaction_log(), LogPosition(options.from), end);
  if (!tool.json) {
    tool.out << fmt::format("{:>14} {:>8} {:<8} {:<22} {:>8} {}\n", "POSITION", "BYTES", "KIND",
                            "TYPE", "NUMBER", "STREAM");
  }
  std::uint64_t shown = 0;
  while (shown < options.limit) {
    VERGER_TRY(const auto record, cursor.next());
    if (!record) {
      break;
    }
    if (!options.stream.empty() &&
        (record->prepare() == nullptr || record->prepare()->stream != options.stream)) {
      continue;
    }
    ++shown;
    tool.out << (tool.json
                     ? to_json(*record).dump(-1, ' ', false, ordered_json::error_handler_t::replace)
                     : to_text(*record))
             << '\n';
  }
  return kExitDone;
}

}  // namespace

void add_records_command(CLI::App& program, Action& chosen) {
  auto options = std::make_shared<RecordsOptions>();
  auto* command = program.add_subcommand("records", "List the records of the log");
  add_database_arguments(*command, options->database, /*writes=*/false);
  command->add_option("--from", options->from, "First log position")->check(check_not_negative);
  command->add_option("--to", options->to, "End: records at or after it are left out")
      ->check(check_not_negative);
  command->add_option("--stream", options->stream, "Only prepares of this stream");
  command->add_option("--limit", options->limit, "At most so many records")
      ->check(check_not_negative);
  command->footer("Example:\n  verger-db records /var/lib/eventstore --stream orders-7 -o json");
  command->callback([options, &chosen] {
    chosen = [options](ToolContext& tool) { return run(tool, *options); };
  });
}

}  // namespace verger::tool
