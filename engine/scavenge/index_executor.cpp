#include "engine/scavenge/index_executor.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/assert.h"
#include "engine/base/failpoint.h"
#include "engine/index/ptable.h"

namespace verger::scavenge {
namespace {

constexpr std::uint64_t kEntriesBetweenRests = 32'768;

}  // namespace

struct IndexExecutor::Table {
  index::TableSlot slot;
  index::PTableScanner scanner;
  /// Made when the first entry goes (at once for an old version): mostly a table stays as it is.
  std::optional<index::PTableWriter> writer;
  /// What was kept before that, to be copied first.
  std::optional<index::PTableScanner> before;
  std::uint64_t before_left = 0;
  std::unique_ptr<ScavengeState::LimitsCursor> limits;
  std::uint64_t kept = 0;
  std::uint64_t dropped = 0;
  Monotonic started;
  std::optional<index::IndexEntry> last = {};
};

IndexExecutor::IndexExecutor(RunContext& context)
    : context_(context), hold_(context.parts.index), slots_(context.parts.index.tables()) {
  context_.progress.total = slots_.size();
  // As the server: from the newest table to the oldest.
  std::ranges::sort(slots_, {}, [](const index::TableSlot& slot) {
    return std::pair(slot.level, -slot.position);
  });
}

IndexExecutor::~IndexExecutor() = default;

Result<StepOutcome> IndexExecutor::step(Budget budget) {
  auto outcome = run(budget);
  if (!outcome && table_ != nullptr) {
    report_failure(outcome.error());
  }
  return outcome;
}

Result<StepOutcome> IndexExecutor::run(Budget budget) {
  for (std::uint32_t n = 0; n < budget.units; ++n) {
    VERGER_RETURN_IF_ERROR(context_.check_stop());
    if (table_ == nullptr) {
      if (next_ == slots_.size()) {
        return StepOutcome{StepOutcome::Kind::kDone, {}};
      }
      VERGER_RETURN_IF_ERROR(open_table());
    }
    if (table_->before_left > 0) {
      VERGER_TRY(const auto* earlier, table_->before->next());
      VERGER_ASSERT(earlier != nullptr);
      VERGER_RETURN_IF_ERROR(table_->writer->append(*earlier));
      --table_->before_left;
      continue;
    }
    if (!table_->writer) {
      VERGER_TRY(const auto passed, pass_kept(budget.units - n));
      if (passed > 0) {
        n += passed - 1;
        if (const auto rest = rest_after(passed); rest.count() > 0) {
          return StepOutcome{StepOutcome::Kind::kRest, rest};
        }
        continue;
      }
    }
    VERGER_TRY(const auto* entry, table_->scanner.next());
    if (entry == nullptr) {
      VERGER_RETURN_IF_ERROR(close_table());
      continue;
    }
    note_order(*entry);
    VERGER_TRY(const bool keep, keeps(*entry));
    if (keep) {
      if (table_->writer) {
        VERGER_RETURN_IF_ERROR(table_->writer->append(*entry));
      }
      ++table_->kept;
    } else {
      if (!table_->writer) {
        VERGER_RETURN_IF_ERROR(start_writing());
      }
      ++table_->dropped;
    }
    if (const auto rest = rest_after(1); rest.count() > 0) {
      return StepOutcome{StepOutcome::Kind::kRest, rest};
    }
  }
  return StepOutcome{};
}

std::chrono::milliseconds IndexExecutor::rest_after(std::uint32_t entries) {
  entries_since_rest_ += entries;
  if (entries_since_rest_ < kEntriesBetweenRests) {
    return {};
  }
  entries_since_rest_ = 0;
  return context_.throttle.rest_due();
}

Result<std::uint32_t> IndexExecutor::pass_kept(std::uint32_t most) {
  auto& table = *table_;
  VERGER_TRY(auto ahead, table.scanner.ahead());
  ahead = ahead.first(std::min<std::size_t>(ahead.size(), most));
  const auto rules = context_.rules();
  std::size_t passed = 0;
  while (passed < ahead.size()) {
    const auto hash = ahead[passed].hash;
    if (context_.state.is_collision_hash(hash)) {
      break;
    }
    VERGER_TRY(const auto* limits, table.limits->seek(hash));
    const auto begin = passed;
    while (passed < ahead.size() && ahead[passed].hash == hash &&
           (limits == nullptr || keeps_entry(ahead[passed], *limits, rules))) {
      note_order(ahead[passed++]);
    }
    if (passed == begin) {
      break;
    }
  }
  table.scanner.skip(passed);
  table.kept += passed;
  return static_cast<std::uint32_t>(passed);
}

/// Of the streams that an entry may go for.
Result<std::unique_ptr<ScavengeState::LimitsCursor>> IndexExecutor::make_cursor() {
  if (context_.active_entries_stay) {
    VERGER_TRY(auto others, context_.state.limits_cursor_of_others());
    if (others != nullptr) {
      return others;
    }
  }
  return context_.state.limits_cursor();
}

Result<void> IndexExecutor::open_table() {
  auto& parts = context_.parts;
  const auto& slot = slots_[next_];
  VERGER_TRY(auto limits, make_cursor());
  table_ = std::make_unique<Table>(Table{.slot = slot,
                                         .scanner = index::PTableScanner(slot.table),
                                         .writer = {},
                                         .before = {},
                                         .before_left = 0,
                                         .limits = std::move(limits),
                                         .kept = 0,
                                         .dropped = 0,
                                         .started = parts.clock.monotonic(),
                                         .last = {}});
  ++next_;
  return slot.table->version() < index::kNewestTableVersion ? start_writing() : Result<void>{};
}

Result<void> IndexExecutor::start_writing() {
  auto& parts = context_.parts;
  const auto& table = table_->slot.table;
  VERGER_RETURN_IF_ERROR(context_.check_table(*table));
  VERGER_TRY(table_->writer,
             index::PTableWriter::create(parts.files, parts.index.directory(), parts.random.uuid(),
                                         table->count(), parts.index.options().cache_depth,
                                         context_.options.hash_in_background));
  if (table_->kept > 0) {
    table_->before.emplace(table);
    table_->before_left = table_->kept;
  }
  return {};
}

Result<void> IndexExecutor::close_table() {
  auto& parts = context_.parts;
  TableScavenged event;
  event.level = table_->slot.level;
  event.index = table_->slot.position;
  const auto& old = table_->slot.table;
  table_->limits.reset();
  if (!table_->writer) {
    event.entries_kept = old->count();
  } else {
    const auto old_size = old->file_size();
    VERGER_TRY(const auto path, table_->writer->finish());
    VERGER_TRY(const auto new_size, parts.files.file_size(path));
    VERGER_RETURN_IF_ERROR(parts.index.replace_table(old, path));
    VERGER_FAILPOINT("scavenge.index.after-table");
    event.entries_deleted = table_->dropped;
    event.entries_kept = table_->kept;
    event.space_saved = static_cast<std::int64_t>(old_size) - static_cast<std::int64_t>(new_size);
    event.scavenged = true;
  }
  event.time_taken = (parts.clock.monotonic() - table_->started).count() / 100;
  auto& progress = context_.progress;
  progress.entries_kept += event.entries_kept;
  progress.entries_discarded += event.entries_deleted;
  progress.space_saved += event.space_saved;
  progress.done = next_;
  table_.reset();
  context_.release(std::move(slots_[next_ - 1].table));  // the old file can go
  context_.events.table_scavenged(event);
  return context_.unit_finished(Stage::kExecutingIndex, next_);
}

void IndexExecutor::report_failure(const Error& error) {
  TableScavenged event;
  event.level = -1;
  event.index = -1;
  event.entries_kept = table_->slot.table->count();
  event.time_taken = (context_.parts.clock.monotonic() - table_->started).count() / 100;
  event.error = error.code == Errc::kCancelled ? "Scavenge cancelled" : error.message;
  table_.reset();
  context_.events.table_scavenged(event);
}

/// Within a hash, positions descend with the numbers; where they do not, the server only says so.
void IndexExecutor::note_order(const index::IndexEntry& entry) {
  auto& last = table_->last;
  if (last && last->hash == entry.hash && entry.position > last->position &&
      !context_.state.is_collision_hash(entry.hash)) {
    context_.parts.out.debug(
        fmt::format("SCAVENGING: index entry out of order: stream hash {}, number {} at {}; the "
                    "entry before it lies at {}",
                    entry.hash.value(), entry.number, entry.position, last->position));
  }
  last = entry;
}

Result<bool> IndexExecutor::keeps(const index::IndexEntry& entry) {
  if (entry.position >= context_.point.position) {
    return true;
  }
  if (!context_.state.is_collision_hash(entry.hash)) {
    VERGER_TRY(const auto* limits, table_->limits->seek(entry.hash));
    return limits == nullptr || keeps_entry(entry, *limits, context_.rules());
  }
  auto record = context_.parts.log.read(entry.position, buffer_);
  if (!record) {
    if (record.error().code == Errc::kNotFound) {
      return false;
    }
    return record.error();
  }
  const auto* prepare = record->prepare();
  if (prepare == nullptr) {
    return false;  // the entry belongs to no stream
  }
  VERGER_TRY(const auto limits, context_.state.limits_by_name(prepare->stream));
  return !limits || keeps_entry(entry, *limits, context_.rules());
}

}  // namespace verger::scavenge
