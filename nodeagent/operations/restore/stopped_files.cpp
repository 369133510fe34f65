#include "nodeagent/operations/restore/stopped_files.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "engine/log/chunk.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/server_return.h"

namespace verger::agent {
namespace {

/// Of a database, of a restore, or of a fresh file system.
bool may_be_beside_chunks(const DirectoryEntry& entry) {
  constexpr std::array<std::string_view, 4> kNames{"verger.lock", "index", "lost+found",
                                                   "verger-restore"};
  const std::string_view name = entry.name;
  return std::ranges::find(kNames, name) != kNames.end() || name.ends_with(".chk") ||
         name.ends_with(".chk.tmp") || name.starts_with("old-before-");
}

}  // namespace

Result<void> check_database_directory(FileSystem& files, const Path& directory) {
  const auto entries = files.list(directory);
  if (!entries && entries.error().code != Errc::kNotFound) {
    return entries.error();
  }
  if (!entries) {
    VERGER_TRY(const bool parent, files.exists(directory.parent_path()));
    return parent ? Result<void>()
                  : Error{Errc::kConflict,
                          fmt::format("{}: neither this directory nor the one above it is there: "
                                      "is a file system not mounted, or Db wrong in the agent's "
                                      "file?",
                                      directory.string())};
  }
  const bool has_chunks = std::ranges::any_of(*entries, [](const DirectoryEntry& entry) {
    return log::parse_chunk_file_name(entry.name).has_value();
  });
  if (has_chunks || std::ranges::all_of(*entries, may_be_beside_chunks)) {
    return {};
  }
  return Error{Errc::kConflict,
               fmt::format("{}: holds other files and no database: is Db right in the agent's "
                           "file? A restore needs a database's directory, or an empty one",
                           directory.string())};
}

net::awaitable<Result<void>> server_is_stopped(LocalNode node) {
  VERGER_CO_RETURN_IF_ERROR(needs_service_control(node));
  if (node.inspection() != nullptr) {
    co_return Error{Errc::kRefused, "the server runs; it has to be stopped first (stop_server)"};
  }
  VERGER_CO_TRY(const auto free, co_await node.offline->files_are_free());
  if (!free) {
    co_return Error{Errc::kRefused,
                    fmt::format("{}: a process has files of it open; the server has to be stopped "
                                "first (stop_server)",
                                node.offline->place().database.string())};
  }
  if (auto why = node.offline->wrong_user(); !why.empty()) {
    co_return Error{Errc::kUnauthorized, std::move(why)};
  }
  co_return check_database_directory(node.offline->machine().files, node.offline->place().database);
}

}  // namespace verger::agent
