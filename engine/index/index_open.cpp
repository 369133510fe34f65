#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <set>

#include "engine/index/detail/entry_sorter.h"
#include "engine/index/detail/index_state.h"
#include "engine/index/detail/write_collector.h"
#include "engine/index/rebuild_job.h"

namespace verger::index {
namespace {

/// How often a reader beside a running server looks again when a listed table has gone.
constexpr int kReadAttempts = 5;
/// Entries that catching up adds to the memtable at a time.
constexpr std::size_t kCatchUpBatch = 16384;

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

/// Is this a name that the server or Verger gives to files of an index directory?
bool is_index_file_name(std::string_view name) {
  constexpr std::size_t kUuidLength = 36;
  if (name == detail::kForceVerifyName) {
    return false;
  }
  if (name.starts_with(kIndexMapName) && name.ends_with(".tmp")) {
    return true;
  }
  const auto rest = name.size() < kUuidLength ? name : name.substr(kUuidLength);
  return name.size() >= kUuidLength && Uuid::parse(name.substr(0, kUuidLength)) &&
         (rest.empty() || rest == ".bloomfilter" || rest == detail::kRunSuffix);
}

Result<std::shared_ptr<const detail::TableSet>> open_tables(FileSystem& files,
                                                            const Path& directory,
                                                            const IndexMap& map,
                                                            const IndexOptions& options,
                                                            bool verify) {
  auto set = std::make_shared<detail::TableSet>();
  set->prepare_checkpoint = map.prepare_checkpoint;
  set->commit_checkpoint = map.commit_checkpoint;
  set->max_auto_merge_level = map.max_auto_merge_level;
  for (const auto& line : map.tables) {
    VERGER_TRY(auto table, PTable::open(files, directory / line.file, options.cache_depth));
    if (verify && table->count() > 0) {
      VERGER_RETURN_IF_ERROR(table->verify_md5());
    }
    set->slots.push_back({line.level, line.position, std::move(table)});
  }
  return std::shared_ptr<const detail::TableSet>(std::move(set));
}

Result<void> copy_file(FileSystem& files, const Path& from, const Path& to) {
  VERGER_TRY(const auto source, files.open(from, OpenMode::kRead));
  VERGER_TRY(const auto target, files.open(to, OpenMode::kCreateNew));
  Bytes block(1U << 20U);
  for (std::uint64_t at = 0;;) {
    VERGER_TRY(const auto size, source->read_at(at, block));
    if (size == 0) {
      return target->sync();
    }
    VERGER_RETURN_IF_ERROR(target->write_at(at, ByteView(block).first(size)));
    at += size;
  }
}

Result<void> copy_tree(FileSystem& files, const Path& from, const Path& to) {
  VERGER_RETURN_IF_ERROR(files.make_directories(to));
  VERGER_TRY(const auto entries, files.list(from));
  for (const auto& entry : entries) {
    VERGER_RETURN_IF_ERROR(entry.is_directory
                               ? copy_tree(files, from / entry.name, to / entry.name)
                               : copy_file(files, from / entry.name, to / entry.name));
  }
  return files.sync_directory(to);
}

Result<void> remove_if_there(FileSystem& files, const Path& path) {
  const auto removed = files.remove(path);
  return removed || removed.error().code == Errc::kNotFound ? Result<void>() : removed;
}

}  // namespace

namespace detail {

Result<Path> back_up(FileSystem& files, const Path& directory, Clock& clock) {
  // 2024-01-02T03:04:05.1234567Z becomes 2024-01-02_03-04-05.123
  auto time = format_ticks(clock.now());
  auto fraction = time.size() > 20 ? time.substr(20, time.size() - 21) : std::string();
  fraction.resize(3, '0');
  time = time.substr(0, 10) + "_" + time.substr(11, 8);
  std::ranges::replace(time, ':', '-');
  const auto name = "index-backup-" + time + "." + fraction;
  auto plain = directory;
  if (!plain.has_filename()) {
    plain = plain.parent_path();
  }
  auto target = plain.parent_path() / name;
  VERGER_RETURN_IF_ERROR(copy_tree(files, directory, target));
  VERGER_RETURN_IF_ERROR(files.sync_directory(target.parent_path()));
  return target;
}

}  // namespace detail

Result<void> Index::State::load_tables(const log::TransactionLog& log) {
  VERGER_TRY(const bool forced, files.exists(directory / detail::kForceVerifyName));
  const bool verify = forced || options.verify_md5_at_open;
  for (int attempt = 1;; ++attempt) {
    VERGER_TRY(const auto map, load_index_map(files, directory));
    auto set = open_tables(files, directory, map, options, verify);
    if (!set && set.error().code == Errc::kNotFound) {
      // A server at work may have merged the table away after the map was read.
      if (options.read_only && attempt < kReadAttempts) {
        continue;
      }
      return Error{Errc::kCorruption, set.error().message + ": the index map lists it"};
    }
    if (!set) {
      return std::move(set).error();
    }
    VERGER_RETURN_IF_ERROR(check_against_log(map, log));
    last_prepare = map.prepare_checkpoint;
    last_commit = map.commit_checkpoint;
    publish(std::make_shared<detail::Memtable>(), *std::move(set));
    return {};
  }
}

Result<void> Index::State::check_against_log(const IndexMap& map,
                                             const log::TransactionLog& log) const {
  const auto commit = map.commit_checkpoint;
  const auto path = (directory / kIndexMapName).string();
  if (commit < LogPosition(0)) {
    return {};
  }
  if (commit >= log.end()) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: the index goes to {}, beyond the end of the log at {}", path,
                             commit, log.end())};
  }
  if (!options.read_only && options.chaser != kNoPosition && commit >= options.chaser) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: the index goes to {}, but chaser.chk says that the log was "
                             "processed to {} only",
                             path, commit, options.chaser)};
  }
  return {};
}

Result<void> Index::State::clean_up() {
  std::set<std::string> live{std::string(kIndexMapName)};
  for (const auto& slot : view()->set->slots) {
    const auto name = lower(slot.table->path().filename().string());
    live.insert(name);
    live.insert(name + ".bloomfilter");
  }
  VERGER_TRY(const auto entries, files.list(directory));
  for (const auto& entry : entries) {
    const auto name = lower(entry.name);
    if (entry.is_directory || live.contains(name)) {
      continue;
    }
    if (is_index_file_name(name)) {
      VERGER_RETURN_IF_ERROR(remove_if_there(files, directory / entry.name));
    } else {
      out.warning("a foreign file in the index directory; a server would delete it",
                  {{"file", (directory / entry.name).string()}});
    }
  }
  return files.sync_directory(directory);
}

Result<void> Index::State::catch_up(const log::TransactionLog& log) {
  const auto set = view()->set;
  const auto from = std::max(LogPosition(0), set->commit_checkpoint);
  const auto end =
      options.catch_up_end == kNoPosition ? log.end() : std::min(options.catch_up_end, log.end());
  std::vector<IndexEntry> batch;
  const auto send = [&] {
    publish(view()->memory->with(batch), nullptr);
    batch.clear();
  };
  detail::WriteCollector collector(
      log, options.hash, from, [&](const detail::WriteCollector::Write& write) -> Result<void> {
        const auto before = batch.size();
        select_new(write.entries, write.commit, write.has_commit_record, batch);
        if (batch.size() == before) {
          return {};
        }
        last_prepare = write.prepare;
        last_commit = write.commit;
        if (write.has_commit_record) {
          remember_commit(std::span(batch).subspan(before), write.prepare, write.commit);
        }
        const bool full = view()->memory->count() + batch.size() >= options.max_mem_table_size;
        if (batch.size() >= kCatchUpBatch || full) {
          send();
        }
        if (full && !options.read_only) {
          VERGER_RETURN_IF_ERROR(flush());
          for (auto level = view()->set->level_to_merge(); level >= 0;
               level = view()->set->level_to_merge()) {
            VERGER_RETURN_IF_ERROR(merge_level(level));
          }
        }
        return {};
      });
  collector.on_prepare(
      [&](const log::Prepare& prepare, StreamHash hash) { note_for_existence(prepare, hash); });
  log::LogCursor cursor(log, from, end);
  while (true) {
    VERGER_TRY(const auto record, cursor.next());
    if (!record) {
      break;
    }
    VERGER_RETURN_IF_ERROR(collector.feed(*record));
  }
  VERGER_RETURN_IF_ERROR(collector.finish());
  send();
  return {};
}

void Index::State::note_for_existence(const log::Prepare& prepare, StreamHash hash) {
  if (!existence_contiguous) {
    return;
  }
  constexpr auto kIndexed = log::prepare_flags::kData | log::prepare_flags::kStreamDelete;
  const bool gets_entry = prepare.has(log::prepare_flags::kIsCommitted) && prepare.has(kIndexed) &&
                          prepare.position > view()->set->commit_checkpoint;
  if (!gets_entry) {
    streams_without_entry.insert(hash);
  }
}

Result<std::unique_ptr<Index>> Index::open(FileSystem& files, const Path& directory,
                                           const log::TransactionLog& log, IndexOptions options,
                                           Clock& clock, Random& random, Log& out) {
  auto state = std::make_unique<State>(files, directory, options, clock, random, out);
  const auto loaded = state->load_tables(log);
  if (!loaded && loaded.error().code != Errc::kCorruption) {
    return loaded.error();
  }
  if (!loaded && options.read_only) {
    return Error{Errc::kCorruption, loaded.error().message +
                                        "; the index is damaged, the log may be sound: "
                                        "`verger-db index rebuild` makes a new one of it, and a "
                                        "node does so when it starts"};
  }
  if (!options.read_only) {
    VERGER_TRY(const bool there, files.exists(directory));
    VERGER_RETURN_IF_ERROR(files.make_directories(directory));
    if (!there && directory.has_parent_path()) {
      VERGER_RETURN_IF_ERROR(files.sync_directory(directory.parent_path()));
    }
    if (!loaded) {
      out.warning("the index is damaged and rebuilt from the log; the log is not changed",
                  {{"reason", loaded.error().message}});
      // After a truncation at opening an index that goes too far is no surprise.
      if (!log.truncated_at_open()) {
        VERGER_TRY(const auto backup, detail::back_up(files, directory, clock));
        out.warning("the damaged index was copied", {{"to", backup.string()}});
      }
      VERGER_RETURN_IF_ERROR(remove_if_there(files, directory / kIndexMapName));
    }
    VERGER_RETURN_IF_ERROR(remove_if_there(files, directory / detail::kForceVerifyName));
    VERGER_RETURN_IF_ERROR(state->clean_up());
    VERGER_RETURN_IF_ERROR(state->existence.load());
    VERGER_RETURN_IF_ERROR(state->existence.lower(log.end()));
    state->existence_contiguous =
        state->existence.enabled() &&
        state->existence.checkpoint() >= state->view()->set->commit_checkpoint;
  }
  auto index = std::unique_ptr<Index>(new Index(std::move(state)));
  auto& opened = *index->state_;
  if (options.read_only || opened.view()->set->commit_checkpoint >= LogPosition(0)) {
    VERGER_RETURN_IF_ERROR(opened.catch_up(log));
    return index;
  }
  auto job = IndexRebuildJob::for_opening(*index, log, options.catch_up_end);
  while (true) {
    VERGER_TRY(const auto outcome, job.step(Budget{.units = 1U << 20U}));
    if (outcome.kind == StepOutcome::Kind::kDone) {
      return index;
    }
  }
}

}  // namespace verger::index
