#include "engine/online/shadow.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/file_links.h"
#include "engine/base/sqlite_copy.h"
#include "engine/index/index_map.h"
#include "engine/log/pending_truncation.h"
#include "engine/log/transaction_log.h"
#include "engine/scavenge/scavenge_state.h"

namespace verger::online_scavenge {
namespace {

constexpr std::string_view kOfferedSuffix = ".online.tmp";
/// A server merges and deletes index tables, and completes chunks, while it is looked at.
constexpr int kAttempts = 10;
constexpr std::size_t kCopiedAtOnce = std::size_t{4} << 20U;

Result<void> remove_if_there(FileSystem& files, const Path& path) {
  auto removed = files.remove(path);
  return removed || removed.error().code == Errc::kNotFound ? Result<void>() : removed;
}

Result<void> remove_below(FileSystem& files, const Path& directory) {
  VERGER_TRY(const auto entries, files.list(directory));
  for (const auto& entry : entries) {
    if (entry.is_directory) {
      VERGER_RETURN_IF_ERROR(remove_below(files, directory / entry.name));
    } else {
      VERGER_RETURN_IF_ERROR(remove_if_there(files, directory / entry.name));
    }
  }
  return remove_if_there(files, directory);
}

/// Again where a file went while it was looked at.
template <class Work>
Result<void> repeated(const Path& directory, Work work) {
  Result<void> outcome;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    outcome = work();
    if (outcome || outcome.error().code != Errc::kNotFound) {
      return outcome;
    }
  }
  return Error{Errc::kUnavailable, fmt::format("{}: the files change too fast: {}",
                                               directory.string(), outcome.error().message)};
}

/// As links in another file system would fail.
Result<void> link_into(FileSystem& files, const Path& from, const Path& to) {
  auto linked = link_file(files, from, to);
  if (!linked && linked.error().code == Errc::kExists) {
    VERGER_RETURN_IF_ERROR(files.remove(to));
    linked = link_file(files, from, to);
  }
  return linked;
}

}  // namespace

Path shadow_directory(const Path& database) { return database / ".verger-online"; }
Path shadow_index(const Path& database) { return shadow_directory(database) / "index"; }
std::string offered_name(std::string_view uuid) {
  return std::string(uuid) + std::string(kOfferedSuffix);
}

Result<void> remove_shadow(FileSystem& files, const Path& database) {
  VERGER_TRY(const auto entries, files.list(database));
  bool removed = false;
  for (const auto& entry : entries) {
    if (!entry.is_directory && entry.name.ends_with(kOfferedSuffix)) {
      VERGER_RETURN_IF_ERROR(remove_if_there(files, database / entry.name));
      removed = true;
    }
  }
  const auto shadow = shadow_directory(database);
  VERGER_TRY(const bool there, files.exists(shadow));
  if (there) {
    VERGER_RETURN_IF_ERROR(remove_below(files, shadow));
    removed = true;
  }
  return removed ? files.sync_directory(database) : Result<void>();
}

ShadowJob::ShadowJob(const Machine& machine, DatabasePlace place)
    : machine_(machine), place_(std::move(place)) {}

Result<StepOutcome> ShadowJob::step(Budget /*budget*/) {
  switch (part_) {
    case Part::kClear:
      VERGER_RETURN_IF_ERROR(clear());
      part_ = Part::kIndex;
      break;
    case Part::kIndex:
      // Before the log: a map is never of more than the log holds.
      VERGER_RETURN_IF_ERROR(repeated(place_.index_directory(), [this] { return link_index(); }));
      part_ = Part::kState;
      break;
    case Part::kState:
      VERGER_RETURN_IF_ERROR(copy_state());
      part_ = Part::kLog;
      break;
    case Part::kLog:
      VERGER_RETURN_IF_ERROR(repeated(place_.database, [this] { return link_log(); }));
      return StepOutcome{StepOutcome::Kind::kDone, {}};
  }
  return StepOutcome{};
}

Result<void> ShadowJob::clear() {
  auto& files = machine_.files;
  VERGER_TRY(const auto pending, log::pending_truncation(files, place_.database));
  if (pending.value() >= 0) {
    return Error{Errc::kRefused,
                 fmt::format("{}: the log is to be cut to {} at the node's next start",
                             place_.database.string(), pending)};
  }
  VERGER_RETURN_IF_ERROR(remove_shadow(files, place_.database));
  return files.make_directories(shadow_index(place_.database));
}

Result<void> ShadowJob::link_index() {
  auto& files = machine_.files;
  const auto from = place_.index_directory();
  const auto to = shadow_index(place_.database);
  VERGER_TRY(const auto map, index::load_index_map(files, from));
  for (const auto& line : map.tables) {
    VERGER_RETURN_IF_ERROR(link_into(files, from / line.file, to / line.file));
    const auto filter = line.file + ".bloomfilter";
    auto linked = link_into(files, from / filter, to / filter);
    if (!linked && linked.error().code != Errc::kNotFound) {
      return linked;  // a table may be without
    }
    ++progress_.done;
  }
  return index::save_index_map(files, to, map, machine_.random);
}

Result<void> ShadowJob::copy_state() {
  auto& files = machine_.files;
  const auto from = scavenge::ScavengeState::path_in(place_.index_directory());
  const auto to = scavenge::ScavengeState::path_in(shadow_index(place_.database));
  VERGER_RETURN_IF_ERROR(files.make_directories(to.parent_path()));
  VERGER_TRY(const bool there, files.exists(from));
  if (!there) {
    return {};
  }
  VERGER_RETURN_IF_ERROR(sqlite::copy_database(files, from, files, to));
  VERGER_TRY(const auto size, files.file_size(to));
  progress_.bytes += size;
  ++progress_.done;
  return {};
}

Result<void> ShadowJob::link_log() {
  auto& files = machine_.files;
  const auto shadow = shadow_directory(place_.database);
  VERGER_TRY(const auto log, log::TransactionLog::open(files, place_.database, {}, machine_.clock,
                                                       machine_.random, machine_.log));
  const auto chunks = log->chunks();
  const auto end = log->end();
  const auto checkpoints = log->checkpoints();
  if (checkpoints.epoch >= end) {
    return Error{Errc::kNotFound, "an epoch began meanwhile"};  // again
  }
  progress_.total = progress_.done + chunks.size();
  for (const auto& chunk : chunks) {
    const auto name = chunk->path().filename();
    ++progress_.done;
    if (chunk->completed()) {
      VERGER_RETURN_IF_ERROR(link_into(files, chunk->path(), shadow / name));
      continue;
    }
    // Of the open one what was written when its end was read; the rest of the file is not looked
    // at, and takes no space.
    VERGER_TRY(const auto copy, files.open(shadow / name, OpenMode::kCreate));
    const auto used = static_cast<std::uint64_t>(log::kChunkHeaderSize + chunk->data_size());
    Bytes buffer(std::min<std::uint64_t>(kCopiedAtOnce, used));
    for (std::uint64_t at = 0; at < used; at += buffer.size()) {
      const auto piece =
          MutableBytes(buffer).first(std::min<std::uint64_t>(buffer.size(), used - at));
      VERGER_RETURN_IF_ERROR(chunk->read_raw(at, piece));
      VERGER_RETURN_IF_ERROR(copy->write_at(at, piece));
      progress_.bytes += piece.size();
    }
    VERGER_RETURN_IF_ERROR(copy->resize(
        std::max<std::uint64_t>(used, static_cast<std::uint64_t>(log->chunk_size()) +
                                          log::kChunkHeaderSize + log::kChunkFooterSize)));
  }
  VERGER_RETURN_IF_ERROR(write_checkpoint("writer.chk", end.value()));
  VERGER_RETURN_IF_ERROR(write_checkpoint("chaser.chk", std::min(checkpoints.chaser, end).value()));
  VERGER_RETURN_IF_ERROR(write_checkpoint("epoch.chk", checkpoints.epoch.value()));
  VERGER_RETURN_IF_ERROR(write_checkpoint("proposal.chk", checkpoints.proposal));
  return write_checkpoint("truncate.chk", -1);
}

Result<void> ShadowJob::write_checkpoint(std::string_view name, std::int64_t value) {
  std::array<std::byte, 8> bytes{};
  store_le(bytes.data(), value);
  VERGER_TRY(const auto file,
             machine_.files.open(shadow_directory(place_.database) / name, OpenMode::kCreate));
  return file->write_at(0, bytes);
}

}  // namespace verger::online_scavenge
