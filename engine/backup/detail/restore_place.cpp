#include "engine/backup/detail/restore_place.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <set>

#include <nlohmann/json.hpp>

#include "engine/backup/detail/restore_files.h"
#include "engine/base/directories.h"
#include "engine/base/failpoint.h"

namespace verger::backup::detail {
namespace {

using Json = nlohmann::json;

/// By the number of RestorePlace::Phase.
constexpr std::array<std::string_view, 5> kPhaseNames = {"staging", "switching", "finishing",
                                                         "reverting", "reverted"};

NewFile checkpoint_file(std::string path, std::int64_t number) {
  NewFile file;
  file.content.emplace();
  append_le(*file.content, number);
  file.entry = {.path = std::move(path),
                .kind = FileKind::kCheckpoint,
                .size = sizeof number,
                .restored_size = sizeof number,
                .sha256 = sha256(*file.content),
                .identity = {}};
  return file;
}

/// The files directly in `directory`, by name.
Result<void> list_into(FileSystem& files, const Path& directory, const std::string& prefix,
                       std::vector<std::string>& found) {
  const auto entries = files.list(directory);
  if (!entries && entries.error().code == Errc::kNotFound) {
    return {};
  }
  if (!entries) {
    return entries.error();
  }
  for (const auto& entry : *entries) {
    if (!entry.is_directory) {
      found.push_back(prefix + entry.name);
    }
  }
  return {};
}

}  // namespace

std::vector<NewFile> new_files_of(const Manifest& manifest) {
  std::vector<NewFile> files;
  for (const auto& file : manifest.files) {
    if (file.path != "truncate.chk" && file.path != "epoch.chk") {
      files.push_back({.entry = file, .content = std::nullopt});
    }
  }
  const auto& at = manifest.positions;
  files.push_back(checkpoint_file("epoch.chk", at.restored_epoch.value()));
  // A database without records has nothing to be cut.
  files.push_back(checkpoint_file("truncate.chk", at.end.value() > 0 ? at.end.value() : -1));
  return files;
}

RestorePlace::RestorePlace(FileSystem& files, Path directory, Path index_directory)
    : disk_(files), database_{std::move(directory)}, index_{std::move(index_directory)} {}

const RestorePlace::Area& RestorePlace::area_of(std::string_view path) const {
  return is_of_index(path) ? index_ : database_;
}

std::string_view RestorePlace::name_in(std::string_view path) {
  return is_of_index(path) ? path.substr(kIndexPrefix.size()) : path;
}

Path RestorePlace::target(std::string_view path) const {
  return area_of(path).directory / name_in(path);
}
Path RestorePlace::staged(std::string_view path) const {
  return area_of(path).work() / "new" / name_in(path);
}
Path RestorePlace::old(std::string_view path) const {
  return area_of(path).work() / "old" / name_in(path);
}

Result<std::optional<RestorePlace::Progress>> RestorePlace::load() const {
  const auto bytes = read_file(disk_, state_path());
  if (!bytes && bytes.error().code == Errc::kNotFound) {
    return std::optional<Progress>();
  }
  if (!bytes) {
    return bytes.error();
  }
  try {
    const auto json = Json::parse(as_text(*bytes));
    Progress progress;
    progress.generation = json.at("generation").get<std::string>();
    const auto phase = json.at("phase").get<std::string>();
    const auto* const found = std::ranges::find(kPhaseNames, phase);
    if (found == kPhaseNames.end()) {
      throw std::out_of_range("no phase is called " + phase);
    }
    progress.phase = static_cast<Phase>(found - kPhaseNames.begin());
    progress.keep_old = json.at("keepOld").get<bool>();
    progress.old = json.at("old").get<std::vector<std::string>>();
    progress.from_kept = json.value("fromKept", false);
    progress.index_from_log = json.value("indexFromLog", false);
    return std::optional(std::move(progress));
  } catch (const std::exception& error) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: cannot be read ({}): it says how far a restore "
                             "is; remove the directory and restore again",
                             state_path().string(), error.what())};
  }
}

Result<void> RestorePlace::save(const Progress& progress) const {
  VERGER_RETURN_IF_ERROR(make_directories_durably(disk_, database_.work()));
  VERGER_RETURN_IF_ERROR(make_directories_durably(disk_, index_.work()));
  const Json json = {{"generation", progress.generation},
                     {"phase", kPhaseNames[static_cast<std::size_t>(progress.phase)]},
                     {"keepOld", progress.keep_old},
                     {"fromKept", progress.from_kept},
                     {"indexFromLog", progress.index_from_log},
                     {"old", progress.old}};
  const auto text = json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  return write_file_durably(disk_, state_path(), as_bytes(text));
}

Result<std::vector<std::string>> RestorePlace::database_files() const {
  std::vector<std::string> in_database;
  VERGER_RETURN_IF_ERROR(list_into(disk_, database_.directory, "", in_database));
  std::erase_if(in_database, [](const std::string& name) {
    return !is_chunk(name) && !is_checkpoint(name) && !name.ends_with(".tmp") &&
           !name.starts_with("kurrent.ddb");
  });
  std::vector<std::string> found = in_database;  // sorted: chunk 0 is the first chunk
  const std::string prefix(kIndexPrefix);
  for (const std::string folder : {"", "stream-existence/", "scavenging/"}) {
    VERGER_RETURN_IF_ERROR(list_into(disk_, index_.directory / folder, prefix + folder, found));
  }
  return found;
}

Result<void> RestorePlace::move_old(const std::string& path) const {
  const Path from = target(path);
  const Path to = old(path);
  VERGER_TRY(const bool moved, disk_.exists(to));
  if (moved) {
    return {};  // what has this name now is new
  }
  VERGER_RETURN_IF_ERROR(make_directories_durably(disk_, to.parent_path()));
  if (is_checkpoint(path)) {
    // It is replaced in one step: without writer.chk a server takes the directory for a new one.
    const auto bytes = read_file(disk_, from);
    if (!bytes) {
      return bytes.error().code == Errc::kNotFound ? Result<void>() : bytes.error();
    }
    return write_file_durably(disk_, to, *bytes);
  }
  auto renamed = disk_.rename(from, to);
  if (!renamed && renamed.error().code != Errc::kNotFound) {
    return renamed;
  }
  VERGER_RETURN_IF_ERROR(disk_.sync_directory(to.parent_path()));
  return disk_.sync_directory(from.parent_path());
}

Result<void> RestorePlace::place(const std::string& path) const {
  const Path from = staged(path);
  VERGER_TRY(const bool there, disk_.exists(from));
  if (!there) {
    return {};  // it is in place
  }
  const Path to = target(path);
  VERGER_RETURN_IF_ERROR(make_directories_durably(disk_, to.parent_path()));
  VERGER_RETURN_IF_ERROR(disk_.rename(from, to));
  return disk_.sync_directory(to.parent_path());
}

// What a server would find after a crash at any place: first the file of chunk 0 goes, without
// which no server starts on a writer.chk above 0, then the others; checkpoints are replaced, not
// removed; the new file of chunk 0 comes last.
Result<void> RestorePlace::switch_files(const Progress& progress,
                                        const std::vector<NewFile>& files) const {
  for (const auto& path : progress.old) {
    VERGER_RETURN_IF_ERROR(move_old(path));
    VERGER_FAILPOINT("restore.after-old");
  }
  std::set<std::string> placed;
  std::vector<std::string> chunks;
  std::vector<std::string> others;
  // The writer's checkpoint of an empty directory has to be there before any chunk.
  for (const auto& file : files) {
    const auto& path = file.entry.path;
    placed.insert(path);
    if (is_checkpoint(path)) {
      VERGER_RETURN_IF_ERROR(place(path));
      VERGER_FAILPOINT("restore.after-checkpoint");
    } else {
      (is_chunk(path) ? chunks : others).push_back(path);
    }
  }
  for (const auto& path : others) {
    VERGER_RETURN_IF_ERROR(place(path));
  }
  for (const auto& path : progress.old) {
    if (is_checkpoint(path) && !placed.contains(path)) {
      const auto removed = disk_.remove(target(path));
      if (!removed && removed.error().code != Errc::kNotFound) {
        return removed;
      }
    }
  }
  std::ranges::sort(chunks, std::ranges::greater());
  for (const auto& path : chunks) {
    VERGER_RETURN_IF_ERROR(place(path));
    VERGER_FAILPOINT("restore.after-chunk");
  }
  return disk_.sync_directory(database_.directory);
}

Result<void> RestorePlace::finish(const Progress& progress) const {
  if (progress.keep_old) {
    VERGER_RETURN_IF_ERROR(list_kept(progress));
  }
  // The list lies in the database's directory, which therefore comes last.
  for (const auto* area : {&index_, &database_}) {
    const Path old_files = area->work() / "old";
    VERGER_TRY(const bool there, disk_.exists(old_files));
    if (there && progress.keep_old) {
      VERGER_RETURN_IF_ERROR(disk_.rename(old_files, area->kept(progress.generation)));
      VERGER_RETURN_IF_ERROR(disk_.sync_directory(area->directory));
      VERGER_FAILPOINT("restore.after-kept");
    } else if (there) {
      VERGER_RETURN_IF_ERROR(remove_tree(disk_, old_files));
    }
  }
  return discard();
}

Result<void> RestorePlace::discard() const {
  // The state is the last to go: until then a repeated restore finds it.
  VERGER_RETURN_IF_ERROR(remove_tree(disk_, index_.work()));
  VERGER_RETURN_IF_ERROR(remove_tree(disk_, database_.work() / "new"));
  VERGER_RETURN_IF_ERROR(remove_tree(disk_, database_.work()));
  VERGER_TRY(const bool there, disk_.exists(index_.directory));
  if (there) {
    VERGER_RETURN_IF_ERROR(disk_.sync_directory(index_.directory));
  }
  return disk_.sync_directory(database_.directory);
}

}  // namespace verger::backup::detail
