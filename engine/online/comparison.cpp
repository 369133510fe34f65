#include "engine/online/comparison.h"

#include <fmt/format.h>

#include "engine/log/chunk.h"
#include "engine/online/installation.h"
#include "engine/scavenge/rules.h"
#include "engine/scavenge/scavenge_state.h"
#include "engine/streams/stream_names.h"

namespace verger::online_scavenge {
namespace {

constexpr std::size_t kMostBytesAtOnce = std::size_t{16} << 20U;

Error unlike(const log::Chunk& made, std::string_view what) {
  return {Errc::kCorruption, fmt::format("{}: {}", made.path().string(), what)};
}

}  // namespace

struct ComparisonJob::State {
  Machine machine;
  DatabasePlace place;
  Preparation preparation;
  index::HashFunction hash;
  WorkProgress progress{.unit = "chunks"};

  std::unique_ptr<scavenge::ScavengeState> limits{};
  std::size_t next = 0;  ///< of the preparation's chunks
  /// Of the chunk that is compared.
  std::shared_ptr<log::Chunk> made{};
  std::optional<log::ChunkScanner> source_records{};
  std::optional<log::ChunkScanner> made_records{};
  std::optional<LogPosition> wanted{};  ///< of the next record that was kept
  Bytes wanted_bytes{};
  std::vector<log::PosmapEntry> map{};
  std::int64_t data_size = 0;
  std::uint64_t kept = 0;

  Result<void> open_next();
  Result<void> check_ends(const log::Chunk& source) const;
  Result<void> take_made();
  /// True: the chunk is compared.
  Result<bool> compare(std::uint32_t records);
  Result<void> check_removed(const log::LogRecord& record);
  Result<void> check_whole();
};

Result<void> ComparisonJob::State::open_next() {
  const auto& chunk = preparation.chunks[next];
  auto& files = machine.files;
  VERGER_TRY(const auto source,
             log::Chunk::open_completed(files, place.database / chunk.source.name));
  VERGER_TRY(const auto described, describe_chunk(files, place.database / chunk.source.name));
  if (described != chunk.source) {
    return Error{Errc::kConflict, fmt::format("{}: is another file than the one that was scavenged",
                                              source->path().string())};
  }
  VERGER_TRY(made,
             log::Chunk::open_completed(files, shadow_directory(place.database) / chunk.made.name));
  VERGER_RETURN_IF_ERROR(check_ends(*source));
  VERGER_TRY(map, made->posmap());
  VERGER_TRY(source_records, log::ChunkScanner::open(source, source->start_position()));
  VERGER_TRY(made_records, log::ChunkScanner::open(made, made->start_position()));
  data_size = 0;
  kept = 0;
  return take_made();
}

Result<void> ComparisonJob::State::check_ends(const log::Chunk& source) const {
  const auto& header = made->header();
  const auto footer = *made->footer();
  const auto& chunk = preparation.chunks[next];
  if (header.start != source.start() || header.end != source.end() ||
      header.chunk_size != source.header().chunk_size || !header.scavenged ||
      header.transform_type != 0 || header.chunk_id != chunk.made.chunk_id) {
    return unlike(*made, "its header is not that of a scavenged chunk in place of the node's");
  }
  if (footer.md5 != chunk.made.md5 || made->file_size() != chunk.made.size ||
      !footer.map_12_bytes) {
    return unlike(*made, "its footer is not the one that was written");
  }
  return made->verify_md5();
}

Result<void> ComparisonJob::State::take_made() {
  VERGER_TRY(const auto record, made_records->next());
  if (!record) {
    wanted.reset();
    return {};
  }
  const auto& at = map.size() > kept ? map[kept] : log::PosmapEntry{.actual = -1, .local = -1};
  if (at.actual != data_size ||
      at.local != record->position().value() - made->start_position().value()) {
    return unlike(
        *made, fmt::format("the position map does not have the record at {}", record->position()));
  }
  data_size += static_cast<std::int64_t>(record->framed.size());
  ++kept;
  wanted = record->position();
  wanted_bytes.assign(record->framed.begin(), record->framed.end());
  return {};
}

Result<void> ComparisonJob::State::check_removed(const log::LogRecord& record) {
  const auto* prepare = record.prepare();
  bool keeps = true;
  if (prepare != nullptr) {
    VERGER_TRY(const auto found, limits->limits_of(prepare->stream));
    const auto& point = preparation.point;
    keeps = scavenge::keeps_prepare(
        *prepare, streams::is_metastream(prepare->stream), found.value_or(scavenge::StreamLimits{}),
        {.point = point.position, .effective_now = point.effective_now});
  }
  if (keeps) {
    return unlike(*made, fmt::format("the record at {} is missing, and no rule removes it",
                                     record.position()));
  }
  return {};
}

Result<bool> ComparisonJob::State::compare(std::uint32_t records) {
  std::size_t bytes = 0;
  for (std::uint32_t n = 0; n < records && bytes < kMostBytesAtOnce; ++n) {
    VERGER_TRY(const auto record, source_records->next());
    if (!record) {
      VERGER_RETURN_IF_ERROR(check_whole());
      return true;
    }
    bytes += record->framed.size();
    progress.bytes += record->framed.size();
    if (wanted && *wanted == record->position()) {
      if (!same_bytes(wanted_bytes, record->framed)) {
        return unlike(*made, fmt::format("the record at {} is not the node's", *wanted));
      }
      VERGER_RETURN_IF_ERROR(take_made());
    } else {
      VERGER_RETURN_IF_ERROR(check_removed(*record));
    }
  }
  return false;
}

Result<void> ComparisonJob::State::check_whole() {
  const auto& chunk = preparation.chunks[next];
  if (wanted) {
    return unlike(*made, fmt::format("the node's chunk has no record at {}", *wanted));
  }
  if (kept != map.size() || kept != chunk.records_kept || data_size != made->data_size()) {
    return unlike(*made, "its records are not as many as its footer and its run say");
  }
  return {};
}

ComparisonJob::ComparisonJob(const Machine& machine, DatabasePlace place, Preparation preparation,
                             index::HashFunction hash)
    : state_(std::make_unique<State>(State{.machine = machine,
                                           .place = std::move(place),
                                           .preparation = std::move(preparation),
                                           .hash = hash})) {
  state_->progress.total = state_->preparation.chunks.size();
}

ComparisonJob::~ComparisonJob() = default;

Result<StepOutcome> ComparisonJob::step(Budget budget) {
  auto& s = *state_;
  if (s.limits == nullptr) {
    VERGER_TRY(s.limits, open_shadow_state(s.machine.files, s.place.database, s.hash));
  }
  if (s.next == s.preparation.chunks.size()) {
    s.limits.reset();
    s.preparation.compared = true;
    VERGER_RETURN_IF_ERROR(store_preparation(s.machine.files, s.place.database, s.preparation));
    return StepOutcome{StepOutcome::Kind::kDone, {}};
  }
  if (!s.source_records) {
    VERGER_RETURN_IF_ERROR(s.open_next());
    return StepOutcome{};
  }
  VERGER_TRY(const bool compared, s.compare(budget.units));
  if (compared) {
    s.source_records.reset();
    s.made_records.reset();
    s.made.reset();
    ++s.next;
    ++s.progress.done;
  }
  return StepOutcome{};
}

const WorkProgress& ComparisonJob::progress() const { return state_->progress; }
const Preparation& ComparisonJob::preparation() const { return state_->preparation; }

}  // namespace verger::online_scavenge
