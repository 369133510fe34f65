#include <limits>

#include "engine/base/assert.h"
#include "engine/scavenge/detail/state_impl.h"
#include "engine/scavenge/scavenge_state.h"
#include "engine/streams/stream_names.h"

namespace verger::scavenge {
namespace {

std::optional<std::int64_t> optional_int(const sqlite::Statement& row, int column) {
  return row.column_is_null(column) ? std::nullopt : std::optional(row.column_int(column));
}

sqlite::MemoryRows::Value value_of(StreamHash hash) { return row_key(hash); }
sqlite::MemoryRows::Value value_of(const std::optional<std::int64_t>& number) {
  return number ? sqlite::MemoryRows::Value(*number) : sqlite::MemoryRows::Value();
}

/// Columns: isTombstoned, maxAge, discardPoint, maybeDiscardPoint.
StreamLimits original_limits_in(const sqlite::Statement& row, int first) {
  return {.tombstoned = row.column_int(first) != 0,
          .metastream = false,
          .discard = DiscardPoint(row.column_int(first + 2)),
          .maybe = DiscardPoint(row.column_int(first + 3)),
          .max_age_seconds = optional_int(row, first + 1)};
}

/// Columns: isTombstoned, discardPoint.
StreamLimits metastream_limits_in(const sqlite::Statement& row, int first) {
  return {.tombstoned = row.column_int(first) != 0,
          .metastream = true,
          .discard = DiscardPoint(row.column_int(first + 1)),
          .maybe = {},
          .max_age_seconds = {}};
}

/// Columns from 1 on: isTombstoned, maxAge, maxCount, truncateBefore, discardPoint,
/// maybeDiscardPoint.
OriginalData active_data_in(const sqlite::Statement& row) {
  return {.tombstoned = row.column_int(1) != 0,
          .max_age_seconds = optional_int(row, 2),
          .max_count = optional_int(row, 3),
          .truncate_before = optional_int(row, 4),
          .discard = DiscardPoint(row.column_int(5)),
          .maybe = DiscardPoint(row.column_int(6)),
          .status = StreamStatus::kActive};
}

Result<std::optional<StreamLimits>> find(sqlite::Statement& get, bool metastream) {
  VERGER_TRY(const bool found, get.step());
  std::optional<StreamLimits> limits;
  if (found) {
    limits = metastream ? metastream_limits_in(get, 0) : original_limits_in(get, 0);
  }
  get.reset();
  return limits;
}

}  // namespace

// --- Accumulating ---

Result<void> ScavengeState::set_limits(const StreamHandle& stream, const OriginalData& limits) {
  return impl_->put_limits.keyed(stream)
      .bind(2, limits.max_age_seconds)
      .bind(3, limits.max_count)
      .bind(4, limits.truncate_before)
      .run();
}

Result<void> ScavengeState::set_limits(std::span<const LimitsOfStream> streams,
                                       const std::function<Result<void>()>& pause) {
  const auto value = [&](std::size_t row, int column) {
    const auto& stream = streams[row];
    switch (column) {
      case 0:
        return value_of(stream.hash);
      case 1:
        return value_of(stream.max_age_seconds);
      case 2:
        return value_of(stream.max_count);
      default:
        return value_of(stream.truncate_before);
    }
  };
  VERGER_TRY(const bool ignored,
             impl_->new_limits->run(*impl_->put_all_limits,
                                    {.count = streams.size(), .value = value, .pause = pause}));
  static_cast<void>(ignored);
  return {};
}

Result<void> ScavengeState::set_tombstone(const StreamHandle& stream) {
  return impl_->put_tombstone.keyed(stream).run();
}

Result<void> ScavengeState::set_metastream_discard(const StreamHandle& metastream,
                                                   DiscardPoint discard) {
  return impl_->put_meta_discard.keyed(metastream).bind(2, discard.first_kept()).run();
}

Result<void> ScavengeState::set_metastream_tombstone(const StreamHandle& metastream) {
  return impl_->put_meta_tombstone.keyed(metastream).run();
}

Result<void> ScavengeState::set_time_range(std::int32_t chunk, TimeRange range) {
  return impl_->put_range->bind(1, std::int64_t{chunk})
      .bind(2, range.min.value())
      .bind(3, range.max.value())
      .run();
}

Result<std::optional<TimeRange>> ScavengeState::time_range(std::int32_t chunk) {
  auto& get = *impl_->get_range;
  get.bind(1, std::int64_t{chunk});
  VERGER_TRY(const bool found, get.step());
  std::optional<TimeRange> range;
  if (found) {
    range = TimeRange{Ticks(get.column_int(0)), Ticks(get.column_int(1))};
  }
  get.reset();
  return range;
}

Result<void> ScavengeState::add_weight(std::int32_t chunk, double weight) {
  return impl_->add_weight->bind(1, std::int64_t{chunk}).bind(2, weight).run();
}

// --- Calculating ---

Result<std::vector<OriginalRow>> ScavengeState::active_streams(const StreamHandle* from,
                                                               std::size_t limit) {
  std::vector<OriginalRow> rows;
  rows.reserve(limit);
  const auto wanted = static_cast<std::int64_t>(limit);
  constexpr auto kSmallest = std::numeric_limits<std::int64_t>::min();
  std::optional<std::int64_t> above;  // the greatest key that was looked at
  if (from == nullptr || from->by_name()) {
    auto& get = *impl_->get_active.by_name;
    get.bind(1, std::string_view(from == nullptr ? "" : from->name)).bind(2, wanted);
    while (rows.size() < limit) {
      VERGER_TRY(const bool more, get.step());
      if (!more) {
        break;
      }
      auto& row = rows.emplace_back();
      row.handle.name = get.column_text(0);
      row.handle.hash = impl_->hash(row.handle.name);
      row.data = active_data_in(get);
    }
    get.reset();
  } else {
    above = row_key(from->hash);
  }
  if (!impl_->few_are_active && above < std::numeric_limits<std::int64_t>::max()) {
    // Up to as many others may lie among them; the rest is then found by the index.
    auto budget = 2 * (wanted - static_cast<std::int64_t>(rows.size()));
    auto& scan = *impl_->scan_originals;
    scan.bind(1, above ? *above + 1 : kSmallest).bind(2, budget);
    bool more = true;
    while (rows.size() < limit && budget > 0) {
      VERGER_TRY(more, scan.step());
      if (!more) {
        break;
      }
      --budget;
      above = scan.column_int(0);
      if (scan.column_int(7) == static_cast<std::int64_t>(StreamStatus::kActive)) {
        auto& row = rows.emplace_back();
        row.handle.hash = StreamHash(static_cast<std::uint64_t>(*above));
        row.data = active_data_in(scan);
      }
    }
    scan.reset();
    if (!more) {
      return rows;
    }
    impl_->few_are_active = rows.size() < limit;
  }
  if (rows.size() < limit) {
    // The smallest hash of all could not be found by "greater than": it is queried by a double
    // below it, which SQLite compares exactly.
    auto& get = *impl_->get_active.by_hash;
    if (above) {
      get.bind(1, *above);
    } else {
      get.bind(1, -1e19);
    }
    get.bind(2, wanted - static_cast<std::int64_t>(rows.size()));
    while (rows.size() < limit) {
      VERGER_TRY(const bool more, get.step());
      if (!more) {
        break;
      }
      auto& row = rows.emplace_back();
      row.handle.hash = StreamHash(static_cast<std::uint64_t>(get.column_int(0)));
      row.data = active_data_in(get);
    }
    get.reset();
  }
  return rows;
}

Result<std::optional<OriginalData>> ScavengeState::original_data(const StreamHandle& stream) {
  auto& get = impl_->get_original_data.keyed(stream);
  VERGER_TRY(const bool found, get.step());
  std::optional<OriginalData> data;
  if (found) {
    data = OriginalData{.tombstoned = get.column_int(0) != 0,
                        .max_age_seconds = optional_int(get, 1),
                        .max_count = optional_int(get, 2),
                        .truncate_before = optional_int(get, 3),
                        .discard = DiscardPoint(get.column_int(4)),
                        .maybe = DiscardPoint(get.column_int(5)),
                        .status = static_cast<StreamStatus>(get.column_int(6))};
  }
  get.reset();
  return data;
}

Result<void> ScavengeState::set_calculated(const StreamHandle& stream, StreamStatus status,
                                           DiscardPoint discard, DiscardPoint maybe) {
  if (status == StreamStatus::kActive) {  // only active streams are calculated
    return impl_->put_points.keyed(stream)
        .bind(2, discard.first_kept())
        .bind(3, maybe.first_kept())
        .run();
  }
  return impl_->put_calculated.keyed(stream)
      .bind(2, static_cast<std::int64_t>(status))
      .bind(3, discard.first_kept())
      .bind(4, maybe.first_kept())
      .run();
}

Result<void> ScavengeState::set_calculated(std::span<const PointsOfStream> streams,
                                           const std::function<Result<void>()>& pause) {
  const auto value = [&](std::size_t row, int column) -> sqlite::MemoryRows::Value {
    const auto& stream = streams[row];
    return column == 0 ? value_of(stream.hash)
                       : (column == 1 ? stream.discard : stream.maybe).first_kept();
  };
  VERGER_TRY(const bool ignored,
             impl_->new_points->run(*impl_->put_all_points,
                                    {.count = streams.size(), .value = value, .pause = pause}));
  static_cast<void>(ignored);
  return {};
}

// --- Executing ---

Result<double> ScavengeState::weight(std::int32_t from_chunk, std::int32_t to_chunk) {
  auto& sum = *impl_->sum_weights;
  sum.bind(1, std::int64_t{from_chunk}).bind(2, std::int64_t{to_chunk});
  VERGER_TRY(const bool found, sum.step());
  const double weight = found ? sum.column_double(0) : 0;
  sum.reset();
  return weight;
}

Result<void> ScavengeState::reset_weights(std::int32_t from_chunk, std::int32_t to_chunk) {
  return impl_->drop_weights->bind(1, std::int64_t{from_chunk})
      .bind(2, std::int64_t{to_chunk})
      .run();
}

Result<std::optional<StreamLimits>> ScavengeState::limits_of(std::string_view name) {
  if (is_collision(name)) {
    return limits_by_name(name);
  }
  const auto stream_hash = impl_->hash(name);
  return streams::is_metastream(name) ? metastream_limits(stream_hash)
                                      : original_limits(stream_hash);
}

Result<std::optional<StreamLimits>> ScavengeState::limits_by_name(std::string_view name) {
  const bool metastream = streams::is_metastream(name);
  auto& get = metastream ? *impl_->get_metastream.by_name : *impl_->get_original.by_name;
  get.bind(1, name);
  return find(get, metastream);
}

Result<std::optional<StreamLimits>> ScavengeState::original_limits(StreamHash hash) {
  return find(impl_->get_original.keyed({hash, {}}), false);
}

Result<std::optional<StreamLimits>> ScavengeState::metastream_limits(StreamHash hash) {
  return find(impl_->get_metastream.keyed({hash, {}}), true);
}

Result<std::optional<StreamLimits>> ScavengeState::limits_by_hash(StreamHash hash) {
  VERGER_TRY(auto original, original_limits(hash));
  if (original) {
    return original;
  }
  return metastream_limits(hash);
}

Result<bool> ScavengeState::visit_limits(
    std::size_t most, const std::function<Result<void>(StreamHash, const StreamLimits&)>& visit) {
  VERGER_TRY(auto originals,
             impl_->prepare("SELECT key, isTombstoned, maxAge, discardPoint, maybeDiscardPoint, "
                            "maxCount, truncateBefore FROM OriginalStreamDatas WHERE isTombstoned "
                            "<> 0 OR discardPoint > 0 "
                            "OR maybeDiscardPoint > 0"));
  VERGER_TRY(auto metastreams, impl_->prepare("SELECT key, isTombstoned, discardPoint FROM "
                                              "MetastreamDatas WHERE isTombstoned <> 0 OR "
                                              "discardPoint > 0"));
  std::size_t found = 0;
  for (auto* rows : {&originals, &metastreams}) {
    const bool metastream = rows == &metastreams;
    for (;;) {
      VERGER_TRY(const bool more, rows->step());
      if (!more) {
        break;
      }
      if (++found > most) {
        return false;
      }
      const StreamHash hash(static_cast<std::uint64_t>(rows->column_int(0)));
      if (metastream) {
        VERGER_RETURN_IF_ERROR(visit(hash, metastream_limits_in(*rows, 1)));
        continue;
      }
      auto limits = original_limits_in(*rows, 1);
      limits.discarded_by = rule_of_discard({.max_age_seconds = limits.max_age_seconds,
                                             .max_count = optional_int(*rows, 5),
                                             .truncate_before = optional_int(*rows, 6),
                                             .discard = limits.discard});
      VERGER_RETURN_IF_ERROR(visit(hash, limits));
    }
  }
  return true;
}

// --- Cleaning ---

Result<bool> ScavengeState::any_weight() {
  VERGER_TRY(const auto count, impl_->database.query_int(
                                   "SELECT EXISTS (SELECT 1 FROM ChunkWeights WHERE value <> 0)"));
  return count != 0;
}

Result<void> ScavengeState::delete_metastreams() {
  return impl_->database.execute(
      "DELETE FROM MetastreamDatas; DELETE FROM MetastreamDataCollisions;");
}

Result<void> ScavengeState::delete_originals(bool archived_too) {
  const std::string condition = archived_too ? " WHERE status IN (2, 3);" : " WHERE status = 3;";
  return impl_->database.execute("DELETE FROM OriginalStreamDatas" + condition +
                                 "DELETE FROM OriginalStreamDataCollisions" + condition);
}

Result<std::int64_t> ScavengeState::count_rows(std::string_view table) {
  return impl_->database.query_int("SELECT count(*) FROM " + std::string(table));
}

// --- One pass over all limits ---

namespace {

/// A table's rows in descending unsigned order of the hash: the negative keys first.
class TableCursor {
 public:
  /// Of the original streams: those of one status, or all of them.
  TableCursor(sqlite::Database& database, bool metastream,
              std::optional<StreamStatus> status = std::nullopt)
      : database_(&database), metastream_(metastream), status_(status) {}

  /// Goes down to the first row at or below `hash`; true when it is there.
  Result<bool> seek(StreamHash hash, StreamLimits& limits) {
    // A few rows further is near; from there on the tree is faster than the row chain.
    constexpr int kNear = 16;
    for (int steps = 0; !ended_ && (!row_ || *row_ > hash); ++steps) {
      if (steps == kNear) {
        rows_.reset();
      }
      VERGER_RETURN_IF_ERROR(advance(hash));
    }
    if (ended_ || *row_ != hash) {
      return false;
    }
    limits = metastream_ ? metastream_limits_in(*rows_, 1) : original_limits_in(*rows_, 1);
    return true;
  }

 private:
  static constexpr std::uint64_t kNegative = std::uint64_t{1} << 63U;

  Result<void> advance(StreamHash wanted) {
    if (!rows_) {
      // Below the highest bit there are no negative keys left to visit.
      negative_ = wanted.value() >= kNegative;
      VERGER_RETURN_IF_ERROR(start(wanted));
    }
    for (;;) {
      VERGER_TRY(const bool more, rows_->step());
      if (more) {
        row_ = StreamHash(static_cast<std::uint64_t>(rows_->column_int(0)));
        return {};
      }
      if (!negative_) {
        ended_ = true;
        return {};
      }
      negative_ = false;
      VERGER_RETURN_IF_ERROR(start(StreamHash(kNegative - 1)));
    }
  }

  Result<void> start(StreamHash from) {
    rows_.reset();
    std::string sql = metastream_ ? "SELECT key, isTombstoned, discardPoint FROM MetastreamDatas"
                                  : "SELECT key, isTombstoned, maxAge, discardPoint, "
                                    "maybeDiscardPoint FROM OriginalStreamDatas";
    sql += negative_ ? " WHERE key < 0 AND key <= ?1" : " WHERE key >= 0 AND key <= ?1";
    sql += status_ ? " AND status = ?2 ORDER BY key DESC" : " ORDER BY key DESC";
    VERGER_TRY(rows_, database_->prepare(sql));
    rows_->bind(1, static_cast<std::int64_t>(from.value()));
    if (status_) {
      rows_->bind(2, static_cast<std::int64_t>(*status_));
    }
    return {};
  }

  sqlite::Database* database_;
  bool metastream_;
  std::optional<StreamStatus> status_;
  bool negative_ = true;
  bool ended_ = false;
  std::optional<sqlite::Statement> rows_;
  std::optional<StreamHash> row_;
};

class StateCursor final : public ScavengeState::LimitsCursor {
 public:
  /// `hidden`: further original streams, which matter only where a metastream has their hash.
  StateCursor(std::vector<TableCursor> originals, std::optional<TableCursor> hidden,
              sqlite::Database& database)
      : originals_(std::move(originals)),
        hidden_(std::move(hidden)),
        metastreams_(database, true) {}

  Result<const StreamLimits*> seek(StreamHash hash) override {
    if (asked_ && *asked_ == hash) {
      return found_ ? &limits_ : nullptr;
    }
    VERGER_ASSERT(!asked_ || hash < *asked_);
    asked_ = hash;
    for (auto& rows : originals_) {
      VERGER_TRY(found_, rows.seek(hash, limits_));
      if (found_) {
        return &limits_;
      }
    }
    VERGER_TRY(found_, metastreams_.seek(hash, limits_));
    if (found_ && hidden_) {
      VERGER_TRY(const bool ignored, hidden_->seek(hash, limits_));  // original streams come first
      static_cast<void>(ignored);
    }
    return found_ ? &limits_ : nullptr;
  }

 private:
  std::vector<TableCursor> originals_;
  std::optional<TableCursor> hidden_;
  TableCursor metastreams_;
  std::optional<StreamHash> asked_;
  bool found_ = false;
  StreamLimits limits_;
};

}  // namespace

std::unique_ptr<ScavengeState::LimitsCursor> ScavengeState::limits_cursor() {
  std::vector<TableCursor> all;
  all.emplace_back(impl_->database, /*metastream=*/false);
  return std::make_unique<StateCursor>(std::move(all), std::nullopt, impl_->database);
}

Result<std::unique_ptr<ScavengeState::LimitsCursor>> ScavengeState::limits_cursor_of_others() {
  VERGER_TRY(const auto unknown,
             impl_->database.query_int("SELECT EXISTS (SELECT 1 FROM OriginalStreamDatas WHERE "
                                       "status IS NULL OR status < 1 OR status > 3)"));
  if (unknown != 0) {
    return std::unique_ptr<LimitsCursor>();
  }
  std::vector<TableCursor> others;
  others.emplace_back(impl_->database, /*metastream=*/false, StreamStatus::kArchived);
  others.emplace_back(impl_->database, /*metastream=*/false, StreamStatus::kSpent);
  return std::unique_ptr<LimitsCursor>(std::make_unique<StateCursor>(
      std::move(others), TableCursor(impl_->database, /*metastream=*/false, StreamStatus::kActive),
      impl_->database));
}

}  // namespace verger::scavenge
