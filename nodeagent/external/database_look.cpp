#include "nodeagent/external/database_look.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <sys/stat.h>

#include "engine/base/sqlite.h"
#include "engine/index/index_map.h"
#include "engine/log/chunk.h"
#include "engine/log/writer_position.h"
#include "engine/scavenge/scavenge_state.h"
#include "engine/streams/find_scavenge_point.h"
#include "engine/streams/latest_scavenge_point.h"
#include "engine/streams/stream_names.h"
#include "nodeagent/external/read_through.h"

namespace verger::external {
namespace {

std::string database_id_of(const log::TransactionLog& log) {
  const auto& epochs = log.epochs().all();
  if (!epochs.empty() && epochs.front().previous.value() < 0) {
    return epochs.front().id.to_string();
  }
  // Of a long history only the newest part is at hand; the first epoch begins the log.
  Bytes buffer;
  const auto record = log.read(LogPosition(0), buffer);
  const auto* system = record ? std::get_if<log::SystemRecord>(&record->record) : nullptr;
  if (system == nullptr) {
    return {};
  }
  const auto epoch = log::decode_epoch_json(system->json);
  return epoch ? epoch->id.to_string() : std::string();
}

api::ScavengePoint to_api(const scavenge::ScavengePoint& point) {
  return {.number = point.number.value(),
          .position = point.position.value(),
          .effective_now = format_ticks(point.effective_now),
          .threshold = point.threshold};
}

constexpr std::string_view kCheckpoint = "SELECT value FROM Checkpoint WHERE key = 0";

Result<std::optional<std::string>> checkpoint_of_copy(FileSystem& files, const Path& path) {
  VERGER_TRY(auto state, sqlite::Database::open_snapshot(files, path));
  return state.query_text(kCheckpoint);
}

/// One row of a file that is too large to be copied. The server has a -wal beside it while it
/// scavenges, and only then writes to it.
Result<std::optional<std::string>> checkpoint_in_place(FileSystem& files, const Path& path) {
  const auto at_rest = [&]() -> Result<void> {
    VERGER_TRY(const auto at_work, files.exists(Path(path.string() + "-wal")));
    if (at_work) {
      return Error{Errc::kUnavailable,
                   fmt::format("{}: is large, and the server writes to it; it can be read once the "
                               "scavenge has ended",
                               path.string())};
    }
    return {};
  };
  VERGER_RETURN_IF_ERROR(at_rest());
  ReadThrough through(files, path);
  VERGER_TRY(auto state,
             sqlite::Database::open(through, path, {.create = false, .own_state = false}));
  VERGER_TRY(auto text, state.query_text(kCheckpoint));
  VERGER_RETURN_IF_ERROR(at_rest());
  return text;
}

}  // namespace

Result<std::unique_ptr<streams::Database>> DatabaseReading::open() const {
  streams::DatabaseOptions options;
  options.log.access = log::Access::kReadOnly;
  options.index.read_only = true;
  options.index.stream_existence_filter_size = 0;  // it is for writers, and large
  options.index_directory = place.index;
  return streams::Database::open(files, place.database, std::move(options), /*commit_all=*/true,
                                 clock, random, log);
}

std::chrono::milliseconds rest_after_look(std::chrono::milliseconds took) {
  constexpr int kRestPerLook = 20;
  constexpr std::chrono::milliseconds kMostRest{60'000};
  return std::min(kRestPerLook * took, kMostRest);
}

Result<node::ChunkInventory> list_chunks(FileSystem& files, const Path& database) {
  VERGER_TRY(const auto entries, files.list(database));
  struct Newest {
    int version = -1;
    std::int64_t size = 0;
  };
  std::map<std::int32_t, Newest> chunks;
  for (const auto& entry : entries) {
    const auto name = log::parse_chunk_file_name(entry.name);
    if (!name || entry.is_directory) {
      continue;
    }
    auto& newest = chunks[name->start.value()];
    if (name->version > newest.version) {
      newest = {name->version, static_cast<std::int64_t>(entry.size)};
    }
  }
  node::ChunkInventory out;
  for (const auto& [start, newest] : chunks) {
    ++out.file_count;
    out.total_bytes += newest.size;
    out.largest_bytes = std::max(out.largest_bytes, newest.size);
    out.last_chunk = start;
    out.files.push_back({.start = start, .bytes = newest.size});
  }
  return out;
}

Result<node::IndexInventory> list_tables(FileSystem& files, const Path& index_directory) {
  VERGER_TRY(const auto map, index::load_index_map(files, index_directory));
  std::vector<node::IndexTable> tables;
  for (const auto& line : map.tables) {
    VERGER_TRY(const auto size, files.file_size(index_directory / line.file));
    tables.push_back({.level = line.level, .bytes = static_cast<std::int64_t>(size)});
  }
  return node::inventory_of(tables, map.max_auto_merge_level);
}

Result<ScavengeProgress> read_scavenge_progress(FileSystem& files, const Path& index_directory,
                                                std::uint64_t size_limit) {
  const auto path = scavenge::ScavengeState::path_in(index_directory);
  VERGER_TRY(const auto exists, files.exists(path));
  ScavengeProgress out;
  if (!exists) {
    return out;
  }
  VERGER_TRY(const auto size, files.file_size(path));
  VERGER_TRY(const auto text, size > size_limit ? checkpoint_in_place(files, path)
                                                : checkpoint_of_copy(files, path));
  if (!text) {
    return out;
  }
  const auto checkpoint = scavenge::decode_checkpoint(*text);
  if (!checkpoint) {
    if (const auto stage = scavenge::unknown_stage(*text)) {
      return scavenge::unknown_stage_error(path.string(), *stage);
    }
    return Error{Errc::kCorruption,
                 fmt::format("{}: how far the scavenge came is not known: its checkpoint cannot be "
                             "read; the server's next scavenge begins anew",
                             path.string())};
  }
  if (checkpoint->stage == scavenge::Stage::kDone) {
    out.finished = to_api(checkpoint->point);
  } else {
    out.unfinished = api::UnfinishedScavenge{.point = to_api(checkpoint->point),
                                             .stage = std::string(to_string(checkpoint->stage))};
  }
  return out;
}

std::optional<ProgressStamp> stamp_of_progress(const Path& index_directory) {
  constexpr std::int64_t kSettledAfterNs = 2'000'000'000;
  const auto path = scavenge::ScavengeState::path_in(index_directory);
  struct stat directory{};
  if (::stat(index_directory.c_str(), &directory) != 0) {
    return std::nullopt;
  }
  struct timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const auto nanoseconds = [](const struct timespec& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  ProgressStamp out{.settled = true};
  for (const auto* suffix : {"", "-wal", "-journal"}) {
    struct stat file{};
    if (::stat((path.string() + suffix).c_str(), &file) != 0) {
      if (errno != ENOENT && errno != ENOTDIR) {
        return std::nullopt;
      }
      out.text += "-;";
      continue;
    }
    const auto written = nanoseconds(file.st_mtim);
    out.text += fmt::format("{}:{}:{};", file.st_ino, file.st_size, written);
    out.settled = out.settled && nanoseconds(now) - written > kSettledAfterNs;
  }
  return out;
}

Result<StepOutcome> FilesLook::step(Budget /*budget*/) {
  chunks_ = list_chunks(files_, place_.database);
  tables_ = list_tables(files_, place_.index_directory()).value_or(node::IndexInventory());
  stamp_ = stamp_of_progress(place_.index_directory());
  if (known_ && stamp_ && stamp_ == known_) {
    progress_is_known_ = true;
    return StepOutcome{.kind = StepOutcome::Kind::kDone};
  }
  progress_ = read_scavenge_progress(files_, place_.index_directory(), size_limit_);
  return StepOutcome{.kind = StepOutcome::Kind::kDone};
}

Result<StepOutcome> DigestOfFiles::step(Budget budget) {
  if (job_) {
    return job_->step(budget);
  }
  VERGER_TRY(database_, reading_.open());
  VERGER_TRY(const auto points, streams::scavenge_points(*database_));
  const auto point = streams::find_scavenge_point(points, point_);
  if (!point) {
    return point.error().within(reading_.place.database.string());
  }
  job_.emplace(*database_, point->position, point->effective_now, options_);
  return StepOutcome{.kind = StepOutcome::Kind::kMore};
}

Result<StepOutcome> LogLook::step(Budget budget) {
  if (cursor_) {
    return read_on(budget);
  }
  if (known_) {
    VERGER_TRY(const auto position, log::writer_position(reading_.files, reading_.place.database));
    if (position == known_->read_to) {
      facts_ = *known_;
      return StepOutcome{.kind = StepOutcome::Kind::kDone};
    }
    VERGER_TRY(const bool useful, begin_reading_on());
    if (useful) {
      return StepOutcome{.kind = StepOutcome::Kind::kMore};
    }
  }
  return read_all();
}

/// What the chunks of older ones once held is not needed.
constexpr std::size_t kPointsWithEnds = 20;

Result<StepOutcome> LogLook::read_all() {
  VERGER_TRY(const auto database, reading_.open());
  const auto& log = database->transaction_log();
  facts_.read_to = log.end();
  facts_.database_id = database_id_of(log);
  facts_.chunk_size = log.chunk_size();
  VERGER_TRY(facts_.points, streams::scavenge_points(*database));
  Bytes buffer;
  const auto first = facts_.points.size() - std::min(facts_.points.size(), kPointsWithEnds);
  for (auto i = first; i < facts_.points.size(); ++i) {
    VERGER_TRY(const auto record, log.read(facts_.points[i].position, buffer));
    facts_.point_ends[record.position().value()] = record.next;
  }
  return StepOutcome{.kind = StepOutcome::Kind::kDone};
}

Result<bool> LogLook::begin_reading_on() {
  log::LogOptions options;
  options.access = log::Access::kReadOnly;
  VERGER_TRY(log_, log::TransactionLog::open(reading_.files, reading_.place.database, options,
                                             reading_.clock, reading_.random, reading_.log));
  if (log_->end() < known_->read_to || log_->chunk_size() != known_->chunk_size) {
    return false;  // it was cut
  }
  facts_ = *known_;
  facts_.read_to = log_->end();
  cursor_.emplace(*log_, known_->read_to, log_->end());
  return true;
}

Result<StepOutcome> LogLook::read_on(Budget budget) {
  for (std::uint32_t i = 0; i < budget.units; ++i) {
    VERGER_TRY(const auto found, cursor_->next());
    if (!found) {
      return StepOutcome{.kind = StepOutcome::Kind::kDone};
    }
    const auto* prepare = std::get_if<log::Prepare>(&found->record);
    if (prepare == nullptr || prepare->stream != streams::kScavengePointsStream) {
      continue;
    }
    if (!prepare->has(log::prepare_flags::kIsCommitted)) {
      cursor_.reset();
      return read_all();  // its number is in another record
    }
    if (const auto point = streams::scavenge_point_in(*prepare)) {
      facts_.points.push_back(*point);
      facts_.point_ends[point->position.value()] = found->next;
    }
  }
  return StepOutcome{.kind = StepOutcome::Kind::kMore};
}

}  // namespace verger::external
