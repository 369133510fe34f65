#include "engine/tool/digest_command.h"

#include <cstdlib>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/streams/find_scavenge_point.h"
#include "engine/tool/progress.h"
#include "engine/tool/table.h"

namespace verger::tool {

namespace {

struct DigestOptions {
  DatabaseArguments database;
  std::int64_t point = -1;
  bool logical_only = false;
  std::string temporary;  ///< directory
};

struct Scope {
  LogPosition end;
  Ticks now;
  std::string text;
};

/// Up to the point, or the whole log as of its last record.
Result<Scope> scope_of(const streams::Database& database, std::int64_t number) {
  const auto& log = database.transaction_log();
  if (number < 0) {
    Bytes buffer;
    Ticks now{0};
    VERGER_TRY(const auto last, log::read_before(log, log.end(), buffer));
    if (last) {
      now = std::visit([](const auto& record) { return record.timestamp; }, last->record);
    }
    return Scope{log.end(), now, fmt::format("the whole log, up to {}", log.end())};
  }
  VERGER_TRY(const auto points, streams::scavenge_points(database));
  const auto point = streams::find_scavenge_point(points, number);
  if (!point) {
    auto error = point.error().within(log.directory().string());
    error.message += " (`verger-db info` lists them)";
    return error;
  }
  return Scope{point->position, point->effective_now,
               fmt::format("scavenge point {} at {}", number, point->position)};
}

Result<int> run(ToolContext& tool, const DigestOptions& options) {
  VERGER_TRY(const auto database, open_database(tool, options.database, log::Access::kReadOnly));
  VERGER_TRY(const auto scope, scope_of(*database, options.point));
  streams::DigestOptions with;
  with.readable = !options.logical_only;
  with.files = &tool.files;
  with.temporary_directory = options.temporary;
  with.hash_in_background = true;
  streams::DigestJob job(*database, scope.end, scope.now, with);
  Progress progress(tool, "digest", static_cast<std::uint64_t>(job.end().value()));
  for (;;) {
    VERGER_TRY(const auto step, job.step(Budget{}));
    progress.update(static_cast<std::uint64_t>(job.position().value()));
    if (step.kind == StepOutcome::Kind::kDone) {
      break;
    }
  }
  const auto& digest = job.digest();
  if (tool.json) {
    nlohmann::ordered_json result = {
        {"end", scope.end.value()},          {"effectiveNow", format_ticks(scope.now)},
        {"logical", to_hex(digest.logical)}, {"readable", to_hex(digest.readable)},
        {"records", digest.records},         {"readableEvents", digest.readable_events},
        {"checksumsCompared", false},        {"chunks", nlohmann::ordered_json::array()}};
    if (options.logical_only) {
      result["readable"] = nullptr;
      result["readableEvents"] = nullptr;
    }
    for (const auto& chunk : digest.chunks) {
      result["chunks"].push_back(to_hex(chunk));
    }
    tool.out << result.dump() << '\n';
    return kExitDone;
  }
  tool.out << fmt::format("{}, now = {}\nlogical   {}  {} records\n", scope.text,
                          format_ticks(scope.now), to_hex(digest.logical),
                          human_count(digest.records));
  if (!options.logical_only) {
    tool.out << fmt::format("readable  {}  {} events\n", to_hex(digest.readable),
                            human_count(digest.readable_events));
  }
  tool.out << fmt::format("checksums {}\n\n", kNoChecksums);
  Table table({{"CHUNK", Table::Align::kRight}, {"LOGICAL DIGEST"}});
  for (std::size_t i = 0; i < digest.chunks.size(); ++i) {
    table.add({std::to_string(i), to_hex(digest.chunks[i])});
  }
  table.print(tool.out);
  return kExitDone;
}

}  // namespace

void add_digest_command(CLI::App& program, Action& chosen) {
  auto options = std::make_shared<DigestOptions>();
  auto* command = program.add_subcommand(
      "digest", "Compute the logical digest (records) and the readable digest (what clients see)");
  add_database_arguments(*command, options->database, /*writes=*/false);
  command
      ->add_option("--point", options->point,
                   "Up to this scavenge point (default: the whole log, as of its last record)")
      ->check(check_not_negative);
  command->add_flag("--logical-only", options->logical_only,
                    "Only the logical digest: neither temporary files nor much memory");
  const char* temporary = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): at the start
  options->temporary = temporary != nullptr && *temporary != '\0' ? temporary : "/var/tmp";
  command
      ->add_option("--temporary", options->temporary,
                   "Directory for temporary files of the readable digest, some 60 bytes for each "
                   "event beyond the first million (default: TMPDIR, or /var/tmp)")
      ->type_name("DIR");
  command->footer("Example:\n  verger-db digest /var/lib/eventstore --point 3");
  command->callback([options, &chosen] {
    chosen = [options](ToolContext& tool) { return run(tool, *options); };
  });
}

}  // namespace verger::tool
