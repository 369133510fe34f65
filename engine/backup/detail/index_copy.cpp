#include "engine/backup/detail/index_copy.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/index/ptable.h"
#include "engine/scavenge/scavenge_state.h"

namespace verger::backup::detail {
namespace {

constexpr int kMapAttempts = 1000;
constexpr std::uint64_t kTableHead = 128;
constexpr std::uint64_t kTableTail = 16;  ///< the MD5 of all before it

/// Header and MD5 of a table tell it from any other one.
Result<std::string> table_identity(const File& file, std::uint64_t size) {
  if (size < kTableHead + kTableTail) {
    return std::string();
  }
  Bytes bytes(kTableHead + kTableTail);
  VERGER_RETURN_IF_ERROR(file.read_exact(0, MutableBytes(bytes).first(kTableHead)));
  VERGER_RETURN_IF_ERROR(
      file.read_exact(size - kTableTail, MutableBytes(bytes).subspan(kTableHead)));
  return to_hex(sha256(bytes));
}

const std::string kFilter = "stream-existence/streamExistenceFilter";

std::string state_name() { return scavenge::ScavengeState::path_in(Path()).string(); }

std::string in_index(std::string_view name) { return fmt::format("index/{}", name); }

}  // namespace

WantedFile wanted_file(const FileSystem& files, std::shared_ptr<File> file, std::uint64_t size,
                       std::string path, FileKind kind) {
  WantedFile wanted;
  wanted.entry.path = std::move(path);
  wanted.entry.kind = kind;
  wanted.entry.size = size;
  wanted.entry.restored_size = size;
  wanted.cache = ReadOnce(files, file->path());
  wanted.read = [file = std::move(file)](std::uint64_t offset, MutableBytes into) {
    return file->read_exact(offset, into);
  };
  return wanted;
}

IndexCopy::IndexCopy(FileSystem& files, const BackupSource& source, BlobStore& store,
                     CopyQueue& queue, LogIdentity log_identity)
    : disk_(files),
      directory_(source.index()),
      changes_(source.state == SourceState::kLive),
      log_identity_(std::move(log_identity)),
      store_(store),
      queue_(queue) {}

Result<IndexCopy::Outcome> IndexCopy::step(std::uint64_t most) {
  switch (phase_) {
    case Phase::kMap:
      return read_map();
    case Phase::kTables: {
      VERGER_TRY(const bool done, queue_.step(most));
      keep_stored();
      if (done) {
        phase_ = Phase::kCompare;
      }
      return Outcome::kMore;
    }
    case Phase::kCompare:
      return compare_map();
    case Phase::kRest: {
      VERGER_TRY(const bool done, queue_.step(most));
      keep_stored();
      if (done) {
        phase_ = Phase::kDone;
        return Outcome::kDone;
      }
      return Outcome::kMore;
    }
    case Phase::kDone:
      break;
  }
  return Outcome::kDone;
}

void IndexCopy::keep_stored() {
  for (auto& file : queue_.take_stored()) {
    files_.push_back(std::move(file));
  }
}

Result<IndexCopy::Outcome> IndexCopy::read_map() {
  auto entries = disk_.list(directory_);
  if (!entries && entries.error().code == Errc::kNotFound) {
    entries = std::vector<DirectoryEntry>();
  }
  if (!entries) {
    return entries.error();
  }
  const bool has_files = std::ranges::any_of(
      *entries, [](const DirectoryEntry& entry) { return !entry.is_directory; });
  auto bytes = read_file(disk_, directory_ / index::kIndexMapName);
  if (!bytes && bytes.error().code != Errc::kNotFound) {
    return bytes.error();
  }
  if (!bytes && has_files && changes_) {
    // A server removes the map and then moves the next one there.
    if (++attempts_ < kMapAttempts) {
      return Outcome::kRest;
    }
    return Error{Errc::kUnavailable,
                 fmt::format("{}: holds files, and no {}; is the index being rebuilt? Repeat the "
                             "backup then",
                             directory_.string(), index::kIndexMapName)};
  }
  if (!bytes) {
    // Tables without a map are none: the next start removes them, and rebuilds the index.
    VERGER_RETURN_IF_ERROR(want_rest());
    return Outcome::kMore;
  }
  has_map_ = true;
  map_bytes_ = *std::move(bytes);
  auto map = index::parse_index_map(as_text(map_bytes_));
  if (!map) {
    return map.error().within((directory_ / index::kIndexMapName).string());
  }
  map_ = *std::move(map);
  VERGER_TRY(const bool all_there, want_tables());
  if (!all_there) {
    if (!changes_ || ++attempts_ >= kMapAttempts) {
      return Error{changes_ ? Errc::kUnavailable : Errc::kCorruption,
                   fmt::format("{}: a table that {} names is missing: rebuild the index "
                               "(`verger-db index rebuild`), or repeat the backup",
                               directory_.string(), index::kIndexMapName)};
    }
    return Outcome::kMore;
  }
  phase_ = Phase::kTables;
  return Outcome::kMore;
}

Result<bool> IndexCopy::want_tables() {
  for (const auto& line : map_.tables) {
    if (copied_.contains(line.file)) {
      continue;
    }
    const Path path = directory_ / line.file;
    auto opened = disk_.open(path, OpenMode::kRead);
    if (!opened && opened.error().code == Errc::kNotFound) {
      return false;
    }
    if (!opened) {
      return opened.error();
    }
    VERGER_TRY(const auto size, (*opened)->size());
    VERGER_TRY(auto identity, table_identity(**opened, size));
    auto table =
        wanted_file(disk_, *std::move(opened), size, in_index(line.file), FileKind::kTable);
    table.entry.identity = identity;
    queue_.add(std::move(table));
    copied_.insert(line.file);
    // It is made with its table, and goes with it; a table may have none.
    VERGER_RETURN_IF_ERROR(want(line.file + ".bloomfilter", FileKind::kBloomFilter,
                                identity.empty() ? identity : identity + "-bloom"));
  }
  return true;
}

Result<bool> IndexCopy::want(const std::string& name, FileKind kind, const std::string& identity) {
  auto opened = disk_.open(directory_ / name, OpenMode::kRead);
  if (!opened && opened.error().code == Errc::kNotFound) {
    return false;
  }
  if (!opened) {
    return opened.error();
  }
  VERGER_TRY(const auto size, (*opened)->size());
  auto file = wanted_file(disk_, *std::move(opened), size, in_index(name), kind);
  file.entry.identity = identity;
  queue_.add(std::move(file));
  return true;
}

Result<IndexCopy::Outcome> IndexCopy::compare_map() {
  const auto now = read_file(disk_, directory_ / index::kIndexMapName);
  if (!now && now.error().code != Errc::kNotFound) {
    return now.error();
  }
  if (!now || *now != map_bytes_) {
    if (++attempts_ >= kMapAttempts) {
      return Error{Errc::kUnavailable,
                   fmt::format("{}: {} does not stop changing: repeat the backup",
                               directory_.string(), index::kIndexMapName)};
    }
    phase_ = Phase::kMap;
    return Outcome::kMore;
  }
  // What a former map named and this one does not goes.
  std::set<std::string> named;
  for (const auto& line : map_.tables) {
    named.insert(in_index(line.file));
    named.insert(in_index(line.file + ".bloomfilter"));
  }
  std::erase_if(files_, [&](const BackedUpFile& file) { return !named.contains(file.path); });
  VERGER_TRY(const auto digest, store_bytes(store_, map_bytes_));
  files_.push_back({.path = in_index(index::kIndexMapName),
                    .kind = FileKind::kIndexMap,
                    .size = map_bytes_.size(),
                    .restored_size = map_bytes_.size(),
                    .sha256 = digest,
                    .identity = {}});
  VERGER_RETURN_IF_ERROR(want_rest());
  return Outcome::kMore;
}

Result<std::string> IndexCopy::identity_of_filter_files() {
  // The server makes its filter anew once one of both is missing, and otherwise writes in place.
  std::string both;
  for (const auto* const extension : {".chk", ".dat"}) {
    auto identity = disk_.file_identity(directory_ / (kFilter + extension));
    if (!identity && identity.error().code != Errc::kNotFound) {
      return identity.error();
    }
    if (!identity || identity->empty()) {
      return std::string();
    }
    both += *identity + " ";
  }
  return to_hex(sha256(as_bytes(both)));
}

std::string IndexCopy::filter_identity(const Bytes& checkpoint, std::string_view files) const {
  // All streams of the log before the checkpoint are in the filter, and one that has more is as
  // good. So at one checkpoint of one log a filter can stand for any later one, unless it was made
  // anew meanwhile: it may have been, since streams were missing.
  const auto log = log_identity_();
  if (log.empty() || files.empty() || checkpoint.size() != sizeof(std::int64_t) ||
      load_le<std::int64_t>(checkpoint.data()) < 0) {
    return {};
  }
  Bytes all = checkpoint;
  append_bytes(all, as_bytes(log));
  append_bytes(all, as_bytes(files));
  return to_hex(sha256(all));
}

void IndexCopy::offer(const Manifest& earlier, std::function<Result<bool>()> is_of_this_log) {
  earlier_ = &earlier;
  earlier_is_of_this_log_ = std::move(is_of_this_log);
}

Result<bool> IndexCopy::keep_earlier_filter(const Bytes& checkpoint, std::string_view files) {
  const auto* known_checkpoint = earlier_ ? earlier_->find(in_index(kFilter + ".chk")) : nullptr;
  const auto* known_filter = earlier_ ? earlier_->find(in_index(kFilter + ".dat")) : nullptr;
  if (known_checkpoint == nullptr || known_filter == nullptr || files.empty() ||
      known_checkpoint->identity != files || checkpoint.size() != sizeof(std::int64_t) ||
      known_checkpoint->size != checkpoint.size()) {
    return false;
  }
  Bytes bytes(sizeof(std::int64_t));
  const auto stored = store_.open_blob(known_checkpoint->sha256);
  if (!stored || !(*stored)->read_exact(0, bytes)) {
    return false;
  }
  const auto before = load_le<std::int64_t>(bytes.data());
  const auto now = load_le<std::int64_t>(checkpoint.data());
  // A node reads the log from the filter's checkpoint on when it starts: no more than the filter
  // would be.
  if (before < 0 || now <= before || before > earlier_->positions.writer.value() ||
      static_cast<std::uint64_t>(now - before) >= known_filter->size) {
    return false;
  }
  const auto size = disk_.file_size(directory_ / (kFilter + ".dat"));
  VERGER_TRY(const auto stored_size, store_.blob_size(known_filter->sha256));
  if (!size || *size != known_filter->size || stored_size != known_filter->size) {
    return false;
  }
  VERGER_TRY(const bool is_of_this_log, earlier_is_of_this_log_());
  if (is_of_this_log) {
    files_.push_back(*known_checkpoint);
    files_.push_back(*known_filter);
    queue_.count_reused(known_filter->size);
  }
  return is_of_this_log;
}

Result<void> IndexCopy::want_rest() {
  phase_ = Phase::kRest;
  // The checkpoint is read before the filter that it speaks of, and both after what says which
  // files they are: one that is made anew meanwhile is read again at the next backup.
  VERGER_TRY(const auto files, identity_of_filter_files());
  const auto checkpoint = read_file(disk_, directory_ / (kFilter + ".chk"));
  if (!checkpoint && checkpoint.error().code != Errc::kNotFound) {
    return checkpoint.error();
  }
  bool kept = false;
  if (checkpoint) {
    VERGER_TRY(kept, keep_earlier_filter(*checkpoint, files));
  }
  std::string identity;
  if (checkpoint && !kept) {
    identity = filter_identity(*checkpoint, files);
    VERGER_TRY(const auto digest, store_bytes(store_, *checkpoint));
    files_.push_back({.path = in_index(kFilter + ".chk"),
                      .kind = FileKind::kExistenceFilter,
                      .size = checkpoint->size(),
                      .restored_size = checkpoint->size(),
                      .sha256 = digest,
                      .identity = files});
  }
  if (!kept) {
    VERGER_RETURN_IF_ERROR(want(kFilter + ".dat", FileKind::kExistenceFilter, identity));
  }
  const auto state = state_name();
  VERGER_RETURN_IF_ERROR(want(state, FileKind::kScavengeState, {}));
  // Only of a scavenge that was killed: without it the state would be an older one.
  VERGER_RETURN_IF_ERROR(want(state + "-wal", FileKind::kScavengeState, {}));
  return {};
}

Result<bool> IndexCopy::compare_scavenge_state(std::uint64_t most) {
  const auto copied = std::ranges::find(files_, in_index(state_name()), &BackedUpFile::path);
  const auto path = directory_ / state_name();
  const Error changed{Errc::kConflict,
                      fmt::format("{}: a scavenge wrote into it during the copy; nothing was "
                                  "recorded as a backup: repeat it",
                                  path.string())};
  if (!state_) {
    auto opened = disk_.open(path, OpenMode::kRead);
    if (!opened && opened.error().code != Errc::kNotFound) {
      return opened.error();
    }
    const bool was_there = copied != files_.end();
    if (opened.has_value() != was_there) {
      return changed;
    }
    if (!was_there) {
      return true;
    }
    VERGER_TRY(const auto size, (*opened)->size());
    if (size != copied->size) {
      return changed;
    }
    state_ = *std::move(opened);
    state_cache_ = ReadOnce(disk_, path);
  }
  Bytes part;
  for (std::uint64_t read = 0; state_at_ < copied->size; read += part.size()) {
    if (read >= most) {
      return false;
    }
    part.resize(std::min(kBlockSize, copied->size - state_at_));
    state_cache_.before_read();
    VERGER_RETURN_IF_ERROR(state_->read_exact(state_at_, part));
    state_hash_.update(part);
    state_at_ += part.size();
    state_cache_.read_to(state_at_);
  }
  if (state_hash_.finish() != copied->sha256) {
    return changed;
  }
  return true;
}

}  // namespace verger::backup::detail
