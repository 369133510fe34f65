#include "nodeagent/operations/drill/drill_place.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/directories.h"
#include "engine/base/quantities.h"
#include "engine/log/pending_truncation.h"
#include "nodeagent/external/child_process.h"

namespace verger::agent {
namespace {

using nlohmann::json;

/// The file that says that a directory is a drill's, and which process works in it.
constexpr std::string_view kNoteName = "verger-drill.json";
constexpr std::string_view kDirectoryPrefix = "drill-";
constexpr std::uint64_t kMostReserve = 1ULL << 30U;
constexpr std::uint64_t kReservePart = 20;

Result<void> write_note(FileSystem& files, const Path& directory,
                        const std::optional<external::ServerProcess>& process) {
  auto note = json::object();
  if (process) {
    note["process"] = process->id;
    note["started"] = process->started;
  }
  return write_file_durably(files, directory / kNoteName, as_bytes(note.dump()));
}

Result<void> remove_below(FileSystem& files, const Path& directory) {
  VERGER_TRY(const auto entries, files.list(directory));
  for (const auto& entry : entries) {
    if (entry.is_directory) {
      VERGER_RETURN_IF_ERROR(remove_below(files, directory / entry.name));
      VERGER_RETURN_IF_ERROR(files.remove(directory / entry.name));
    } else if (entry.name != kNoteName) {
      VERGER_RETURN_IF_ERROR(files.remove(directory / entry.name));
    }
  }
  return {};
}

}  // namespace

Result<void> DrillPlace::remove_leftover(FileSystem& files, const Path& directory) {
  const auto bytes = read_file(files, directory / kNoteName);
  if (!bytes) {
    // Not a drill's, or of one that was killed before it began.
    return bytes.error().code == Errc::kNotFound ? Result<void>() : bytes.error();
  }
  const auto note = json::parse(as_text(*bytes), nullptr, /*allow_exceptions=*/false);
  if (note.is_object() && note.contains("process")) {
    external::kill_group_of({.id = note.value("process", std::int64_t{0}),
                             .started = note.value("started", std::uint64_t{0})});
  }
  // A server may be another process than the command that started it.
  VERGER_TRY(const auto writer, external::find_server(directory / "db"));
  if (writer) {
    external::kill_group_of(*writer);
  }
  VERGER_RETURN_IF_ERROR(remove_below(files, directory));
  VERGER_RETURN_IF_ERROR(files.remove(directory / kNoteName));
  return files.remove(directory);
}

Result<std::unique_ptr<DrillPlace>> DrillPlace::open(FileSystem& files, const Path& scratch,
                                                     std::string_view generation) {
  const auto entries = files.list(scratch);
  if (!entries) {
    return entries.error().within("the scratch directory of drills (--backup-scratch)");
  }
  auto lock = files.lock(scratch / "verger-drill.lock");
  if (!lock) {
    return lock.error().code == Errc::kRefused
               ? Error{Errc::kRefused,
                       fmt::format("{}: another drill is under way there", scratch.string())}
               : lock.error();
  }
  for (const auto& entry : *entries) {
    if (entry.is_directory && entry.name.starts_with(kDirectoryPrefix)) {
      VERGER_RETURN_IF_ERROR(remove_leftover(files, scratch / entry.name));
    }
  }
  const Path directory = scratch / fmt::format("{}{}", kDirectoryPrefix, generation);
  VERGER_RETURN_IF_ERROR(make_directories_durably(files, directory));
  VERGER_RETURN_IF_ERROR(write_note(files, directory, std::nullopt));
  return std::unique_ptr<DrillPlace>(new DrillPlace(files, directory, *std::move(lock)));
}

Result<void> DrillPlace::check_space(std::uint64_t bytes) const {
  VERGER_TRY(const auto space, files_.space(directory_));
  const auto need = bytes + std::min(kMostReserve, space.total / kReservePart);
  if (space.available < need) {
    return Error{
        Errc::kNoSpace,
        fmt::format("{}: the drill needs {} there, with a reserve, and {} are free",
                    directory_.parent_path().string(), human_bytes(static_cast<std::int64_t>(need)),
                    human_bytes(static_cast<std::int64_t>(space.available)))};
  }
  return {};
}

Result<void> DrillPlace::note_process(const external::ServerProcess& process) {
  return write_note(files_, directory_, process);
}

Result<void> DrillPlace::remove() { return remove_leftover(files_, directory_); }

}  // namespace verger::agent
