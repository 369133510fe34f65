#pragma once

#include <fmt/format.h>
#include <functional>
#include <iosfwd>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/clock.h"
#include "engine/base/exit_code.h"
#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "engine/base/number_from_text.h"
#include "engine/base/random.h"
#include "engine/base/result.h"
#include "engine/streams/event_store.h"

namespace CLI {
class App;
}

namespace verger::tool {

/// How far long work is, on stderr.
enum class ProgressStyle : std::uint8_t {
  kAuto,  ///< a line that is written over, on a terminal; otherwise nothing
  kJson,  ///< a JSON object per line
  kNone,
};

/// What every command of `verger-db` works with.
struct ToolContext {
  FileSystem& files;
  Clock& clock;
  Random& random;
  Log& log;
  std::ostream& out;      ///< results only
  std::ostream& err;      ///< errors and progress
  bool json = false;      ///< -o json
  bool terminal = false;  ///< `err` is a terminal
  ProgressStyle progress = ProgressStyle::kAuto;
};

using verger::kExitDone;
using verger::kExitFailed;
using verger::kExitRefused;
using verger::kExitStopped;
using verger::kExitUsage;
using verger::kExitWaiting;

/// The exit code an error ends the program with.
int exit_code_of(const Error& error);

/// The chosen command, ready to run: the exit code, or an error that main prints.
using Action = std::function<Result<int>(ToolContext&)>;

/// A command file has one function, `void add_NAME_command(CLI::App& program, Action& chosen)`. It
/// declares the subcommand and its options, and sets `chosen` in the subcommand's callback.

/// A check for CLI11: a whole number of 0 or more, with a message that says so.
std::string check_not_negative(const std::string& text);

/// The same for a whole number of 1 or more that a T holds.
template <class T>
std::string check_positive(const std::string& text) {
  if (number_from_text<T>(text).value_or(0) > 0) {
    return "";
  }
  return fmt::format("'{}' is not a whole number from 1 to {}", text,
                     std::numeric_limits<T>::max());
}

/// The same for a time such as 2024-05-01T00:00:00Z.
std::string check_time(const std::string& text);

/// The options that all commands on a database share.
struct DatabaseArguments {
  std::string directory;
  std::string index_directory;  ///< empty: DIR/index
  std::int32_t chunk_size = 0;  ///< 0: from the first chunk's header
  bool assume_stopped = false;
};

/// Declares DIR, --index, --chunk-size, and for writing commands --assume-stopped.
void add_database_arguments(CLI::App& command, DatabaseArguments& arguments, bool writes);

/// kInvalidArgument that says what DIR should be where it is not there, or is no database's.
Result<void> check_directory(ToolContext& tool, const Path& directory);

/// What has to hold before a command opens the database for writing: new files would be of use to
/// the server, and no truncation of processed records is pending. Error: kRefused.
Result<void> check_before_writing(ToolContext& tool, const DatabaseArguments& arguments);

/// How index tables are written, for commands that write some. Equal to the server's options.
struct IndexSettings {
  std::uint64_t max_mem_table_size = 1'000'000;
  int cache_depth = 16;
};

/// Declares --max-mem-table-size and --index-cache-depth.
void add_index_settings(CLI::App& command, IndexSettings& settings);

/// Of commands that read files without comparing them with their checksums.
inline constexpr std::string_view kNoChecksums = "not compared: `verger-db verify` compares them";
/// Of commands that write into a database, for --help.
inline constexpr std::string_view kWhoseFiles =
    "New files get owner, group and permissions of their directory: run it as that user, or as "
    "root;\nany other user is refused before the first change.\n";

/// Opens the database; everything in the log counts as committed.
Result<std::unique_ptr<streams::Database>> open_database(ToolContext& tool,
                                                         const DatabaseArguments& arguments,
                                                         log::Access access,
                                                         const IndexSettings& settings = {});

}  // namespace verger::tool
