#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "nodeagent/external/database_look.h"

/// Whether an agent's directories are those of the node it looks after. An agent with another
/// node's directory would report that node's scavenges as its own node's, and the database id,
/// which is the same on all nodes of a cluster, does not show it.
namespace verger::external {

/// The same for all paths that lead to a directory, also through links and mounts, and different
/// for all other directories of the machine: running kernel, device, inode. Empty: there is no such
/// directory, or it cannot be seen.
std::string directory_identity(const Path& directory);

/// What the node reports of its directories (GET /info/options) and of its process (GET /stats).
struct NodeDirectories {
  std::string database{};     ///< empty: it did not tell
  std::string index{};        ///< empty: "index" in `database`
  std::int64_t process = 0;   ///< as numbered where it runs; 0: it did not tell
  std::string why_unknown{};  ///< why `database` is empty
};

/// Directories as the agent was configured.
struct ConfiguredDirectories {
  DatabasePlace place;
  /// The paths by which the server knows the same directories, where it sees other ones (in a
  /// container); empty: they are the same.
  std::string server_database{};
  std::string server_index{};
};

/// Compares what the node reports with what lies at the agent's paths, and with the files that
/// processes have open. Reads `proc` (/proc) and changes nothing; may block for some milliseconds.
/// Errors: kConflict: a directory is another one than the node's, both paths are in the message;
/// kUnavailable: there is no proof in either direction, the message says what to do.
Result<void> prove_directories(const ConfiguredDirectories& ours, const NodeDirectories& reported,
                               const Path& proc = "/proc");

/// Follows whether the log in a directory moves as the node's does: never below its earlier reports
/// (writer.chk is written before gossip shows it), and never where the node has not got ten
/// seconds later. Only for one process of the node: reset() when it is another one. One thread.
class PositionWatch {
 public:
  /// `reported`: the node's own writer checkpoint, from before `found` was read from writer.chk.
  /// Error: kConflict.
  Result<void> compare(const Path& directory, std::int64_t reported, std::int64_t found,
                       std::chrono::nanoseconds now);
  void reset() { noted_.reset(); }

 private:
  struct Noted {
    std::int64_t found = 0;
    std::chrono::nanoseconds at{};
  };
  std::optional<Noted> noted_;
};

}  // namespace verger::external
