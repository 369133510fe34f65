#include "engine/scavenge/estimate.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <iterator>
#include <mutex>
#include <ranges>
#include <span>

#include "engine/index/ptable.h"
#include "engine/index/ptable_size.h"
#include "engine/log/chunk_size.h"
#include "engine/scavenge/chunk_rewrite.h"
#include "engine/scavenge/detail/chunk_count.h"
#include "engine/scavenge/detail/merge_plan.h"
#include "engine/scavenge/detail/top_streams.h"
#include "engine/scavenge/parallel_runner.h"
#include "engine/streams/stream_names.h"

namespace verger::scavenge {
namespace {

/// Records of a step, where nothing is counted ahead and where it is.
constexpr std::uint32_t kRecordsOfCountingStep = 8192;
constexpr std::uint32_t kRecordsOfCountingStepAhead = 32'768;
/// What all lanes together hold.
constexpr std::size_t kMostCounted = std::size_t{8} << 20U;
/// How many records ahead the memory for a stream is fetched.
constexpr std::size_t kAhead = 8;

/// How many chunks are counted side by side; their threads are the job's own.
std::size_t lanes_of(const ScavengeOptions& options) {
  return options.hash_in_background && options.throttle_percent == 100
             ? static_cast<std::size_t>(std::max(options.threads, 2))
             : 1;
}

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
        most_lanes(lanes_of(preview.options())),
        own_runner(most_lanes > 1 ? make_thread_runner(static_cast<int>(most_lanes)) : nullptr) {
    for (const auto& chunk : chunks) {
      bytes_total += preview.reaches(*chunk) ? static_cast<std::uint64_t>(chunk->data_size()) : 0;
    }
    for (const auto& slot : slots) {
      bytes_total += slot.table->file_size();
    }
  }

  /// A chunk that is, or was, counted.
  struct Lane {
    ChunkEstimate row;
    std::unique_ptr<detail::ChunkCounter> counter;  ///< nullptr: the chunk would not be rewritten
    std::deque<detail::CountedRecords> counted;
    std::deque<detail::CountedRecords> fresh;  ///< of this step
    bool ended = false;
    bool listed = false;  ///< the row is the last one of the estimate

    [[nodiscard]] std::size_t bytes() const;
  };

  Result<void> open_lanes();
  Result<void> open_lane();
  void count(Lane& lane, std::uint32_t records, std::size_t held,
             const std::atomic<bool>& enough) const;
  /// True once there is no further chunk.
  Result<bool> count_chunks(std::uint32_t units, Estimate& estimate);
  Result<void> take_counted(Estimate& estimate);
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

  std::size_t next_chunk = 0;  ///< that of the first lane
  std::size_t most_lanes;
  std::unique_ptr<ParallelRunner> own_runner;
  std::deque<Lane> lanes;
  std::vector<detail::PhysicalChunk> physical;
  std::vector<std::size_t> uncounted;  ///< of `physical`: the records are not known yet
  detail::TopStreams top;

  std::size_t next_table = 0;
  std::optional<index::PTableScanner> table;
  std::unique_ptr<ScavengeState::LimitsCursor> cursor;
  Bytes buffer;
};

std::size_t EstimateJob::State::Lane::bytes() const {
  std::size_t sum = 0;
  for (const auto* records : {&counted, &fresh}) {
    for (const auto& some : *records) {
      sum += some.bytes();
    }
  }
  return sum;
}

Result<void> EstimateJob::State::open_lanes() {
  while (lanes.size() < most_lanes && next_chunk + lanes.size() < chunks.size()) {
    auto opened = open_lane();
    if (!opened && lanes.empty()) {
      return opened;
    }
    if (!opened) {
      break;  // reported once it is the first one
    }
  }
  return {};
}

Result<void> EstimateJob::State::open_lane() {
  const auto& chunk = chunks[next_chunk + lanes.size()];
  Lane lane;
  lane.row.file = chunk->path().filename().string();
  lane.row.start = chunk->start().value();
  lane.row.end = chunk->end().value();
  lane.row.file_bytes_before = chunk->file_size();
  lane.row.file_bytes_after = lane.row.file_bytes_before;
  VERGER_TRY(lane.row.executed, preview.executes(*chunk, lane.row.weight));
  lane.ended = !lane.row.executed;
  if (lane.row.executed) {
    if (shared == nullptr) {
      VERGER_TRY(shared, SharedLimits::load(preview.state(), [] { return Result<void>{}; }));
    }
    VERGER_TRY(lane.counter,
               detail::ChunkCounter::open(
                   chunk, preview.rules(),
                   LimitsReader(*shared, preview.options().limits_cache / most_lanes)));
  }
  lanes.push_back(std::move(lane));
  return {};
}

void EstimateJob::State::count(Lane& lane, std::uint32_t records, std::size_t held,
                               const std::atomic<bool>& enough) const {
  do {
    const auto& counted = lane.fresh.emplace_back(lane.counter->read(records));
    lane.ended = counted.ended || counted.error.has_value();
    held += counted.bytes();
  } while (!lane.ended && held < kMostCounted / most_lanes &&
           !enough.load(std::memory_order_relaxed));
}

Result<bool> EstimateJob::State::count_chunks(std::uint32_t units, Estimate& estimate) {
  VERGER_RETURN_IF_ERROR(open_lanes());
  if (lanes.empty()) {
    own_runner.reset();
    return true;
  }
  auto& first = lanes.front();
  if (!first.listed) {
    estimate.chunks.push_back(first.row);
    first.listed = true;
  }
  const auto records =
      std::min(units, own_runner == nullptr ? kRecordsOfCountingStep : kRecordsOfCountingStepAhead);
  std::atomic<bool> enough = false;
  Result<void> taken;
  std::vector<std::function<void()>> pieces;
  pieces.emplace_back([&] {
    taken = take_counted(estimate);
    enough.store(true, std::memory_order_relaxed);
  });
  for (auto& lane : lanes) {
    if (!lane.ended) {
      // Counted here: what the first lane holds is being taken while more of it is counted.
      pieces.emplace_back([&, this, held = lane.bytes()] { count(lane, records, held, enough); });
    }
  }
  (own_runner == nullptr ? inline_runner() : *own_runner).run(pieces);
  VERGER_RETURN_IF_ERROR(taken);
  for (auto& lane : lanes) {
    std::ranges::move(lane.fresh, std::back_inserter(lane.counted));
    lane.fresh.clear();
  }
  if (first.ended && first.counted.empty()) {
    close_chunk(estimate);
    lanes.pop_front();
  }
  return false;
}

Result<void> EstimateJob::State::take_counted(Estimate& estimate) {
  auto& counted = lanes.front().counted;
  while (!counted.empty()) {
    VERGER_RETURN_IF_ERROR(take(counted.front(), estimate));
    counted.pop_front();
  }
  return {};
}

Result<void> EstimateJob::State::take(const detail::CountedRecords& counted, Estimate& estimate) {
  auto& row = estimate.chunks.back();
  row.kept += counted.kept;
  bytes_done += counted.kept.bytes;
  const auto& removed = counted.removed;
  log::Prepare prepare;
  StreamLimits limits;
  for (std::size_t n = 0; n < removed.size(); ++n) {
    if (n + 3 * kAhead < removed.size()) {
      top.expect_place(removed[n + 3 * kAhead].name_hash);
      top.expect_stream(removed[n + 2 * kAhead].name_hash);
      top.expect_name(removed[n + kAhead].name_hash);
    }
    const auto& record = removed[n];
    const Volume volume{1, record.bytes};
    bytes_done += volume.bytes;
    prepare.stream = counted.name_of(record);
    prepare.flags = record.flags;
    prepare.expected_version = record.expected_version;
    limits.tombstoned = record.tombstoned;
    limits.discard = record.by_number ? DiscardPoint(kDeletedStream.value()) : DiscardPoint();
    auto& stream = top.at(prepare.stream, record.name_hash);
    // Its facts may be in the state, which the lanes use, too.
    const auto lock = stream.facts ? std::unique_lock<std::mutex>() : shared->lock();
    VERGER_TRY(const auto rule, rules.of(prepare, record.metastream, limits, stream.facts));
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
  const auto& chunk = chunks[next_chunk];
  auto& row = estimate.chunks.back();
  const bool last = next_chunk + 1 == chunks.size();
  ++next_chunk;
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
