// How the set of live PTables changes: flush, merge, replace. The order is always the same: new
// files are durable, then the map that names them, then old files go. A crash between two of these
// leaves files that no map names; opening removes them.
#include <algorithm>
#include <fmt/format.h>

#include "engine/base/failpoint.h"
#include "engine/index/detail/index_state.h"
#include "engine/index/detail/merge.h"

namespace verger::index {
namespace {

Path bloom_path(const Path& table) { return Path(table.string() + ".bloomfilter"); }

}  // namespace

Index::State::State(FileSystem& files_in, Path directory_in, IndexOptions options_in,
                    Clock& clock_in, Random& random_in, Log& out_in)
    : files(files_in),
      directory(std::move(directory_in)),
      options(options_in),
      clock(clock_in),
      random(random_in),
      out(out_in),
      existence(files_in, directory, options_in.stream_existence_filter_size) {
  publish(std::make_shared<detail::Memtable>(), std::make_shared<detail::TableSet>());
}

void Index::State::publish(std::shared_ptr<const detail::Memtable> memory,
                           std::shared_ptr<const detail::TableSet> set) {
  auto newest_first =
      set != nullptr ? set->newest_first() : std::vector<std::shared_ptr<const PTable>>();
  const std::lock_guard lock(view_mutex_);
  auto next =
      view_ != nullptr ? std::make_shared<IndexView>(*view_) : std::make_shared<IndexView>();
  if (memory != nullptr) {
    next->memory = std::move(memory);
  }
  if (set != nullptr) {
    next->set = std::move(set);
    next->newest_first = std::move(newest_first);
  }
  view_ = std::move(next);
}

Error Index::State::noted(Error error) {
  if (error.code == Errc::kCorruption && !options.read_only && !damage_noted_.exchange(true)) {
    out.error("the index is damaged; it is checked whole at the next start",
              {{"reason", error.message}});
    // If this fails the next start only checks less.
    static_cast<void>(files.open(directory / detail::kForceVerifyName, OpenMode::kCreate));
  }
  return error;
}

Result<void> Index::State::save(const detail::TableSet& set) {
  return save_index_map(files, directory, set.to_map(), random);
}

void Index::State::remove_table(const PTable& table) {
  for (const auto& path : {table.path(), bloom_path(table.path())}) {
    const auto removed = files.remove(path);
    if (!removed && removed.error().code != Errc::kNotFound) {
      out.warning("an old index file stays until the next start",
                  {{"reason", removed.error().message}});
    }
  }
}

void Index::State::adopt(std::shared_ptr<const detail::Memtable> memory,
                         std::shared_ptr<const detail::TableSet> set) {
  const auto before = view();
  publish(std::move(memory), set);
  for (const auto& old : before->set->slots) {
    const bool kept = std::ranges::any_of(
        set->slots, [&](const TableSlot& slot) { return slot.table == old.table; });
    if (!kept) {
      remove_table(*old.table);
    }
  }
}

Result<void> Index::State::flush() {
  const auto now = view();
  if (now->memory->count() == 0) {
    return {};
  }
  const auto entries = now->memory->sorted();
  VERGER_TRY(auto writer, PTableWriter::create(files, directory, random.uuid(), entries.size(),
                                               options.cache_depth));
  for (const auto& entry : entries) {
    VERGER_RETURN_IF_ERROR(writer.append(entry));
  }
  VERGER_TRY(const auto path, writer.finish());
  VERGER_FAILPOINT("index.flush.after-table");
  VERGER_TRY(auto table, PTable::open(files, path, options.cache_depth));
  auto set = std::make_shared<detail::TableSet>(*now->set);
  set->append(0, std::move(table));
  set->prepare_checkpoint = last_prepare;
  set->commit_checkpoint = last_commit;
  VERGER_RETURN_IF_ERROR(save(*set));
  adopt(std::make_shared<detail::Memtable>(), std::move(set));
  explicit_writes.clear();
  if (const auto updated = update_existence_filter(entries); !updated) {
    // The server catches up from the old checkpoint itself.
    existence_contiguous = false;
    out.warning("the stream existence filter is no longer updated",
                {{"reason", updated.error().message}});
  }
  return {};
}

Result<void> Index::State::update_existence_filter(const detail::Memtable::Run& flushed) {
  if (!existence_contiguous || !existence.enabled()) {
    streams_without_entry.clear();
    return {};
  }
  std::vector<StreamHash> hashes(streams_without_entry.begin(), streams_without_entry.end());
  streams_without_entry.clear();
  for (const auto& entry : flushed) {
    if (hashes.empty() || hashes.back() != entry.hash) {
      hashes.push_back(entry.hash);
    }
  }
  return existence.add(std::move(hashes), last_commit);
}

Result<void> Index::State::merge_level(int level) {
  const auto now = view();
  const auto tables = now->set->tables_of(level);
  std::uint64_t count = 0;
  std::vector<detail::TableSource> sources;
  for (const auto& table : tables) {
    count += table->count();
    sources.emplace_back(table);
  }
  VERGER_TRY(auto writer,
             PTableWriter::create(files, directory, random.uuid(), count, options.cache_depth));
  detail::KWayMerge merge(std::move(sources));
  while (true) {
    VERGER_TRY(const bool more, merge.advance());
    if (!more) {
      break;
    }
    VERGER_RETURN_IF_ERROR(writer.append(merge.current()));
  }
  VERGER_TRY(const auto path, writer.finish());
  VERGER_FAILPOINT("index.merge.after-table");
  VERGER_TRY(auto merged, PTable::open(files, path, options.cache_depth));
  auto set = std::make_shared<detail::TableSet>(*now->set);
  set->remove_level(level);
  set->append(level + 1, std::move(merged));
  VERGER_RETURN_IF_ERROR(save(*set));
  adopt(nullptr, std::move(set));
  return {};
}

Result<void> Index::State::replace(const std::shared_ptr<const PTable>& old,
                                   const Path& replacement) {
  auto set = std::make_shared<detail::TableSet>(*view()->set);
  const auto slot = std::ranges::find(set->slots, old, &TableSlot::table);
  if (slot == set->slots.end()) {
    return Error{Errc::kNotFound,
                 fmt::format("{}: no live table of the index", old->path().string())};
  }
  VERGER_TRY(slot->table, PTable::open(files, replacement, options.cache_depth));
  VERGER_RETURN_IF_ERROR(save(*set));
  VERGER_FAILPOINT("index.replace.after-map");
  adopt(nullptr, std::move(set));
  return {};
}

Result<void> Index::State::add(std::span<const IndexEntry> entries, LogPosition prepare,
                               LogPosition commit) {
  std::vector<IndexEntry> added;
  select_new(entries, commit, commit != prepare, added);
  if (added.empty()) {
    return {};
  }
  if (commit != prepare) {
    remember_commit(added, prepare, commit);
  }
  last_prepare = prepare;
  last_commit = commit;
  publish(view()->memory->with(added), nullptr);
  return {};
}

void Index::State::select_new(std::span<const IndexEntry> entries, LogPosition commit,
                              bool has_commit_record, std::vector<IndexEntry>& added) const {
  const auto set = view()->set;
  const std::pair known(set->commit_checkpoint, set->prepare_checkpoint);
  for (const auto& entry : entries) {
    if (std::pair(has_commit_record ? commit : entry.position, entry.position) > known) {
      added.push_back(entry);
    }
  }
}

void Index::State::remember_commit(std::span<const IndexEntry> entries, LogPosition prepare,
                                   LogPosition commit) {
  ExplicitWrite write{prepare, commit, {}};
  for (const auto& entry : entries) {
    write.positions.push_back(entry.position);
  }
  explicit_writes.push_back(std::move(write));
}

Result<void> Index::State::truncate(LogPosition position) {
  const auto now = view();
  if (!options.read_only) {
    VERGER_RETURN_IF_ERROR(existence.lower(position));
  }
  if (now->set->commit_checkpoint >= position) {
    if (!options.read_only) {
      // Without a map these tables are not mistaken for those of the log written from here on.
      const auto removed = files.remove(directory / kIndexMapName);
      if (!removed && removed.error().code != Errc::kNotFound) {
        return removed.error();
      }
      VERGER_RETURN_IF_ERROR(files.sync_directory(directory));
    }
    return Error{Errc::kConflict,
                 fmt::format("{}: the PTables reach to {}, beyond the cut at {}; rebuild the index",
                             directory.string(), now->set->commit_checkpoint, position)};
  }
  std::unordered_set<LogPosition> uncommitted;
  LogPosition prepare = now->set->prepare_checkpoint;
  LogPosition commit = now->set->commit_checkpoint;
  for (const auto& write : explicit_writes) {
    if (write.commit >= position) {
      uncommitted.insert(write.positions.begin(), write.positions.end());
    } else if (write.commit > commit) {
      prepare = write.prepare;
      commit = write.commit;
    }
  }
  std::erase_if(explicit_writes,
                [&](const ExplicitWrite& write) { return write.commit >= position; });
  auto kept = now->memory->filtered([&](const IndexEntry& entry) {
    const bool keeps = entry.position < position && !uncommitted.contains(entry.position);
    if (keeps && entry.position > commit) {
      prepare = commit = entry.position;
    }
    return keeps;
  });
  last_prepare = prepare;
  last_commit = commit;
  publish(std::move(kept), nullptr);
  return {};
}

}  // namespace verger::index
