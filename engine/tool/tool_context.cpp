#include "engine/tool/tool_context.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "engine/base/database_files.h"
#include "engine/base/number_from_text.h"
#include "engine/log/chunk.h"
#include "engine/log/pending_truncation.h"
#include "engine/scavenge/scavenge_state.h"

namespace verger::tool {

int exit_code_of(const Error& error) {
  switch (error.code) {
    case Errc::kRefused:
    case Errc::kConflict:
      return kExitRefused;
    case Errc::kCancelled:
      return kExitStopped;
    case Errc::kTimeout:
    case Errc::kUnknownOutcome:
      return kExitWaiting;
    case Errc::kInvalidArgument:
      return kExitUsage;
    case Errc::kNotFound:
    case Errc::kExists:
    case Errc::kCorruption:
    case Errc::kUnsupported:
    case Errc::kNoSpace:
    case Errc::kIo:
    case Errc::kUnavailable:
    case Errc::kUnauthorized:
    case Errc::kDeleted:
      return kExitFailed;
  }
  return kExitFailed;
}

std::string check_not_negative(const std::string& text) {
  if (number_from_text<std::int64_t>(text).value_or(-1) >= 0) {
    return "";
  }
  return "'" + text + "' is not a whole number of 0 or more";
}

std::string check_time(const std::string& text) {
  const auto time = parse_ticks(text);
  return time ? std::string() : time.error().message;
}

void add_database_arguments(CLI::App& command, DatabaseArguments& arguments, bool writes) {
  command.add_option("DIR", arguments.directory, "Database directory (chunk files and *.chk)")
      ->required();
  command.add_option("--index", arguments.index_directory, "Index directory (default: DIR/index)");
  command
      .add_option("--chunk-size", arguments.chunk_size,
                  "Size of one chunk in bytes (default: what the first chunk says)")
      ->check(check_positive<std::int32_t>);
  if (writes) {
    command.add_flag("--assume-stopped", arguments.assume_stopped,
                     "Do not search /proc for a server that has the files open");
  }
}

void add_index_settings(CLI::App& command, IndexSettings& settings) {
  command
      .add_option("--max-mem-table-size", settings.max_mem_table_size,
                  "Entries of an index table when it is first written")
      ->check(check_positive<std::uint64_t>);
  command
      .add_option("--index-cache-depth", settings.cache_depth,
                  "Midpoints in index tables: 2 to the power of this")
      ->check(CLI::Range(8, 28));
}

Result<void> check_directory(ToolContext& tool, const Path& directory) {
  const auto listed = tool.files.list(directory);
  if (!listed) {
    const auto code = listed.error().code;
    return Error{
        code == Errc::kNotFound ? Errc::kInvalidArgument : code,
        listed.error().message + "; give the directory that holds the chunk files and writer.chk"};
  }
  const bool has_files = std::ranges::any_of(*listed, [](const DirectoryEntry& entry) {
    return !entry.is_directory &&
           (log::parse_chunk_file_name(entry.name) || entry.name.ends_with(".chk"));
  });
  if (!has_files) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: no database: it holds neither chunk files nor checkpoints; give "
                             "the directory that holds the chunk files and writer.chk",
                             directory.string())};
  }
  return {};
}

namespace {

/// A truncation is a node's business: its leader orders it, or the one who restores a backup.
/// A checkpoint file that lost its content (eight zeros) would take the whole log away.
Result<void> refuse_truncation(ToolContext& tool, const Path& directory) {
  VERGER_TRY(const auto pending, log::pending_truncation(tool.files, directory));
  if (pending.value() < 0) {
    return {};
  }
  const auto chaser = read_file(tool.files, directory / "chaser.chk");
  const bool processed = chaser && chaser->size() >= sizeof(std::int64_t) &&
                         pending.value() < load_le<std::int64_t>(chaser->data());
  if (!processed) {
    return {};  // as of a restored backup: nothing goes that the database has processed
  }
  return Error{
      Errc::kRefused,
      fmt::format("{}: says that the log is to be cut to {}, which takes records away that "
                  "were processed already; a node that starts does it: start it first, or "
                  "remove the file if that is not meant",
                  (directory / "truncate.chk").string(), pending)};
}

/// What is made here has to be of use to the server: known before the first change.
Result<void> refuse_foreign_files(const ToolContext& tool, const DatabaseArguments& arguments) {
  if (!is_machine_disk(tool.files)) {
    return {};
  }
  const Path database = arguments.directory;
  const auto index =
      arguments.index_directory.empty() ? database / "index" : Path(arguments.index_directory);
  const Path directories[] = {database, index,
                              scavenge::ScavengeState::path_in(index).parent_path()};
  return check_file_owner(directories);
}

}  // namespace

Result<void> check_before_writing(ToolContext& tool, const DatabaseArguments& arguments) {
  VERGER_RETURN_IF_ERROR(refuse_foreign_files(tool, arguments));
  return refuse_truncation(tool, arguments.directory);
}

Result<std::unique_ptr<streams::Database>> open_database(ToolContext& tool,
                                                         const DatabaseArguments& arguments,
                                                         log::Access access,
                                                         const IndexSettings& settings) {
  const Path directory = arguments.directory;
  VERGER_RETURN_IF_ERROR(check_directory(tool, directory));
  if (access == log::Access::kWrite) {
    VERGER_RETURN_IF_ERROR(check_before_writing(tool, arguments));
  }
  streams::DatabaseOptions options;
  options.log.access = access;
  options.log.chunk_size = arguments.chunk_size;
  options.log.assume_stopped = arguments.assume_stopped;
  options.index.read_only = access == log::Access::kReadOnly;
  options.index.max_mem_table_size = settings.max_mem_table_size;
  options.index.cache_depth = settings.cache_depth;
  options.index_directory = arguments.index_directory;
  return streams::Database::open(tool.files, directory, std::move(options),
                                 /*commit_all=*/true, tool.clock, tool.random, tool.log);
}

}  // namespace verger::tool
