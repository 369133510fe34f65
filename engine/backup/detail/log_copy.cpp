#include "engine/backup/detail/log_copy.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "engine/backup/detail/index_copy.h"
#include "engine/log/chunk_size.h"

namespace verger::backup::detail {
namespace {

/// As long as an unfinished chunk's file is: what the server cuts it to, and our own makes it.
std::uint64_t unfinished_file_size(std::int32_t chunk_size) {
  return log::completed_file_size(static_cast<std::uint64_t>(chunk_size));
}

/// Header and footer, with the MD5 of all the file: they tell a completed chunk from any other one.
Result<std::string> chunk_identity(const log::Chunk& chunk) {
  Bytes bytes(std::size_t{log::kChunkHeaderSize} + log::kChunkFooterSize);
  const auto both = MutableBytes(bytes);
  VERGER_RETURN_IF_ERROR(chunk.read_raw(0, both.first(log::kChunkHeaderSize)));
  VERGER_RETURN_IF_ERROR(chunk.read_raw(chunk.file_size() - log::kChunkFooterSize,
                                        both.subspan(log::kChunkHeaderSize)));
  return to_hex(sha256(bytes));
}

/// Of the chunk that is written to, up to `size`: its header, and its newest records with their
/// times and ids. The log only grows, and where it was cut other records follow.
Result<std::string> tail_identity(const log::Chunk& chunk, std::uint64_t size) {
  constexpr std::uint64_t kTail = 64U << 10U;
  const auto records = size - log::kChunkHeaderSize;
  Bytes bytes(log::kChunkHeaderSize + std::min(records, kTail));
  const auto both = MutableBytes(bytes);
  const auto tail = both.subspan(log::kChunkHeaderSize);
  VERGER_RETURN_IF_ERROR(chunk.read_raw(0, both.first(log::kChunkHeaderSize)));
  VERGER_RETURN_IF_ERROR(chunk.read_raw(size - tail.size(), tail));
  return to_hex(sha256(bytes));
}

/// Without epoch.chk they are looked for in the whole log, which is not worth its reading here.
std::vector<log::Epoch> epochs_of(const log::TransactionLog& log) {
  return log.checkpoints().epoch.value() < 0 ? std::vector<log::Epoch>() : log.epochs().all();
}

std::optional<log::Epoch> epoch_below(const std::vector<log::Epoch>& epochs, LogPosition end) {
  const auto after = std::ranges::lower_bound(epochs, end, {}, &log::Epoch::position);
  return after == epochs.begin() ? std::nullopt : std::optional(*std::prev(after));
}

/// Where one of them is not known nothing can be said.
bool same_epoch(const std::optional<log::Epoch>& a, const std::optional<log::Epoch>& b) {
  return !a || !b || a->id == b->id;
}

}  // namespace

Result<std::optional<Bytes>> LogCopy::read_checkpoint(std::string_view name) {
  const Path path = source_.directory / name;
  auto bytes = read_file(disk_, path);
  if (!bytes && bytes.error().code == Errc::kNotFound) {
    return std::optional<Bytes>();
  }
  if (!bytes) {
    return bytes.error();
  }
  if (bytes->size() != sizeof(std::int64_t)) {
    return Error{Errc::kCorruption, fmt::format("{}: a checkpoint has 8 bytes, this file {}",
                                                path.string(), bytes->size())};
  }
  return std::optional(*std::move(bytes));
}

Result<LogPosition> LogCopy::chaser() {
  VERGER_TRY(const auto bytes, read_checkpoint("chaser.chk"));
  return LogPosition(bytes ? load_le<std::int64_t>(bytes->data()) : 0);
}

Result<std::optional<std::int64_t>> LogCopy::copy_checkpoint(std::string_view name) {
  VERGER_TRY(const auto bytes, read_checkpoint(name));
  if (!bytes) {
    return std::optional<std::int64_t>();
  }
  VERGER_TRY(const auto digest, store_bytes(store_, *bytes));
  checkpoints_.push_back({.path = std::string(name),
                          .kind = FileKind::kCheckpoint,
                          .size = bytes->size(),
                          .restored_size = bytes->size(),
                          .sha256 = digest,
                          .identity = {}});
  return std::optional(load_le<std::int64_t>(bytes->data()));
}

Result<void> LogCopy::copy_checkpoints() {
  checkpoints_.clear();
  // The writer's after those that must not lie above it: they only grow.
  VERGER_TRY(const auto chaser, copy_checkpoint("chaser.chk"));
  VERGER_TRY(const auto epoch, copy_checkpoint("epoch.chk"));
  VERGER_TRY(const auto writer, copy_checkpoint("writer.chk"));
  VERGER_TRY(const auto proposal, copy_checkpoint("proposal.chk"));
  positions_.chaser = LogPosition(chaser.value_or(0));
  positions_.epoch = LogPosition(epoch.value_or(-1));
  positions_.writer = LogPosition(writer.value_or(0));
  positions_.proposal = static_cast<std::int32_t>(proposal.value_or(-1));
  if (positions_.chaser.value() < 0 || positions_.chaser > positions_.writer) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: {} is not between 0 and writer.chk, {}: such a database cannot "
                             "be restored",
                             (source_.directory / "chaser.chk").string(), positions_.chaser,
                             positions_.writer)};
  }
  return {};
}

Result<std::unique_ptr<log::TransactionLog>> LogCopy::open_log() {
  return log::TransactionLog::open(disk_, source_.directory, log::LogOptions{}, clock_, random_,
                                   log_);
}

Result<std::string> LogCopy::identity() {
  VERGER_TRY(const auto log, open_log());
  const auto writer = log->checkpoints().writer;
  const auto chunks = log->chunks();
  if (chunks.empty() || chunks.back()->start_position() > writer) {
    return std::string();
  }
  const auto& newest = *chunks.back();
  const auto below = static_cast<std::uint64_t>(writer - newest.start_position());
  VERGER_TRY(const auto records, newest.completed()
                                     ? chunk_identity(newest)
                                     : tail_identity(newest, log::kChunkHeaderSize + below));
  return fmt::format("{} {}", writer, records);
}

Result<bool> LogCopy::continues(const Manifest& earlier) {
  const auto newest = std::ranges::find(earlier.files.rbegin(), earlier.files.rend(),
                                        FileKind::kChunk, &BackedUpFile::kind);
  if (newest == earlier.files.rend() || newest->identity.empty()) {
    return false;
  }
  VERGER_TRY(const auto log, open_log());
  for (const auto& chunk : log->chunks()) {
    if (chunk->path().filename() != newest->path || chunk->file_size() < newest->size) {
      continue;
    }
    // Of a chunk that was not completed the tail was noted; that is in the completed one, too.
    const auto seen = newest->restored_size == newest->size && chunk->completed()
                          ? chunk_identity(*chunk)
                          : tail_identity(*chunk, newest->size);
    return seen && *seen == newest->identity;
  }
  return false;
}

Result<void> LogCopy::note_chunks() {
  VERGER_TRY(const auto now, open_log());
  noted_.clear();
  for (const auto& chunk : now->chunks()) {
    noted_.push_back({chunk->path(), chunk->header().chunk_id});
  }
  return {};
}

Result<void> LogCopy::select_chunks(CopyQueue& queue, bool whole_log, std::int64_t max_truncation) {
  VERGER_TRY(opened_, open_log());
  positions_.chunk_size = opened_->chunk_size();
  positions_.end = whole_log ? positions_.writer : positions_.chaser;
  const auto behind = positions_.writer - positions_.end;
  if (behind > max_truncation) {
    return Error{Errc::kUnavailable,
                 fmt::format("{}: the node has {} bytes of its log still to process (chaser.chk is "
                             "behind writer.chk): a server would refuse to start on a restored "
                             "copy, which begins with cutting them off; wait until it has caught "
                             "up, and repeat the backup",
                             source_.directory.string(), behind)};
  }
  selected_.clear();
  selected_bytes_ = 0;
  for (const auto& chunk : opened_->chunks()) {
    // One that begins at or behind the writer's checkpoint was begun after that was copied, and a
    // restore that has it fails: it is left out.
    if (chunk->start_position() >= positions_.writer) {
      continue;
    }
    if (chunk->header().scavenged && chunk->end_position() > positions_.end) {
      return Error{Errc::kUnavailable,
                   fmt::format("{}: the node has received this scavenged chunk and not processed "
                               "it: a restored copy would lose it as a whole; repeat the backup "
                               "once it has (a stopped node has to be started for that)",
                               chunk->path().string())};
    }
    selected_.push_back(chunk);
  }
  for (const auto& chunk : selected_) {
    select(chunk, queue);
  }
  epochs_ = epochs_of(*opened_);
  if (const auto epoch = epoch_below(epochs_, positions_.end)) {
    positions_.restored_epoch = epoch->position;
    positions_.epoch_number = epoch->number;
    positions_.epoch_id = epoch->id;
  }
  return {};
}

void LogCopy::select(const std::shared_ptr<const log::Chunk>& chunk, CopyQueue& queue) {
  WantedFile wanted;
  auto& entry = wanted.entry;
  entry.path = chunk->path().filename().string();
  entry.kind = FileKind::kChunk;
  const bool whole = chunk->completed() && chunk->end_position() <= positions_.writer;
  if (whole) {
    entry.size = chunk->file_size();
    entry.restored_size = entry.size;
    // Without it the file is read, and says itself what is wrong with it.
    entry.identity = chunk_identity(*chunk).value_or(std::string());
  } else {
    entry.size = log::kChunkHeaderSize +
                 static_cast<std::uint64_t>(positions_.writer - chunk->start_position());
    entry.restored_size = std::max(entry.size, unfinished_file_size(positions_.chunk_size));
    // As long as nothing was written.
    entry.identity = tail_identity(*chunk, entry.size).value_or(std::string());
  }
  wanted.cache = ReadOnce(disk_, chunk->path());
  wanted.read = [chunk](std::uint64_t offset, MutableBytes into) {
    return chunk->read_raw(offset, into);
  };
  selected_bytes_ += entry.size;
  queue.add(std::move(wanted));
}

Result<void> LogCopy::compare() {
  VERGER_TRY(const auto now, open_log());
  const auto changed = [&](const std::string& what) {
    return Error{Errc::kConflict,
                 fmt::format("{}: {} during the copy; nothing was recorded as a backup: repeat it",
                             source_.directory.string(), what)};
  };
  if (now->end() < positions_.writer) {
    return changed("the log was cut");
  }
  if (!same_epoch(epoch_below(epochs_, positions_.writer),
                  epoch_below(epochs_of(*now), positions_.writer))) {
    return changed("the log was cut and continued with another leader's records");
  }
  auto expected = noted_;
  for (const auto& chunk : selected_) {
    expected.push_back({chunk->path(), chunk->header().chunk_id});
  }
  std::set<std::pair<Path, Uuid>> there;
  for (const auto& chunk : now->chunks()) {
    there.emplace(chunk->path(), chunk->header().chunk_id);
  }
  for (const auto& chunk : expected) {
    if (!there.contains({chunk.path, chunk.id})) {
      return changed(fmt::format("a scavenge or another node's chunk replaced {}",
                                 chunk.path.filename().string()));
    }
  }
  return {};
}

Result<void> want_other_files(FileSystem& files, const BackupSource& source, CopyQueue& queue) {
  for (const auto* name : {"kurrent.ddb", "kurrent.ddb.wal"}) {
    auto opened = files.open(source.directory / name, OpenMode::kRead);
    if (!opened && opened.error().code == Errc::kNotFound) {
      continue;
    }
    if (!opened) {
      return opened.error();
    }
    VERGER_TRY(const auto size, (*opened)->size());
    queue.add(wanted_file(files, *std::move(opened), size, name, FileKind::kOther));
  }
  return {};
}

}  // namespace verger::backup::detail
