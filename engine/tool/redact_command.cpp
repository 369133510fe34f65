#include "engine/tool/redact_command.h"

#include <ostream>

#include <CLI/CLI.hpp>

#include "engine/log/pending_truncation.h"
#include "engine/redaction/found_in_events.h"
#include "engine/redaction/plaintext_search_job.h"
#include "engine/redaction/redaction_job.h"
#include "engine/redaction/redaction_list.h"
#include "engine/redaction/redaction_plan.h"
#include "engine/tool/detail/drive_job.h"
#include "engine/tool/detail/redaction_text.h"
#include "engine/tool/progress.h"
#include "engine/tool/stop_signals.h"

namespace verger::tool {
namespace {

struct RedactArguments {
  DatabaseArguments database;
  std::vector<std::string> events;
  std::string events_file;
  std::vector<std::int64_t> positions;
  std::string list;
  bool append = false;
  bool apply = false;
  bool metadata = false;
  bool metadata_streams = false;
  bool scan_log = false;
  redaction::RedactionConsent consent;
  bool dry_run = false;
  bool prove = false;
  std::vector<std::string> plaintexts;
};

/// One event a line; empty lines and those that begin with # are skipped.
Result<void> read_events_file(ToolContext& tool, const Path& path,
                              std::vector<redaction::EventName>& events) {
  VERGER_TRY(const auto bytes, read_file(tool.files, path));
  auto text = as_text(bytes);
  for (std::size_t number = 1; !text.empty(); ++number) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (line.empty() || line.starts_with('#')) {
      continue;
    }
    auto event = redaction::parse_event_name(line);
    if (!event) {
      return event.error().within(fmt::format("{}: line {}", path.string(), number));
    }
    events.push_back(*std::move(event));
  }
  return {};
}

Result<redaction::RedactionRequest> request_of(ToolContext& tool,
                                               const RedactArguments& arguments) {
  redaction::RedactionRequest request;
  request.metadata = arguments.metadata;
  request.metadata_streams = arguments.metadata_streams;
  request.scan_log = arguments.scan_log;
  for (const auto& text : arguments.events) {
    VERGER_TRY(auto event, redaction::parse_event_name(text));
    request.events.push_back(std::move(event));
  }
  if (!arguments.events_file.empty()) {
    VERGER_RETURN_IF_ERROR(read_events_file(tool, arguments.events_file, request.events));
  }
  for (const auto position : arguments.positions) {
    request.positions.emplace_back(position);
  }
  if (arguments.apply) {
    VERGER_TRY(const bool there, tool.files.exists(arguments.list));
    if (!there) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("{}: there is no such list of redactions", arguments.list)};
    }
    VERGER_TRY(request.listed, redaction::read_list(tool.files, arguments.list));
  }
  if (request.events.empty() && request.positions.empty() && !arguments.apply &&
      arguments.plaintexts.empty()) {
    return Error{Errc::kInvalidArgument,
                 "which events? Give --events, --events-file, --positions, or --list with --apply"};
  }
  return request;
}

/// Texts that are searched for later, with what each is.
class Texts {
 public:
  explicit Texts(Random& random) : digests_(random) {}

  void add(ByteView text, std::string what, RedactionOutcome& outcome) {
    if (!digests_.add(text)) {
      outcome.unsearchable.push_back(fmt::format(
          "{}: {} bytes are too few, or nothing but repetitions, to be found", what, text.size()));
    }
    outcome.texts.push_back(std::move(what));
  }
  [[nodiscard]] const redaction::PlaintextDigests& digests() const { return digests_; }

 private:
  redaction::PlaintextDigests digests_;
};

/// Read once, before they are blanked.
Result<void> note_texts(ToolContext& tool, const RedactArguments& arguments,
                        const log::TransactionLog& log, Texts& texts, RedactionOutcome& outcome) {
  Bytes buffer;
  for (const auto& planned : outcome.plan.records) {
    const auto name = redaction::name_of(planned.stream, planned.number);
    VERGER_TRY(const auto record, log.read(planned.position, buffer));
    const auto* prepare = record.prepare();
    if (prepare == nullptr) {
      continue;
    }
    if (planned.already) {
      if (arguments.plaintexts.empty()) {
        outcome.unsearchable.push_back(
            fmt::format("{}: was redacted before, and its text is not known: give it with "
                        "--plaintext",
                        name));
      }
      continue;
    }
    if (!prepare->data.empty()) {
      texts.add(prepare->data, fmt::format("the data of {}", name), outcome);
    }
    if (planned.metadata && !prepare->metadata.empty()) {
      texts.add(prepare->metadata, fmt::format("the metadata of {}", name), outcome);
    }
  }
  for (const auto& path : arguments.plaintexts) {
    VERGER_TRY(const auto text, read_file(tool.files, path));
    texts.add(text, fmt::format("the text in {}", path), outcome);
  }
  return {};
}

Result<void> redact(ToolContext& tool, const RedactArguments& arguments,
                    RedactionOutcome& outcome) {
  const Path directory = arguments.database.directory;
  VERGER_RETURN_IF_ERROR(check_before_writing(tool, arguments.database));
  VERGER_TRY(const auto pending, log::pending_truncation(tool.files, directory));
  if (pending.value() >= 0) {
    return Error{Errc::kRefused,
                 fmt::format("{}: the log is to be cut to {} at the next start: start the node, so "
                             "that it does that, and repeat the redaction then",
                             (directory / "truncate.chk").string(), pending)};
  }
  log::LogOptions options;
  options.access = log::Access::kWrite;
  options.chunk_size = arguments.database.chunk_size;
  options.assume_stopped = arguments.database.assume_stopped;
  VERGER_TRY(const auto log, log::TransactionLog::open(tool.files, directory, options, tool.clock,
                                                       tool.random, tool.log));
  redaction::RedactionJob job(tool.files, *log, outcome.plan, arguments.consent, tool.random,
                              tool.log);
  Progress progress(tool, "redact", job.progress().bytes_total);
  const auto driven =
      drive_job(tool, job, {.tick = [&] { progress.update(job.progress().bytes_done); }});
  outcome.chunks = job.chunks();
  return driven;
}

Result<void> search(ToolContext& tool, const RedactArguments& arguments, const Texts& texts,
                    RedactionOutcome& outcome) {
  std::vector<Path> directories = {arguments.database.directory};
  if (!arguments.database.index_directory.empty()) {
    directories.emplace_back(arguments.database.index_directory);
  }
  redaction::PlaintextSearchJob job(tool.files, texts.digests(), std::move(directories));
  std::optional<Progress> progress;
  VERGER_RETURN_IF_ERROR(drive_job(tool, job, {.tick = [&] {
                                     if (!progress) {
                                       progress.emplace(tool, "search", job.bytes_total());
                                     }
                                     progress->update(job.bytes_done());
                                   }}));
  outcome.files = job.take_files();
  outcome.searched = true;
  VERGER_TRY(const auto database, open_database(tool, arguments.database, log::Access::kReadOnly));
  return redaction::name_events(database->transaction_log(), outcome.files);
}

Result<void> find_kept_directories(ToolContext& tool, const Path& directory,
                                   RedactionOutcome& outcome) {
  VERGER_TRY(const auto entries, tool.files.list(directory));
  for (const auto& entry : entries) {
    if (entry.is_directory && entry.name.starts_with("old-before-")) {
      outcome.kept_by_restores.push_back(entry.name);
    }
  }
  return {};
}

Result<int> run(ToolContext& tool, RedactArguments arguments) {
  const StopSignals signals;
  const auto start = tool.clock.monotonic();
  VERGER_TRY(const auto request, request_of(tool, arguments));
  // Where a list is applied, other nodes may have scavenged what it names, or not.
  arguments.consent.skip_missing = arguments.consent.skip_missing || arguments.apply;
  RedactionOutcome outcome{.result = "planned"};
  Texts texts(tool.random);
  {
    VERGER_TRY(const auto database,
               open_database(tool, arguments.database, log::Access::kReadOnly));
    VERGER_TRY(outcome.plan,
               redaction::plan_redaction(tool.files, *database, request, &StopSignals::check));
    if (arguments.prove) {
      VERGER_RETURN_IF_ERROR(
          note_texts(tool, arguments, database->transaction_log(), texts, outcome));
    }
  }
  VERGER_RETURN_IF_ERROR(find_kept_directories(tool, arguments.database.directory, outcome));
  const auto checked = redaction::check_plan(outcome.plan, arguments.consent);
  if (arguments.dry_run) {
    print_redaction(tool, outcome);
    return checked ? Result<int>(kExitDone) : Result<int>(checked.error());
  }
  VERGER_RETURN_IF_ERROR(checked);
  if (arguments.append) {
    // Before the first change: an entry too many is applied without harm, one too few is lost.
    VERGER_RETURN_IF_ERROR(
        redaction::append_to_list(tool.files, arguments.list, outcome.plan.to_list()));
  }
  if (outcome.plan.to_do() > 0 || !outcome.plan.leftovers.empty()) {
    VERGER_RETURN_IF_ERROR(redact(tool, arguments, outcome));
    outcome.result = "redacted";
  } else {
    // A former run may have ended between the removal of a file and its sync.
    VERGER_RETURN_IF_ERROR(tool.files.sync_directory(arguments.database.directory));
    outcome.result =
        outcome.plan.records.empty() && !outcome.texts.empty() ? "searched" : "nothing to do";
  }
  if (arguments.prove) {
    VERGER_RETURN_IF_ERROR(search(tool, arguments, texts, outcome));
  }
  outcome.seconds = std::chrono::duration<double>(tool.clock.monotonic() - start).count();
  print_redaction(tool, outcome);
  return arguments.prove && !outcome.proven() ? kExitFailed : kExitDone;
}

}  // namespace

void add_redact_command(CLI::App& program, Action& chosen) {
  auto arguments = std::make_shared<RedactArguments>();
  auto* command = program.add_subcommand(
      "redact",
      "Blank the data of events in the chunk files of a stopped node: the bytes become 0xFF, the "
      "record is flagged as redacted, all else stays. Events stay blanked; there is no way back");
  add_database_arguments(*command, arguments->database, /*writes=*/true);
  command
      ->add_option("--events", arguments->events,
                   "Events as NUMBER@STREAM, separated by commas; names with commas go into a file")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--events-file", arguments->events_file,
                      "File with one NUMBER@STREAM per line; lines that begin with # are skipped");
  command
      ->add_option("--positions", arguments->positions,
                   "Events by the log position of their record, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(check_not_negative);
  auto* list = command->add_option(
      "--list", arguments->list,
      "File that lists redactions, without what the events held; with --append or --apply");
  auto* append = command->add_flag("--append", arguments->append,
                                   "Add these redactions to the list, before the first change");
  append->needs(list);
  auto* apply = command->add_flag(
      "--apply", arguments->apply,
      "Redact what the list names and is still here: on a node that was restored or is new");
  apply->needs(list);
  command->add_flag("--metadata", arguments->metadata,
                    "Blank the metadata of these events, too. A server shows it as it then is");
  command->add_flag("--metadata-streams", arguments->metadata_streams,
                    "Accept events of metadata streams ($$…) that newer metadata has replaced");
  command->add_flag("--scan-log", arguments->scan_log,
                    "Look for the events in all of the log, not in the index: finds those whose "
                    "index entries a scavenge removed while their records stayed");
  command->add_flag("--skip-missing", arguments->consent.skip_missing,
                    "Redact the others where an event is not there");
  command->add_flag("--complete-chunk", arguments->consent.complete_chunk,
                    "Complete the active chunk first if an event is in it. Only where this node "
                    "alone has the database: on one of a cluster records would be lost");
  command->add_flag("--remove-leftovers", arguments->consent.remove_leftovers,
                    "Remove chunk files that are superseded and *.tmp, which may hold the data. "
                    "Those of an interrupted redaction go in any case");
  command->add_flag("--dry-run", arguments->dry_run,
                    "Show what would be done, and what is refused; a node may have the database "
                    "open");
  auto* prove = command->add_flag(
      "--prove", arguments->prove,
      "Search all files of the directory for the former text: exit code 1 where some is left");
  command
      ->add_option("--plaintext", arguments->plaintexts,
                   "Search for the content of this file, too; without events nothing is redacted")
      ->allow_extra_args(false)
      ->needs(prove);
  command->footer(
      "Refused: system streams, scavenge points, metadata streams, tombstones, markers of "
      "transactions,\nan unfinished scavenge, a running server. Backups are not touched.\n" +
      std::string(kWhoseFiles) +
      "Exit codes: 0 redacted or nothing to do, 1 failed or not clean, 2 refused, 3 stopped (run "
      "again to finish), 64 wrong usage.\nExample:\n"
      "  verger-db redact /var/lib/eventstore --events 12@customer-7,13@customer-7 --prove");
  command->callback([arguments, &chosen] {
    if (!arguments->list.empty() && !arguments->append && !arguments->apply) {
      throw CLI::ValidationError("--list", "needs --append or --apply");
    }
    chosen = [arguments](ToolContext& tool) { return run(tool, *arguments); };
  });
}

}  // namespace verger::tool
