#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/base/file_system.h"
#include "nodeagent/external/start_options.h"

/// Whether a server (25.0 and newer) keeps chunks in an archive, as an archiver or as a node that
/// reads from it: then chunk files of its directory are not its alone to change.
namespace verger::external {

/// The setting of a configuration file (YAML) that says so, with its line; empty: none does. Keys
/// compare without case, '-' and '_', as servers do.
std::string archive_in_config(std::string_view text);
/// The setting of a JSON file that says so, in the section that is the server's ("KurrentDB",
/// "EventStore"): a member, or a path with ':' as its name. Error: kCorruption: it is no JSON.
Result<std::string> archive_in_json(std::string_view text);
/// The option or variable that says so; empty: none does.
std::string archive_at_start(const StartOptions& options);

/// Why work on the chunk files of the server is left alone; empty: it has no archive. `options`:
/// with what it was started, nullopt: not known. `known_file`: its configuration file where it was
/// not started with one; empty: that of the servers' packages. The JSON files that servers read
/// beside it are read as well: "config/*.json", "kestrelsettings.json" and "logconfig.json" where
/// the packages have their configuration and where the server is installed. Which of two files
/// counts differs between versions: one that says so is enough. A file that is there and cannot be
/// read is a reason.
std::string archive_problem(FileSystem& files, const std::optional<StartOptions>& options,
                            const Path& known_file);

}  // namespace verger::external
