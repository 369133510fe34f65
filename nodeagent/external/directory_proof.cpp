#include "nodeagent/external/directory_proof.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "engine/log/chunk.h"

namespace verger::external {
namespace {

namespace fs = std::filesystem;

/// Meaningful on one running kernel only.
struct DirectoryKey {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend auto operator<=>(const DirectoryKey&, const DirectoryKey&) = default;
};

std::optional<DirectoryKey> key_of(const Path& directory) {
  struct stat found{};
  if (::stat(directory.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) {
    return std::nullopt;
  }
  return DirectoryKey{found.st_dev, found.st_ino};
}

std::string first_line(const Path& file) {
  std::string line;
  if (auto opened = posix_file_system().open(file, OpenMode::kRead)) {
    Bytes bytes(64);
    if (const auto read = (*opened)->read_at(0, bytes)) {
      for (const auto byte : std::span(bytes).first(*read)) {
        if (const char c = static_cast<char>(byte); c > ' ') {
          line += c;
        }
      }
    }
  }
  return line;
}

/// `path` as a process sees it whose root directory is `root`; empty `root`: as we do.
Path below(const Path& root, const Path& path) {
  return root.empty() ? path : root / path.relative_path();
}

/// The directories in which a process has files of a log open. Empty: none, or it may not be seen.
std::set<DirectoryKey> log_directories_of(const Path& process) {
  std::set<DirectoryKey> out;
  std::error_code error;
  for (fs::directory_iterator at(process / "fd", error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;
    const auto target = fs::read_symlink(at->path(), gone);
    if (gone || !target.is_absolute() ||
        (!log::parse_chunk_file_name(target.filename().string()) && target.extension() != ".chk")) {
      continue;
    }
    if (const auto key = key_of(below(process / "root", target.parent_path()))) {
      out.insert(*key);
    }
  }
  return out;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// One of the two directories.
struct Compared {
  std::string_view option;  ///< as the options of agent and node are called
  Path ours;
  Path reported;  ///< empty: the node did not tell
  Path named;     ///< what it should tell; empty: the same path
};

enum class Evidence : std::uint8_t { kNone, kSame, kOther };

/// By the path alone, as seen from each of the roots.
Evidence by_path(const Compared& each, const std::vector<Path>& roots) {
  if (!each.named.empty() && !each.reported.empty()) {
    return each.named.lexically_normal() == each.reported.lexically_normal() ? Evidence::kSame
                                                                             : Evidence::kOther;
  }
  const auto ours = key_of(each.ours);
  if (!ours || !each.reported.is_absolute()) {
    return Evidence::kNone;
  }
  auto out = Evidence::kNone;
  for (const auto& root : roots) {
    if (const auto key = key_of(below(root, each.reported))) {
      if (*key == *ours) {
        return Evidence::kSame;
      }
      out = Evidence::kOther;
    }
  }
  return out;
}

Error another_directory(const Compared& each) {
  return {Errc::kConflict,
          fmt::format(
              "{0} of this agent is {1}, but that of its node is {2} (GET /info/options): correct "
              "{0} in the agent's file; where the server runs in a container and has the same "
              "directory under that path, say Server{0}: {2}",
              each.option, each.ours.string(), each.reported.string())};
}

Error no_proof(const Compared& each, const std::string& why_unknown) {
  const auto reported =
      each.reported.empty()
          ? fmt::format("the node does not tell its own ({})", why_unknown)
          : fmt::format("its node reports {}, which is no directory on this machine",
                        each.reported.string());
  return {Errc::kUnavailable,
          fmt::format("{0} of this agent is {1}, and nothing proves that it is its node's: {2}; "
                      "say Server{0} in the agent's file where the server sees another path, or "
                      "run the agent as the server's user, so that it sees which files that has "
                      "open",
                      each.option, each.ours.string(), reported)};
}

}  // namespace

std::string directory_identity(const Path& directory) {
  const auto key = key_of(directory);
  const auto kernel = key ? first_line("/proc/sys/kernel/random/boot_id") : std::string();
  return kernel.empty() ? std::string() : fmt::format("{}:{}:{}", kernel, key->device, key->inode);
}

Result<void> prove_directories(const ConfiguredDirectories& ours, const NodeDirectories& reported,
                               const Path& proc) {
  Compared database{"Db", ours.place.database, reported.database, ours.server_database};
  Compared index{"Index", ours.place.index_directory(), reported.index, ours.server_index};
  if (index.reported.empty() && !database.reported.empty()) {
    index.reported = database.reported / "index";
  }
  if (index.named.empty() && !database.named.empty() && ours.place.index.empty()) {
    index.named = database.named / "index";
  }
  const auto key = key_of(database.ours);
  if (!key) {
    return Error{Errc::kUnavailable,
                 fmt::format("Db of this agent is {}: there is no such directory, or it may not be "
                             "looked at",
                             database.ours.string())};
  }
  // The process that the node says it is. In a container of its own it may say any number, so that
  // only one that has a log open counts.
  std::vector<Path> roots{Path()};
  bool node_has_it_open = false;
  if (reported.process > 0 && reported.process != ::getpid()) {
    const auto process = proc / std::to_string(reported.process);
    const auto open = log_directories_of(process);
    if (!open.empty() && !open.contains(*key)) {
      return Error{Errc::kConflict,
                   fmt::format("Db of this agent is {}, but process {}, which is its node, has no "
                               "file in it open: its Db is {}",
                               database.ours.string(), reported.process,
                               reported.database.empty() ? "another one" : reported.database)};
    }
    if (!open.empty()) {
      node_has_it_open = true;
      roots.push_back(process / "root");
    }
  }
  const auto as_we_see = by_path(database, roots);
  if (as_we_see != Evidence::kSame && database.named.empty() && !node_has_it_open) {
    std::error_code error;
    for (fs::directory_iterator at(proc, error), end; !error && at != end; at.increment(error)) {
      if (is_number(at->path().filename().string()) &&
          log_directories_of(at->path()).contains(*key)) {
        roots.push_back(at->path() / "root");
      }
    }
  }
  const auto seen = by_path(database, roots);
  if (seen == Evidence::kOther && !node_has_it_open) {
    return another_directory(database);
  }
  if (seen == Evidence::kNone && !node_has_it_open) {
    return no_proof(database, reported.why_unknown);
  }
  switch (by_path(index, roots)) {
    case Evidence::kSame:
      return {};
    case Evidence::kOther:
      return another_directory(index);
    case Evidence::kNone:
      break;
  }
  // Without a database that any event was indexed in there may be none yet.
  const bool default_of_both = ours.place.index.empty() && reported.index.empty();
  return default_of_both ? Result<void>() : Result<void>(no_proof(index, reported.why_unknown));
}

Result<void> PositionWatch::compare(const Path& directory, std::int64_t reported,
                                    std::int64_t found, std::chrono::nanoseconds now) {
  constexpr std::chrono::seconds kTime{10};
  if (found < reported) {
    return Error{Errc::kConflict,
                 fmt::format("the log in {} is written to position {}, and its node's to {}: it is "
                             "not the directory that the node writes to",
                             directory.string(), found, reported)};
  }
  if (noted_ && now - noted_->at < kTime) {
    return {};
  }
  if (noted_ && reported < noted_->found) {
    return Error{
        Errc::kConflict,
        fmt::format("the log in {} was written to position {} {} s ago, and its node's is "
                    "only at {} now: it is not the directory that the node writes to",
                    directory.string(), noted_->found,
                    std::chrono::duration_cast<std::chrono::seconds>(now - noted_->at).count(),
                    reported)};
  }
  noted_ = Noted{.found = found, .at = now};
  return {};
}

}  // namespace verger::external
