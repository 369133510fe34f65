#include "engine/index/rebuild_job.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

#include "engine/index/detail/entry_sorter.h"
#include "engine/index/detail/index_state.h"
#include "engine/index/detail/records_ahead.h"
#include "engine/index/detail/write_collector.h"

namespace verger::index {

int table_level(std::uint64_t entries, std::uint64_t max_mem_table_size) {
  const auto tables = entries / std::max<std::uint64_t>(max_mem_table_size, 1);
  return tables == 0 ? 0 : static_cast<int>(std::bit_width(tables)) - 1;
}

struct IndexRebuildJob::State {
  enum class Phase : std::uint8_t { kStart, kRead, kWrite, kFinish };

  Index::State& index;
  const log::TransactionLog& log;
  LogPosition end;
  bool small_in_memory;
  int threads;
  Phase phase = Phase::kStart;
  detail::EntrySorter sorter;
  std::optional<log::LogCursor> cursor;
  std::optional<detail::RecordsAhead> ahead;  ///< instead of `cursor`
  std::optional<detail::WriteCollector> collector;
  std::optional<PTableWriter> writer;
  LogPosition prepare = kNoPosition;
  LogPosition commit = kNoPosition;
  std::uint64_t records = 0;

  State(Index::State& index_in, const log::TransactionLog& log_in, LogPosition end_in, bool small,
        int threads_in)
      : index(index_in),
        log(log_in),
        end(end_in == kNoPosition ? log_in.end() : std::min(end_in, log_in.end())),
        small_in_memory(small),
        threads(threads_in),
        sorter(index_in.files, index_in.directory, index_in.random,
               index_in.options.max_mem_table_size) {}

  [[nodiscard]] bool stays_in_memory() const {
    return small_in_memory && sorter.count() < index.options.max_mem_table_size;
  }
  [[nodiscard]] Error held() const {
    return Error{Errc::kRefused, fmt::format("{}: the index cannot be rebuilt while a scavenge "
                                             "holds its tables",
                                             index.directory.string())};
  }

  Result<void> start();
  Result<void> take(const detail::WriteCollector::Write& write);
  Result<void> read(std::uint32_t units);
  Result<void> read_ahead(std::uint32_t units);
  Result<void> end_reading();
  Result<void> write(std::uint32_t units);
  Result<void> finish();
  Result<void> finish_in_memory();
};

Result<void> IndexRebuildJob::State::start() {
  {
    const std::lock_guard lock(index.structure);
    if (index.holds > 0) {
      return held();
    }
  }
  if (small_in_memory) {
    index.explicit_writes.clear();
  }
  collector.emplace(log, index.options.hash, LogPosition(0),
                    [this](const auto& found) { return take(found); });
  if (small_in_memory) {
    collector->on_prepare([this](const log::Prepare& prepare_record, StreamHash hash) {
      index.note_for_existence(prepare_record, hash);
    });
  }
  if (threads > 1) {
    ahead.emplace(log, end, index.options.hash, static_cast<std::size_t>(threads));
  } else {
    cursor.emplace(log, LogPosition(0), end);
  }
  phase = Phase::kRead;
  return {};
}

Result<void> IndexRebuildJob::State::take(const detail::WriteCollector::Write& write) {
  for (const auto& entry : write.entries) {
    VERGER_RETURN_IF_ERROR(sorter.add(entry));
  }
  prepare = write.prepare;
  commit = write.commit;
  if (stays_in_memory() && write.has_commit_record) {
    index.remember_commit(write.entries, write.prepare, write.commit);
  }
  return {};
}

Result<void> IndexRebuildJob::State::read(std::uint32_t units) {
  if (ahead) {
    return read_ahead(units);
  }
  for (std::uint32_t i = 0; i < units; ++i) {
    const auto record = cursor->next();
    if (!record) {
      return record.error();
    }
    if (!*record) {
      return end_reading();
    }
    ++records;
    VERGER_RETURN_IF_ERROR(collector->feed(**record));
  }
  return {};
}

Result<void> IndexRebuildJob::State::read_ahead(std::uint32_t units) {
  for (std::uint64_t read = 0; read < units;) {
    const auto batch = ahead->next();
    if (!batch) {
      return end_reading();
    }
    read += batch->records;
    records += batch->records;
    std::size_t fed = 0;
    const auto feed_to = [&](std::size_t next) -> Result<void> {
      for (; fed < next; ++fed) {
        VERGER_RETURN_IF_ERROR(collector->feed(batch->prepares[fed]));
      }
      return {};
    };
    for (const auto& [before, commit_record] : batch->commits) {
      VERGER_RETURN_IF_ERROR(feed_to(before));
      VERGER_RETURN_IF_ERROR(collector->feed(commit_record));
    }
    VERGER_RETURN_IF_ERROR(feed_to(batch->prepares.size()));
    if (batch->error) {
      return *batch->error;
    }
  }
  return {};
}

Result<void> IndexRebuildJob::State::end_reading() {
  VERGER_RETURN_IF_ERROR(collector->finish());
  cursor.reset();
  ahead.reset();
  collector.reset();
  if (sorter.count() == 0 || stays_in_memory()) {
    phase = Phase::kFinish;
    return {};
  }
  VERGER_TRY(writer,
             PTableWriter::create(index.files, index.directory, index.random.uuid(), sorter.count(),
                                  index.options.cache_depth, /*hash_in_background=*/threads > 1));
  phase = Phase::kWrite;
  return {};
}

Result<void> IndexRebuildJob::State::write(std::uint32_t units) {
  for (std::uint32_t i = 0; i < units; ++i) {
    const auto more = sorter.advance();
    if (!more) {
      return more.error();
    }
    if (!*more) {
      phase = Phase::kFinish;
      return {};
    }
    VERGER_RETURN_IF_ERROR(writer->append(sorter.current()));
  }
  return {};
}

Result<void> IndexRebuildJob::State::finish_in_memory() {
  std::vector<IndexEntry> entries;
  entries.reserve(sorter.count());
  while (true) {
    VERGER_TRY(const bool more, sorter.advance());
    if (!more) {
      break;
    }
    entries.push_back(sorter.current());
  }
  index.last_prepare = prepare;
  index.last_commit = commit;
  index.publish(detail::Memtable().with(entries), nullptr);
  return {};
}

Result<void> IndexRebuildJob::State::finish() {
  const std::lock_guard lock(index.structure);
  if (index.holds > 0) {
    return held();
  }
  if (stays_in_memory()) {
    return finish_in_memory();
  }
  auto set = std::make_shared<detail::TableSet>();
  set->max_auto_merge_level = index.view()->set->max_auto_merge_level;
  if (writer) {
    VERGER_TRY(const auto path, writer->finish());
    writer.reset();
    VERGER_TRY(auto table, PTable::open(index.files, path, index.options.cache_depth));
    set->prepare_checkpoint = prepare;
    set->commit_checkpoint = commit;
    const auto level = table_level(table->count(), index.options.max_mem_table_size);
    set->append(level, std::move(table));
  }
  VERGER_RETURN_IF_ERROR(index.save(*set));
  index.last_prepare = set->prepare_checkpoint;
  index.last_commit = set->commit_checkpoint;
  index.explicit_writes.clear();
  index.streams_without_entry.clear();
  index.existence_contiguous =
      index.existence.enabled() && index.existence.checkpoint() >= set->commit_checkpoint;
  index.adopt(std::make_shared<detail::Memtable>(), std::move(set));
  return {};
}

IndexRebuildJob::IndexRebuildJob(std::unique_ptr<State> state) : state_(std::move(state)) {}
IndexRebuildJob::IndexRebuildJob(Index& index, const log::TransactionLog& log, LogPosition end,
                                 int threads)
    : state_(std::make_unique<State>(*index.state_, log, end, /*small=*/false, threads)) {}
IndexRebuildJob IndexRebuildJob::for_opening(Index& index, const log::TransactionLog& log,
                                             LogPosition end) {
  return IndexRebuildJob(
      std::make_unique<State>(*index.state_, log, end, /*small=*/true, /*threads_in=*/1));
}
IndexRebuildJob::~IndexRebuildJob() = default;

std::uint64_t IndexRebuildJob::records_read() const { return state_->records; }
std::uint64_t IndexRebuildJob::entries_found() const { return state_->sorter.count(); }

Result<StepOutcome> IndexRebuildJob::step(Budget budget) {
  const auto units = std::max<std::uint32_t>(budget.units, 1);
  switch (state_->phase) {
    case State::Phase::kStart:
      VERGER_RETURN_IF_ERROR(state_->start());
      break;
    case State::Phase::kRead:
      VERGER_RETURN_IF_ERROR(state_->read(units));
      break;
    case State::Phase::kWrite:
      VERGER_RETURN_IF_ERROR(state_->write(units));
      break;
    case State::Phase::kFinish:
      VERGER_RETURN_IF_ERROR(state_->finish());
      return StepOutcome{.kind = StepOutcome::Kind::kDone};
  }
  return StepOutcome{};
}

}  // namespace verger::index
