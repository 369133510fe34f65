#include "engine/tool/diff_command.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/tool/progress.h"
#include "engine/tool/table.h"

namespace verger::tool {

namespace {

struct DiffOptions {
  DatabaseArguments a;
  DatabaseArguments b;
  std::int64_t to = std::numeric_limits<std::int64_t>::max();
};

/// Where the logs part, as a person says it.
struct Difference {
  std::optional<LogPosition> position;  ///< nullopt: they have no positions in common
  std::string text;
};

std::string name_of(const log::LogRecord& record) {
  if (const auto* prepare = record.prepare()) {
    return fmt::format("{} bytes, '{}' of stream '{}'", record.framed.size(),
                       printable(prepare->type), printable(prepare->stream));
  }
  return fmt::format("{} bytes, {}", record.framed.size(),
                     std::holds_alternative<log::Commit>(record.record) ? "a commit" : "an epoch");
}

std::string first_difference(const log::LogRecord& a, const log::LogRecord& b) {
  const auto shorter = std::min(a.framed.size(), b.framed.size());
  std::size_t at = 0;
  while (at < shorter && a.framed[at] == b.framed[at]) {
    ++at;
  }
  return fmt::format("A has {}; B has {}; they differ from byte {} on", name_of(a), name_of(b), at);
}

Result<std::optional<Difference>> compare(ToolContext& tool, const log::TransactionLog& a,
                                          const log::TransactionLog& b, LogPosition to,
                                          std::uint64_t& equal_records) {
  log::LogCursor cursor_a(a, LogPosition(0), std::min(to, a.end()));
  log::LogCursor cursor_b(b, LogPosition(0), std::min(to, b.end()));
  std::uint64_t bytes = 0;
  for (const auto& chunk : a.chunks()) {
    bytes += static_cast<std::uint64_t>(chunk->data_size());
  }
  Progress progress(tool, "diff", bytes);
  std::uint64_t done = 0;
  for (;;) {
    VERGER_TRY(const auto in_a, cursor_a.next());
    VERGER_TRY(const auto in_b, cursor_b.next());
    if (!in_a && !in_b) {
      return std::nullopt;
    }
    if (!in_b || (in_a && in_a->position() < in_b->position())) {
      return Difference{in_a->position(), "only A has " + name_of(*in_a)};
    }
    if (!in_a || in_b->position() < in_a->position()) {
      return Difference{in_b->position(), "only B has " + name_of(*in_b)};
    }
    if (!same_bytes(in_a->framed, in_b->framed)) {
      return Difference{in_a->position(), first_difference(*in_a, *in_b)};
    }
    ++equal_records;
    done += in_a->framed.size();
    progress.update(done);
  }
}

Result<int> run(ToolContext& tool, const DiffOptions& options) {
  VERGER_TRY(const auto a, open_database(tool, options.a, log::Access::kReadOnly));
  VERGER_TRY(const auto b, open_database(tool, options.b, log::Access::kReadOnly));
  const auto& log_a = a->transaction_log();
  const auto& log_b = b->transaction_log();
  std::uint64_t equal_records = 0;
  std::optional<Difference> difference;
  if (log_a.chunk_size() != log_b.chunk_size()) {
    difference = Difference{{},
                            fmt::format("A has chunks of {} bytes, B of {}: the same records would "
                                        "have other positions",
                                        log_a.chunk_size(), log_b.chunk_size())};
  } else {
    VERGER_TRY(difference, compare(tool, log_a, log_b, LogPosition(options.to), equal_records));
  }
  if (tool.json) {
    nlohmann::ordered_json result = {{"equal", !difference}, {"equalRecords", equal_records}};
    if (difference) {
      const auto at = difference->position;
      result["chunk"] = at ? nlohmann::ordered_json(log_a.chunk_of(*at).value()) : nullptr;
      result["position"] = at ? nlohmann::ordered_json(at->value()) : nullptr;
      result["difference"] = difference->text;
    }
    tool.out << result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  } else if (difference && !difference->position) {
    tool.out << "the databases differ: " << difference->text << '\n';
  } else if (difference) {
    tool.out << fmt::format("first difference in chunk {} at log position {}:\n{}\n",
                            log_a.chunk_of(*difference->position), *difference->position,
                            difference->text);
  } else {
    tool.out << fmt::format("no difference in {} records\n", human_count(equal_records));
  }
  return difference ? kExitFailed : kExitDone;
}

}  // namespace

void add_diff_command(CLI::App& program, Action& chosen) {
  auto options = std::make_shared<DiffOptions>();
  auto* command = program.add_subcommand(
      "diff", "Find the first record that two databases do not have alike; exit code 1 if any");
  command->add_option("A", options->a.directory, "One database directory")->required();
  command->add_option("B", options->b.directory, "The other")->required();
  command->add_option("--index", options->a.index_directory,
                      "Index directory of A (default: A/index)");
  command->add_option("--index-b", options->b.index_directory,
                      "Index directory of B (default: B/index)");
  command->add_option("--to", options->to, "Compare the records before this log position")
      ->check(check_not_negative);
  command->footer(
      "Exit codes: 0 no difference, 1 a difference or a failure, 64 wrong usage. Databases with "
      "chunks of different sizes differ.\nExample:\n  verger-db diff /backup/node1 "
      "/var/lib/eventstore");
  command->callback([options, &chosen] {
    chosen = [options](ToolContext& tool) { return run(tool, *options); };
  });
}

}  // namespace verger::tool
