// The way back: the part of RestorePlace that handles the files of before.
#include <algorithm>
#include <fmt/format.h>
#include <set>

#include <nlohmann/json.hpp>

#include "engine/backup/detail/restore_files.h"
#include "engine/backup/detail/restore_place.h"
#include "engine/base/directories.h"
#include "engine/base/failpoint.h"

namespace verger::backup::detail {
namespace {

using KeptJson = nlohmann::ordered_json;

/// In `old-before-<generation>` of the database directory: what was kept. The first to go when it
/// is discarded, so that no part of it is ever put back.
constexpr std::string_view kListName = "kept.json";

}  // namespace

Path RestorePlace::kept(const std::string& generation) const { return database_.kept(generation); }

Result<void> RestorePlace::list_kept(const Progress& progress) const {
  VERGER_TRY(const bool done, disk_.exists(database_.kept(progress.generation)));
  if (done) {
    return {};
  }
  auto files = KeptJson::array();
  for (const auto& path : progress.old) {
    auto size = disk_.file_size(old(path));
    if (!size && size.error().code == Errc::kNotFound &&
        area_of(path).directory != database_.directory) {
      // The index's directory has its lasting name already.
      size = disk_.file_size(area_of(path).kept(progress.generation) / name_in(path));
    }
    if (!size && size.error().code == Errc::kNotFound) {
      continue;  // it was gone before it was moved
    }
    if (!size) {
      return size.error();
    }
    files.push_back({{"path", path}, {"size", *size}});
  }
  const KeptJson json = {{"generation", progress.generation}, {"files", files}};
  const Path directory = database_.work() / "old";
  VERGER_RETURN_IF_ERROR(make_directories_durably(disk_, directory));
  const auto text = json.dump(1, ' ', false, KeptJson::error_handler_t::replace) + "\n";
  return write_file_durably(disk_, directory / kListName, as_bytes(text));
}

Result<std::vector<std::string>> RestorePlace::kept_files(const std::string& generation) const {
  const Path directory = kept(generation);
  VERGER_TRY(const bool there, disk_.exists(directory));
  if (!there) {
    return Error{Errc::kNotFound, fmt::format("{}: a restore of {} kept no files here",
                                              database_.directory.string(), generation)};
  }
  const auto bytes = read_file(disk_, directory / kListName);
  if (!bytes) {
    return bytes.error().code == Errc::kNotFound
               ? Error{Errc::kCorruption,
                       fmt::format("{}: has no {}: its removal has begun, so that it cannot be put "
                                   "back; discard it",
                                   directory.string(), kListName)}
               : bytes.error();
  }
  const auto json = KeptJson::parse(as_text(*bytes), nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> found;
  try {
    for (const auto& file : json.at("files")) {
      auto path = file.at("path").get<std::string>();
      const Path at = area_of(path).kept(generation) / name_in(path);
      const auto size = disk_.file_size(at);
      if (!size || *size != file.at("size").get<std::uint64_t>()) {
        return Error{Errc::kCorruption,
                     fmt::format("{}: {}; the files of before are no longer complete, so none is "
                                 "put back",
                                 at.string(), size ? "has another size" : "is missing")};
      }
      found.push_back(std::move(path));
    }
  } catch (const std::exception& error) {
    return Error{Errc::kCorruption, fmt::format("{}: cannot be read ({})",
                                                (directory / kListName).string(), error.what())};
  }
  return found;
}

/// The file of chunk 0 first: without it no server starts.
Result<void> RestorePlace::remove_new(const Progress& progress) const {
  const std::set<std::string> come_back(progress.old.begin(), progress.old.end());
  VERGER_TRY(const auto present, database_files());
  std::vector<std::string> others;
  for (const auto& path : present) {
    VERGER_TRY(const bool waits, disk_.exists(old(path)));
    if (come_back.contains(path) && !waits) {
      continue;  // it is back, or was never moved away
    }
    if (!is_chunk(path)) {
      others.push_back(path);
      continue;
    }
    VERGER_RETURN_IF_ERROR(disk_.remove(target(path)));
    VERGER_RETURN_IF_ERROR(disk_.sync_directory(database_.directory));
    VERGER_FAILPOINT("revert.after-chunk-removed");
  }
  std::set<Path> changed;
  for (const auto& path : others) {
    // Checkpoints that come back are replaced in one step.
    if (!is_checkpoint(path) || !come_back.contains(path)) {
      VERGER_RETURN_IF_ERROR(disk_.remove(target(path)));
      changed.insert(target(path).parent_path());
    }
  }
  for (const auto& directory : changed) {
    VERGER_RETURN_IF_ERROR(disk_.sync_directory(directory));
  }
  return {};
}

Result<void> RestorePlace::move_back(const std::string& path) const {
  const Path from = old(path);
  VERGER_TRY(const bool there, disk_.exists(from));
  if (!there) {
    return {};
  }
  const Path to = target(path);
  VERGER_RETURN_IF_ERROR(make_directories_durably(disk_, to.parent_path()));
  VERGER_RETURN_IF_ERROR(disk_.rename(from, to));
  VERGER_RETURN_IF_ERROR(disk_.sync_directory(to.parent_path()));
  VERGER_FAILPOINT("revert.after-file");
  return {};
}

// What a server would find after a crash at any place: the new file of chunk 0 goes first, the old
// one comes last, and in between no server starts on a writer.chk above 0. Once only that file is
// missing, what a server may have written is no longer removed.
Result<void> RestorePlace::put_back(Progress progress) const {
  if (progress.from_kept && progress.phase == Phase::kReverting) {
    for (const auto* area : {&index_, &database_}) {
      const Path from = area->kept(progress.generation);
      VERGER_TRY(const bool there, disk_.exists(from));
      if (there) {
        VERGER_RETURN_IF_ERROR(disk_.rename(from, area->work() / "old"));
        VERGER_RETURN_IF_ERROR(disk_.sync_directory(area->work()));
        VERGER_RETURN_IF_ERROR(disk_.sync_directory(area->directory));
      }
    }
  }
  std::vector<std::string> chunks;
  for (const auto& path : progress.old) {
    if (is_chunk(path)) {
      chunks.push_back(path);
    }
  }
  std::ranges::sort(chunks);
  if (progress.phase == Phase::kReverting) {
    VERGER_RETURN_IF_ERROR(remove_new(progress));
    for (const auto& path : progress.old) {
      if (!is_chunk(path)) {
        VERGER_RETURN_IF_ERROR(move_back(path));
      }
    }
    for (std::size_t i = chunks.size(); i-- > 1;) {
      VERGER_RETURN_IF_ERROR(move_back(chunks[i]));
    }
    progress.phase = Phase::kReverted;
    VERGER_RETURN_IF_ERROR(save(progress));
    VERGER_FAILPOINT("revert.before-first-chunk");
  }
  if (!chunks.empty()) {
    VERGER_RETURN_IF_ERROR(move_back(chunks.front()));
  }
  VERGER_FAILPOINT("revert.before-finish");
  return discard();
}

Result<std::uint64_t> RestorePlace::discard_kept(const std::string& generation) const {
  std::uint64_t bytes = 0;
  for (const auto* area : {&database_, &index_}) {
    VERGER_TRY(const auto here, tree_bytes(disk_, area->kept(generation)));
    bytes += here;
  }
  const auto unlisted = disk_.remove(kept(generation) / kListName);
  if (unlisted) {
    VERGER_RETURN_IF_ERROR(disk_.sync_directory(kept(generation)));
    VERGER_FAILPOINT("discard.after-list");
  } else if (unlisted.error().code != Errc::kNotFound) {
    return unlisted.error();
  }
  // The database's comes last: it shows that there is something left to remove.
  for (const auto* area : {&index_, &database_}) {
    VERGER_TRY(const bool there, disk_.exists(area->kept(generation)));
    if (there) {
      VERGER_RETURN_IF_ERROR(remove_tree(disk_, area->kept(generation)));
      VERGER_RETURN_IF_ERROR(disk_.sync_directory(area->directory));
    }
  }
  return bytes;
}

}  // namespace verger::backup::detail
