#include "engine/scavenge/estimate.h"

#include <algorithm>
#include <ranges>
#include <span>

#include "engine/index/ptable.h"
#include "engine/index/ptable_size.h"
#include "engine/log/chunk_size.h"
#include "engine/scavenge/chunk_rewrite.h"
#include "engine/scavenge/detail/chunk_count.h"
#include "engine/scavenge/detail/merge_plan.h"
#include "engine/scavenge/detail/reading_ahead.h"
#include "engine/scavenge/detail/top_streams.h"
#include "engine/streams/stream_names.h"

namespace verger::scavenge {
namespace {

/// What was counted of all chunks, and waits to be taken.
constexpr std::size_t kMostCounted = std::size_t{8} << 20U;
/// How many records ahead the memory for a stream is fetched.
constexpr std::size_t kAhead = 8;

/// What the point's own record adds to a chunk when it is not written yet.
Volume point_record(const Preview& preview) {
  log::Prepare prepare;
  const auto json = preview.point().threshold == 0
                        ? std::string("{}")
                        : fmt::format("{{\n  \"threshold\": {}\n}}", preview.point().threshold);
  prepare.stream = streams::kScavengePointsStream;
  prepare.type = streams::kScavengePointType;
  prepare.data = as_bytes(json);
  return {1, log::record_size(log::Record(prepare)) + log::kFramingSize};
}

}  // namespace

struct EstimateJob::State {
  enum class Phase : std::uint8_t { kChunks, kMerges, kTables, kDone };

  State(Preview& preview_in, std::size_t top_in)
      : preview(preview_in),
        parts(preview_in.parts()),
        top_count(top_in),
        rules(preview_in.state(), parts.index, parts.log, preview_in.point().position),
        chunks(parts.log.chunks()),
        slots(parts.index.tables()),
        counting({.threads = preview_in.options().chunks_read_at_once(),
                  .sources = preview_in.options().chunks_read_at_once(),
                  .bytes = kMostCounted}) {
    for (const auto& chunk : chunks) {
      bytes_total += preview.reaches(*chunk) ? static_cast<std::uint64_t>(chunk->data_size()) : 0;
    }
    for (const auto& slot : slots) {
      bytes_total += slot.table->file_size();
    }
  }

  /// A chunk that is counted.
  struct Source {
    using Part = detail::CountedRecords;

    ChunkEstimate row;
    std::unique_ptr<detail::ChunkCounter> counter;  ///< nullptr: the chunk would not be rewritten
    bool listed = false;                            ///< the row is the last one of the estimate

    [[nodiscard]] Part read(std::uint32_t records) const { return counter->read(records); }
  };
  using Ahead = detail::ReadingAhead<Source>;

  /// The next chunk; nullopt: there is none.
  Result<std::optional<Ahead::Opened>> open_next();
  /// True once there is no further chunk.
  Result<bool> count_chunks(std::uint32_t units, Estimate& estimate);
  Result<void> take(const detail::CountedRecords& counted, Estimate& estimate);
  void close_chunk(Estimate& estimate);
  Result<void> plan(Estimate& estimate);
  Result<std::uint64_t> records_in(const std::shared_ptr<const log::Chunk>& chunk) const;
  Result<bool> count_table(std::uint32_t units, Estimate& estimate);
  Result<std::uint64_t> count_entries(std::span<const index::IndexEntry> entries,
                                      TableEstimate& row);
  Result<bool> keeps_colliding(const index::IndexEntry& entry);
  void add_up(Estimate& estimate);

  Preview& preview;
  const ScavengeParts& parts;
  std::size_t top_count;
  std::unique_ptr<SharedLimits> shared;
  RemovalRules rules;
  std::vector<std::shared_ptr<const log::Chunk>> chunks;
  std::vector<index::TableSlot> slots;
  Phase phase = Phase::kChunks;
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;

  std::size_t next_to_open = 0;
  std::size_t next_to_close = 0;
  Ahead counting;
  std::vector<detail::PhysicalChunk> physical;
  std::vector<std::size_t> uncounted;  ///< of `physical`: the records are not known yet
  detail::TopStreams top;

  std::size_t next_table = 0;
  std::optional<index::PTableScanner> table;
  std::unique_ptr<ScavengeState::LimitsCursor> cursor;
  Bytes buffer;
};

Result<std::optional<EstimateJob::State::Ahead::Opened>> EstimateJob::State::open_next() {
  if (next_to_open == chunks.size()) {
    return std::optional<Ahead::Opened>();
  }
  const auto& chunk = chunks[next_to_open];
  Source source;
  auto& row = source.row;
  row.file = chunk->path().filename().string();
  row.start = chunk->start().value();
  row.end = chunk->end().value();
  row.file_bytes_before = chunk->file_size();
  row.file_bytes_after = row.file_bytes_before;
  VERGER_TRY(row.executed, preview.executes(*chunk, row.weight));
  if (row.executed) {
    if (shared == nullptr) {
      VERGER_TRY(shared, SharedLimits::load(preview.state(), [] { return Result<void>{}; }));
    }
    const auto& options = preview.options();
    VERGER_TRY(source.counter,
               detail::ChunkCounter::open(
                   chunk, preview.rules(),
                   LimitsReader(*shared, options.limits_cache / options.chunks_read_at_once())));
  }
  ++next_to_open;
  const bool ended = !row.executed;
  return Ahead::Opened{.source = std::move(source), .ended = ended};
}

Result<bool> EstimateJob::State::count_chunks(std::uint32_t units, Estimate& estimate) {
  VERGER_RETURN_IF_ERROR(counting.open([this] { return open_next(); }));
  if (counting.empty()) {
    counting.end_threads();
    return true;
  }
  if (auto& first = counting.first(); !first.listed) {
    estimate.chunks.push_back(first.row);
    first.listed = true;
  }
  VERGER_RETURN_IF_ERROR(counting.step(
      units, [&, this](const detail::CountedRecords& counted, bool /*may_wait*/) -> Result<bool> {
        VERGER_RETURN_IF_ERROR(take(counted, estimate));
        return true;
      }));
  if (counting.first_is_taken()) {
    close_chunk(estimate);
    counting.drop_first();
  }
  return false;
}

Result<void> EstimateJob::State::take(const detail::CountedRecords& counted, Estimate& estimate) {
  auto& row = estimate.chunks.back();
  row.kept += counted.kept;
  bytes_done += counted.kept.bytes;
  const auto& removed = counted.removed;
  for (std::size_t n = 0; n < removed.size(); ++n) {
    if (n + 3 * kAhead < removed.size()) {
      top.expect_place(removed[n + 3 * kAhead].name_hash);
      top.expect_stream(removed[n + 2 * kAhead].name_hash);
      top.expect_name(removed[n + kAhead].name_hash);
    }
    const auto& record = removed[n];
    const Volume volume{1, record.bytes};
    bytes_done += volume.bytes;
    auto& stream = top.at(counted.name_of(record), record.name_hash);
    if (!record.rule && stream.facts == nullptr) {
      const auto lock = shared->lock();  // those who count use the state, too
      VERGER_TRY(const auto facts, rules.facts_of(stream.name));
      stream.facts = std::make_unique<const RemovalFacts>(facts);
    }
    const auto rule = record.rule ? *record.rule : removal_rule(record.number, *stream.facts);
    estimate.by_rule[static_cast<std::size_t>(rule)] += volume;
    row.removed += volume;
    stream.removed += volume;
  }
  if (counted.error) {
    return *counted.error;
  }
  return {};
}

void EstimateJob::State::close_chunk(Estimate& estimate) {
  const auto& chunk = chunks[next_to_close++];
  auto& row = estimate.chunks.back();
  const bool last = next_to_close == chunks.size();
  // A point that is yet to be written completes the last chunk, in which it is itself if it fits.
  const bool gets_point = last && preview.assumed();
  const bool completed = chunk->completed() || gets_point;
  detail::PhysicalChunk file{.start = row.start, .end = row.end};
  Volume behind;
  if (gets_point) {
    const auto point = point_record(preview);
    const auto data = static_cast<std::uint64_t>(chunk->data_size());
    const bool fits = !chunk->completed() &&
                      data + point.bytes <= static_cast<std::uint64_t>(parts.log.chunk_size());
    (fits ? row.kept : behind) += point;
    if (!chunk->completed()) {
      row.file_bytes_before = log::scavenged_file_size(data + (fits ? point.bytes : 0), 0);
      row.file_bytes_after = row.file_bytes_before;
    }
  }
  if (row.executed) {
    row.file_bytes_after = log::scavenged_file_size(row.kept.bytes, row.kept.records);
    file.records = row.kept;
  } else {
    bytes_done += preview.reaches(*chunk) ? static_cast<std::uint64_t>(chunk->data_size()) : 0;
    file.records.bytes = static_cast<std::uint64_t>(chunk->data_size()) + row.kept.bytes;
    file.records.records = row.kept.records;  // those of the chunk itself are counted if needed
    row.kept = {};
    uncounted.push_back(physical.size());
  }
  file.file_bytes = row.file_bytes_after;
  if (completed && (physical.empty() || physical.back().end + 1 == row.start)) {
    physical.push_back(file);
    if (behind.records > 0) {
      physical.push_back({.start = row.end + 1,
                          .end = row.end + 1,
                          .records = behind,
                          .file_bytes = log::scavenged_file_size(behind.bytes, 0)});
    }
  } else if (!row.executed) {
    uncounted.pop_back();
  }
  if (!preview.reaches(*chunk)) {
    estimate.chunks.pop_back();
  }
}

Result<std::uint64_t> EstimateJob::State::records_in(
    const std::shared_ptr<const log::Chunk>& chunk) const {
  if (const auto footer = chunk->footer(); footer && chunk->header().scavenged) {
    return static_cast<std::uint64_t>(footer->map_size / (footer->map_12_bytes ? 12 : 8));
  }
  VERGER_TRY(auto scan, log::ChunkScanner::open(chunk, chunk->start_position()));
  for (std::uint64_t count = 0;; ++count) {
    VERGER_TRY(const auto record, scan.next());
    if (!record) {
      return count;
    }
  }
}

Result<void> EstimateJob::State::plan(Estimate& estimate) {
  if (!preview.options().merge_chunks || preview.stage() > Stage::kMergingChunks) {
    return {};
  }
  const auto chunk_size = static_cast<std::uint64_t>(parts.log.chunk_size());
  for (const auto n : detail::chunks_to_merge(physical, chunk_size)) {
    if (std::ranges::find(uncounted, n) != uncounted.end()) {
      VERGER_TRY(const auto count, records_in(parts.log.chunk_at(LogPosition(
                                       std::int64_t{physical[n].start} * parts.log.chunk_size()))));
      physical[n].records.records += count;
    }
  }
  estimate.merges = detail::plan_merges(physical, chunk_size);
  return {};
}

Result<bool> EstimateJob::State::count_table(std::uint32_t units, Estimate& estimate) {
  if (preview.stage() > Stage::kExecutingIndex) {
    return true;
  }
  for (std::uint32_t n = 0; n < units; ++n) {
    if (!table) {
      if (next_table == slots.size()) {
        return true;
      }
      const auto& slot = slots[next_table];
      table.emplace(slot.table);
      cursor = preview.state().limits_cursor();
      estimate.tables.push_back({.file = slot.table->path().filename().string(),
                                 .level = slot.level,
                                 .position = slot.position,
                                 .file_bytes_before = slot.table->file_size(),
                                 .file_bytes_after = slot.table->file_size()});
    }
    VERGER_TRY(const auto ahead, table->ahead());
    auto& row = estimate.tables.back();
    if (!ahead.empty()) {
      VERGER_TRY(const auto counted,
                 count_entries(ahead.first(std::min<std::size_t>(ahead.size(), units - n)), row));
      table->skip(counted);
      n += static_cast<std::uint32_t>(counted) - 1;
      continue;
    }
    cursor.reset();
    table.reset();
    const auto& old = *slots[next_table++].table;
    row.rewritten = row.entries_removed > 0 || old.version() < index::kNewestTableVersion;
    if (row.rewritten) {
      row.file_bytes_after =
          index::ptable_file_size(row.entries_kept, parts.index.options().cache_depth);
    }
    bytes_done += row.file_bytes_before;
  }
  return false;
}

/// Of the first hash among them; how many.
Result<std::uint64_t> EstimateJob::State::count_entries(std::span<const index::IndexEntry> entries,
                                                        TableEstimate& row) {
  const auto hash = entries.front().hash;
  const auto end = std::ranges::find_if(
      entries, [hash](const index::IndexEntry& entry) { return entry.hash != hash; });
  const auto run = entries.first(static_cast<std::size_t>(end - entries.begin()));
  if (preview.state().is_collision_hash(hash)) {
    for (const auto& entry : run) {
      VERGER_TRY(const bool keep, keeps_colliding(entry));
      ++(keep ? row.entries_kept : row.entries_removed);
    }
    return run.size();
  }
  VERGER_TRY(const auto* found, cursor->seek(hash));
  const auto rules_of_run = preview.rules();
  const auto kept = found == nullptr
                        ? std::ssize(run)
                        : std::ranges::count_if(run, [&](const index::IndexEntry& entry) {
                            return keeps_entry(entry, *found, rules_of_run);
                          });
  row.entries_kept += static_cast<std::uint64_t>(kept);
  row.entries_removed += run.size() - static_cast<std::uint64_t>(kept);
  return run.size();
}

/// As the index executor decides, in a log whose chunks have been executed.
Result<bool> EstimateJob::State::keeps_colliding(const index::IndexEntry& entry) {
  auto& state = preview.state();
  if (entry.position >= preview.point().position) {
    return true;
  }
  const auto record = parts.log.read(entry.position, buffer);
  if (!record) {
    return record.error().code == Errc::kNotFound ? Result<bool>(false) : record.error();
  }
  const auto* prepare = record->prepare();
  if (prepare == nullptr) {
    return false;
  }
  VERGER_TRY(const auto found, state.limits_by_name(prepare->stream));
  if (!found) {
    return true;
  }
  double weight = 0;
  const auto chunk = parts.log.chunk_at(entry.position);
  VERGER_TRY(const bool executed,
             chunk == nullptr ? Result<bool>(false) : preview.executes(*chunk, weight));
  const bool gone = executed && !keeps_prepare(*prepare, streams::is_metastream(prepare->stream),
                                               *found, preview.rules());
  return !gone && keeps_entry(entry, *found, preview.rules());
}

void EstimateJob::State::add_up(Estimate& estimate) {
  const auto save = [&](std::uint64_t before, std::uint64_t after) {
    estimate.space_saved += static_cast<std::int64_t>(before) - static_cast<std::int64_t>(after);
  };
  for (const auto& row : estimate.chunks) {
    if (preview.stage() == Stage::kExecutingChunks) {
      ++(row.executed ? estimate.chunks_executed : estimate.chunks_skipped);
    }
    if (row.executed) {
      estimate.removed += row.removed;
      estimate.kept += row.kept;
      estimate.bytes_read += row.kept.bytes + row.removed.bytes;
      estimate.bytes_written += row.file_bytes_after;
      estimate.largest_rewrite = std::max(estimate.largest_rewrite, row.file_bytes_after);
      save(row.file_bytes_before, row.file_bytes_after);
    }
  }
  for (const auto& merge : estimate.merges) {
    estimate.bytes_read += merge.bytes_before;
    estimate.bytes_written += merge.bytes_after;
    estimate.largest_merge = std::max(estimate.largest_merge, merge.bytes_after);
    save(merge.bytes_before, merge.bytes_after);
  }
  for (const auto& row : estimate.tables) {
    estimate.entries_removed += row.entries_removed;
    estimate.entries_kept += row.entries_kept;
    estimate.bytes_read += row.file_bytes_before;
    estimate.bytes_written += row.file_bytes_after;
    estimate.largest_table = std::max(estimate.largest_table, row.file_bytes_after);
    save(row.file_bytes_before, row.file_bytes_after);
  }
  // Accumulation reads the log from the last point on.
  const auto& checkpoint = preview.checkpoint();
  if (!checkpoint || checkpoint->stage == Stage::kDone ||
      checkpoint->stage == Stage::kAccumulating) {
    const auto done = !checkpoint ? -1
                      : checkpoint->stage == Stage::kDone
                          ? parts.log.chunk_of(checkpoint->point.position).value()
                          : checkpoint->done_chunk.value_or(-1);
    for (const auto& chunk : chunks) {
      if (chunk->end().value() > done && chunk->start_position() <= preview.point().position) {
        estimate.bytes_read += static_cast<std::uint64_t>(chunk->data_size());
      }
    }
  }
  const auto threads = static_cast<std::uint64_t>(std::max(preview.options().threads, 1));
  estimate.disk_need =
      estimate.state_bytes +
      std::max({estimate.largest_rewrite * std::min(threads, estimate.chunks_executed),
                estimate.largest_merge * std::min<std::uint64_t>(threads, estimate.merges.size()),
                estimate.largest_table});
  estimate.top = top.largest(top_count);
  estimate.top_is_exact = top.exact();
  estimate.streams_losing = top.streams();
}

EstimateJob::EstimateJob(Preview& preview, std::size_t top)
    : state_(std::make_unique<State>(preview, top)) {}
EstimateJob::~EstimateJob() = default;

Volume EstimateJob::removed_so_far() const {
  Volume out;
  for (const auto& chunk : estimate_.chunks) {
    out += chunk.removed;
  }
  return out;
}

std::uint64_t EstimateJob::bytes_done() const { return state_->bytes_done; }
std::uint64_t EstimateJob::bytes_total() const { return state_->bytes_total; }

Result<StepOutcome> EstimateJob::step(Budget budget) {
  using Phase = State::Phase;
  const auto units = std::max<std::uint32_t>(budget.units, 1);
  switch (state_->phase) {
    case Phase::kChunks: {
      VERGER_TRY(const bool ended, state_->count_chunks(units, estimate_));
      state_->phase = ended ? Phase::kMerges : Phase::kChunks;
      break;
    }
    case Phase::kMerges:
      VERGER_RETURN_IF_ERROR(state_->plan(estimate_));
      state_->phase = Phase::kTables;
      break;
    case Phase::kTables: {
      VERGER_TRY(const bool ended, state_->count_table(units, estimate_));
      if (ended) {
        VERGER_TRY(estimate_.state_bytes, state_->preview.state_bytes());
        state_->add_up(estimate_);
        state_->phase = Phase::kDone;
      }
      break;
    }
    case Phase::kDone:
      return StepOutcome{StepOutcome::Kind::kDone, {}};
  }
  return StepOutcome{};
}

}  // namespace verger::scavenge
