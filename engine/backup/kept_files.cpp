#include "engine/backup/kept_files.h"

#include <fmt/format.h>
#include <string_view>

#include "engine/backup/detail/restore_place.h"
#include "engine/backup/manifest.h"
#include "engine/base/database_files.h"
#include "engine/log/pending_truncation.h"

namespace verger::backup {
namespace {

using detail::RestorePlace;
using Phase = RestorePlace::Phase;

constexpr std::string_view kKeptPrefix = "old-before-";

bool is_revert(Phase phase) { return phase == Phase::kReverting || phase == Phase::kReverted; }

Result<void> refuse_if_running(FileSystem& files, const RestoredDatabase& database) {
  if (database.assume_stopped || !is_machine_disk(files)) {
    return {};
  }
  VERGER_TRY(const auto writer, log::process_that_writes(database.directory));
  if (writer) {
    return Error{Errc::kRefused,
                 fmt::format("{}: process {} has it open for writing; stop the node first",
                             database.directory.string(), *writer)};
  }
  return {};
}

/// What is to be put back of a restore that was interrupted. nullopt: all that is needed was done.
Result<std::optional<RestorePlace::Progress>> after_unfinished(const RestorePlace& place,
                                                               RestorePlace::Progress found,
                                                               const Path& directory) {
  switch (found.phase) {
    case Phase::kStaging:
      VERGER_RETURN_IF_ERROR(place.discard());
      return std::optional<RestorePlace::Progress>();
    case Phase::kSwitching:
      found.phase = Phase::kReverting;
      found.from_kept = false;
      VERGER_RETURN_IF_ERROR(place.save(found));
      return std::optional(std::move(found));
    case Phase::kFinishing:
      if (!found.keep_old) {
        return Error{Errc::kRefused,
                     fmt::format("{}: the restore of {} is in place, and the files of before are "
                                 "being removed: finish it, by restoring that one again",
                                 directory.string(), found.generation)};
      }
      VERGER_RETURN_IF_ERROR(place.finish(found));
      break;
    case Phase::kReverting:
    case Phase::kReverted:
      return std::optional(std::move(found));
  }
  VERGER_TRY(auto old, place.kept_files(found.generation));
  return std::optional(RestorePlace::Progress{.generation = found.generation,
                                              .phase = Phase::kReverting,
                                              .keep_old = true,
                                              .old = std::move(old),
                                              .from_kept = true});
}

}  // namespace

Result<std::optional<UnfinishedRestore>> find_unfinished_restore(FileSystem& files,
                                                                 const Path& directory) {
  VERGER_TRY(const auto found, RestorePlace(files, directory, directory / "index").load());
  if (!found) {
    return std::optional<UnfinishedRestore>();
  }
  return std::optional(UnfinishedRestore{.generation = found->generation,
                                         .database_is_whole = found->phase == Phase::kStaging,
                                         .reverting = is_revert(found->phase)});
}

Result<std::vector<std::string>> generations_with_kept_files(FileSystem& files,
                                                             const Path& directory) {
  std::vector<std::string> found;
  const auto entries = files.list(directory);
  if (!entries) {
    return entries.error().code == Errc::kNotFound ? Result<std::vector<std::string>>(found)
                                                   : entries.error();
  }
  for (const auto& entry : *entries) {
    const std::string_view name = entry.name;
    if (entry.is_directory && name.starts_with(kKeptPrefix) &&
        is_generation_id(name.substr(kKeptPrefix.size()))) {
      found.emplace_back(name.substr(kKeptPrefix.size()));
    }
  }
  return found;
}

Result<bool> revert_restore(FileSystem& files, const RestoredDatabase& database,
                            const std::string& generation) {
  VERGER_TRY(const bool there, files.exists(database.directory));
  if (!there) {
    return false;
  }
  VERGER_RETURN_IF_ERROR(refuse_if_running(files, database));
  VERGER_TRY(const auto lock, files.lock(database.directory / "verger.lock"));
  const RestorePlace place(files, database.directory, database.index());
  VERGER_TRY(const auto unfinished, place.load());
  if (unfinished && unfinished->generation != generation) {
    return Error{Errc::kRefused,
                 fmt::format("{}: the {} of {} is unfinished: finish that one first",
                             database.directory.string(),
                             is_revert(unfinished->phase) ? "revert of the restore" : "restore",
                             unfinished->generation)};
  }
  if (unfinished) {
    VERGER_TRY(auto old, after_unfinished(place, *unfinished, database.directory));
    if (!old) {
      return true;
    }
    if (old->from_kept && !is_revert(unfinished->phase)) {
      VERGER_RETURN_IF_ERROR(place.save(*old));
    }
    VERGER_RETURN_IF_ERROR(place.put_back(*std::move(old)));
    return true;
  }
  auto old = place.kept_files(generation);
  if (!old) {
    return old.error().code == Errc::kNotFound ? Result<bool>(false) : old.error();
  }
  const RestorePlace::Progress begun{.generation = generation,
                                     .phase = Phase::kReverting,
                                     .keep_old = true,
                                     .old = *std::move(old),
                                     .from_kept = true};
  VERGER_RETURN_IF_ERROR(place.save(begun));
  VERGER_RETURN_IF_ERROR(place.put_back(begun));
  return true;
}

Result<std::uint64_t> discard_kept_files(FileSystem& files, const RestoredDatabase& database,
                                         const std::string& generation) {
  const RestorePlace place(files, database.directory, database.index());
  VERGER_TRY(const auto unfinished, place.load());
  if (unfinished && unfinished->generation == generation && unfinished->phase != Phase::kStaging) {
    return Error{
        Errc::kRefused,
        fmt::format("{}: the {} of {} is unfinished: finish it first", database.directory.string(),
                    is_revert(unfinished->phase) ? "revert of the restore" : "restore",
                    generation)};
  }
  return place.discard_kept(generation);
}

}  // namespace verger::backup
