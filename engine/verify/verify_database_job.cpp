#include "engine/verify/verify_database_job.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "engine/scavenge/scavenge_state.h"
#include "engine/streams/event_store.h"
#include "engine/verify/detail/chunk_files.h"
#include "engine/verify/detail/index_comparison.h"
#include "engine/verify/detail/scavenge_state_check.h"
#include "engine/verify/detail/table_sum.h"

namespace verger::verify {

class VerifyDatabaseJob::State {
 public:
  State(FileSystem& files, VerifyDatabaseOptions options, Clock& clock, Random& random, Log& log,
        scavenge::ParallelRunner& runner)
      : files_(files),
        options_(std::move(options)),
        clock_(clock),
        random_(random),
        log_(log),
        runner_(runner),
        chunk_files_(files, options_.directory, options_.chunk_size, findings_) {
    if (options_.index_directory.empty()) {
      options_.index_directory = options_.directory / "index";
    }
  }

  Result<bool> step(std::uint32_t units) {
    if (phase_ == Phase::kFind) {
      VERGER_RETURN_IF_ERROR(find_files());
    } else if (phase_ == Phase::kFiles) {
      VERGER_RETURN_IF_ERROR(look_at_files(units));
    } else if (phase_ == Phase::kState) {
      VERGER_RETURN_IF_ERROR(look_at_scavenge_state());
    } else if (auto stepped = step_on_index(units); !stepped) {
      if (expected_ && expected_->scratch_error()) {
        return expected_->scratch_error()->within("sorting the events of the log");
      }
      findings_.damage(options_.directory, std::nullopt,
                       (database_ == nullptr ? "index and log are not compared: "
                                             : "comparing index and log ended early: ") +
                           stepped.error().message);
      end_index();
    }
    return phase_ == Phase::kDone;
  }

  [[nodiscard]] VerifyProgress progress() const {
    using Stage = VerifyProgress::Stage;
    switch (phase_) {
      case Phase::kFind:
      case Phase::kFiles:
        return shown(Stage::kChunks, lane_bytes(), chunk_files_.bytes() + table_bytes_);
      case Phase::kOpened:
      case Phase::kFilters:
        return shown(Stage::kTables, 0, 0);
      case Phase::kLog:
        return shown(Stage::kLog, expected_ ? expected_->bytes() : 0,
                     expected_ ? expected_->total_bytes() : 0);
      case Phase::kCompare:
        return shown(Stage::kIndex, comparison_ ? comparison_->totals().entries : 0,
                     table_entries_);
      case Phase::kState:
      case Phase::kDone:
        return shown(Stage::kDone, 0, 0);
    }
    return {};
  }
  [[nodiscard]] const Findings& findings() const { return findings_; }
  [[nodiscard]] const VerifyTotals& totals() const { return totals_; }

 private:
  enum class Phase : std::uint8_t {
    kFind,
    kFiles,
    kOpened,
    kFilters,
    kLog,
    kCompare,
    kState,
    kDone,
  };

  [[nodiscard]] VerifyProgress shown(VerifyProgress::Stage stage, std::uint64_t done,
                                     std::uint64_t total) const {
    const bool counts_bytes = stage != VerifyProgress::Stage::kIndex;
    return {.stage = stage,
            .done = done,
            .total = total,
            .bytes = finished_bytes_ + (counts_bytes ? done : 0)};
  }
  [[nodiscard]] std::uint64_t lane_bytes() const { return lanes_ ? lanes_->bytes() : 0; }
  void end_lanes() {
    finished_bytes_ += lane_bytes();
    lanes_.reset();
  }

  /// All that is read from end to end, chunks and tables. The database is opened before, so that
  /// what chunks hold can be taken while they are read; if it cannot be, that is reported later.
  Result<void> find_files() {
    VERGER_RETURN_IF_ERROR(files_.make_directories(options_.scratch));
    VERGER_RETURN_IF_ERROR(chunk_files_.find());
    totals_.chunk_files = chunk_files_.count();
    totals_.chunk_bytes = chunk_files_.bytes();
    opened_ = open_database();
    const auto lanes = std::max<std::size_t>(options_.lanes, 1);
    queue_.emplace(lanes);
    for (const auto& slot : slots_) {
      table_bytes_ += slot.table->file_size();
      table_entries_ += slot.table->count();
      sums_.push_back(std::make_unique<detail::TableSum>(files_, slot.table));
      queue_->add(*sums_.back());
    }
    for (const auto* file : chunk_files_.live()) {
      chunks_.push_back(std::make_unique<detail::ChunkFileWork>(
          files_, *file, chunk_files_.chunk_size(), chunk_files_.writer()));
      queue_->add(*chunks_.back());
    }
    if (opened_) {
      expect_entries();
    }
    lanes_.emplace(lanes, runner_);
    for (std::size_t n = 0; n < lanes; ++n) {
      workers_.push_back(std::make_unique<detail::HashedFilesWork>(
          *queue_, expected_ ? expected_->part(n) : nullptr));
      lanes_->add(*workers_.back());
    }
    phase_ = Phase::kFiles;
    return {};
  }

  Result<void> look_at_files(std::uint32_t units) {
    if (!lanes_->step(units)) {
      return {};
    }
    end_lanes();
    workers_.clear();
    for (const auto& chunk : chunks_) {
      findings_.take(chunk->findings());
      totals_.records += chunk->records();
    }
    chunks_.clear();
    phase_ = Phase::kOpened;
    return {};
  }

  void expect_entries() {
    expected_.emplace(files_, options_.scratch, random_, *database_, options_.events_in_memory,
                      options_.lanes, runner_);
  }

  Result<void> step_on_index(std::uint32_t units) {
    switch (phase_) {
      case Phase::kOpened:
        return look_at_opened();
      case Phase::kFilters:
        return look_at_filters();
      case Phase::kLog:
        return read_log(units);
      case Phase::kCompare:
        return compare(units);
      case Phase::kFind:
      case Phase::kFiles:
      case Phase::kState:
      case Phase::kDone:
        break;
    }
    return {};
  }

  Result<void> open_database() {
    streams::DatabaseOptions how;
    how.log.access = log::Access::kReadOnly;
    how.log.chunk_size = options_.chunk_size;
    how.index.read_only = true;
    how.index_directory = options_.index_directory;
    VERGER_TRY(database_, streams::Database::open(files_, options_.directory, std::move(how),
                                                  /*commit_all=*/true, clock_, random_, log_));
    slots_ = database_->stream_index().tables();
    return {};
  }

  Result<void> look_at_opened() {
    VERGER_RETURN_IF_ERROR(opened_);
    detail::check_epochs(database_->transaction_log(), findings_);
    detail::check_reach(*database_, findings_);
    totals_.tables = slots_.size();
    for (const auto& sum : sums_) {
      findings_.take(sum->findings());
    }
    sums_.clear();
    phase_ = Phase::kFilters;
    return {};
  }

  Result<void> look_at_filters() {
    if (next_filter_ < slots_.size()) {
      detail::check_table_filter(files_, slots_[next_filter_++], findings_);
      return {};
    }
    VERGER_TRY(existence_, detail::ExistenceCheck::open(
                               files_, database_->stream_index().directory(), findings_));
    VERGER_TRY(const bool all, expected_->has_all());
    if (all) {
      start_comparison();
      return {};
    }
    // Some chunk is damaged, or not the one that the log has: what can be read of it is to be said.
    expected_.reset();
    expect_entries();
    phase_ = Phase::kLog;
    return {};
  }

  void start_comparison() {
    totals_.events = expected_->count();
    comparison_.emplace(*database_, *expected_, existence_, findings_);
    phase_ = Phase::kCompare;
  }

  Result<void> read_log(std::uint32_t units) {
    VERGER_TRY(const bool read, expected_->read(units, findings_));
    if (read) {
      finished_bytes_ += expected_->bytes();
      start_comparison();
    }
    return {};
  }

  Result<void> compare(std::uint32_t units) {
    const auto compared = comparison_->step(units);
    const auto& found = comparison_->totals();
    totals_.entries = found.entries;
    totals_.entries_without_record = found.without_record;
    totals_.records_without_entry = found.without_entry;
    VERGER_RETURN_IF_ERROR(compared);
    if (*compared) {
      end_index();
    }
    return {};
  }

  void end_index() {
    lanes_.reset();
    comparison_.reset();
    expected_.reset();
    sums_.clear();
    slots_.clear();
    database_.reset();
    phase_ = Phase::kState;
  }

  Result<void> look_at_scavenge_state() {
    const auto& index = options_.index_directory;
    if (const auto state =
            detail::check_scavenge_state(files_, random_, index, options_.scratch, findings_);
        !state) {
      if (state.error().code == Errc::kNoSpace) {
        return state.error();
      }
      findings_.damage(scavenge::ScavengeState::path_in(index), std::nullopt,
                       "not looked at: " + state.error().message);
    }
    phase_ = Phase::kDone;
    return {};
  }

  FileSystem& files_;
  VerifyDatabaseOptions options_;
  Clock& clock_;
  Random& random_;
  Log& log_;
  scavenge::ParallelRunner& runner_;
  Phase phase_ = Phase::kFind;
  Findings findings_;
  VerifyTotals totals_;
  std::uint64_t finished_bytes_ = 0;
  std::optional<detail::HashedFileQueue> queue_;
  std::vector<std::unique_ptr<detail::HashedFilesWork>> workers_;
  std::optional<detail::Lanes> lanes_;
  detail::ChunkFiles chunk_files_;
  std::vector<std::unique_ptr<detail::ChunkFileWork>> chunks_;
  std::unique_ptr<streams::Database> database_;
  Result<void> opened_;
  std::vector<index::TableSlot> slots_;
  std::uint64_t table_bytes_ = 0;
  std::uint64_t table_entries_ = 0;
  std::vector<std::unique_ptr<detail::TableSum>> sums_;
  std::size_t next_filter_ = 0;
  detail::ExistenceCheck existence_;
  std::optional<detail::ExpectedEntries> expected_;
  std::optional<detail::IndexComparison> comparison_;
};

VerifyDatabaseJob::VerifyDatabaseJob(FileSystem& files, VerifyDatabaseOptions options, Clock& clock,
                                     Random& random, Log& log, scavenge::ParallelRunner& runner)
    : state_(std::make_unique<State>(files, std::move(options), clock, random, log, runner)) {}
VerifyDatabaseJob::~VerifyDatabaseJob() = default;

Result<StepOutcome> VerifyDatabaseJob::step(Budget budget) {
  VERGER_TRY(const bool done, state_->step(std::max<std::uint32_t>(budget.units, 1)));
  return StepOutcome{done ? StepOutcome::Kind::kDone : StepOutcome::Kind::kMore};
}

VerifyProgress VerifyDatabaseJob::progress() const { return state_->progress(); }
const Findings& VerifyDatabaseJob::findings() const { return state_->findings(); }
const VerifyTotals& VerifyDatabaseJob::totals() const { return state_->totals(); }

}  // namespace verger::verify
