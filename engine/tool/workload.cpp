#include "engine/tool/workload.h"

#include <charconv>
#include <fmt/format.h>

#include "engine/log/transaction_log.h"
#include "engine/streams/stream_names.h"
#include "engine/tool/detail/background_files.h"
#include "engine/tool/detail/workload_index.h"
#include "engine/tool/detail/workload_plan.h"

namespace verger::tool {
namespace {

namespace flags = log::prepare_flags;

constexpr std::uint16_t kWhole =
    flags::kTransactionBegin | flags::kTransactionEnd | flags::kIsCommitted;
/// Shorter data cannot hold the JSON text around it.
constexpr std::uint64_t kSmallestJson = 48;
constexpr std::string_view kSoftDeletedMetadata = R"({"$tb":9223372036854775807})";

/// Shows the time of the event that is being written.
class WorkloadClock final : public Clock {
 public:
  explicit WorkloadClock(Ticks start) : now_(start) {}
  Ticks now() override { return now_; }
  Monotonic monotonic() override { return Monotonic((now_.value() - kUnixEpoch.value()) * 100); }
  void set(Ticks now) { now_ = now; }

 private:
  Ticks now_;
};

/// Random text that the events' data are cut out of.
class TextPool {
 public:
  TextPool(Random& random, std::uint64_t longest) : text_(kOffsets + longest, ' ') {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
    for (auto& letter : text_) {
      letter = kLetters[random.next() % kLetters.size()];
    }
  }
  [[nodiscard]] std::string_view cut(std::uint64_t chance, std::size_t size) const {
    return std::string_view(text_).substr(chance % kOffsets, size);
  }

 private:
  static constexpr std::uint64_t kOffsets = 64ULL * 1024;
  std::string text_;
};

class Generator {
 public:
  Generator(FileSystem& files, const Path& directory, const Workload& workload, Log& out)
      : files_(files),
        directory_(directory),
        workload_(workload),
        out_(out),
        random_(workload.seed),
        clock_(workload.start),
        plan_(workload, random_),
        pool_(random_, workload.size_max),
        data_(workload.size_max, ' ') {}

  Result<Generated> run(const std::function<void(std::uint64_t)>& progress) {
    VERGER_RETURN_IF_ERROR(open());
    VERGER_RETURN_IF_ERROR(write_events(progress));
    VERGER_RETURN_IF_ERROR(write_endings());
    VERGER_RETURN_IF_ERROR(log_->flush());
    log_->set_chaser(log_->end());
    VERGER_RETURN_IF_ERROR(log_->flush_checkpoints());
    result_.end = log_->end();
    result_.chunks = log_->chunks().size();
    log_.reset();
    if (workload_.index) {
      VERGER_TRY(result_.index_entries, index_->write(files_, directory_ / "index", random_));
    }
    VERGER_RETURN_IF_ERROR(files_.sync_directory(directory_));
    if (directory_.has_parent_path()) {
      VERGER_RETURN_IF_ERROR(files_.sync_directory(directory_.parent_path()));
    }
    return result_;
  }

 private:
  Result<void> open() {
    VERGER_RETURN_IF_ERROR(files_.make_directories(directory_));
    VERGER_TRY(const auto entries, files_.list(directory_));
    for (const auto& entry : entries) {
      if (entry.name != "verger.lock") {
        return Error{Errc::kExists, fmt::format("{}: is not empty; a workload is written into a "
                                                "directory of its own",
                                                directory_.string())};
      }
    }
    log::LogOptions options;
    options.access = log::Access::kWrite;
    options.chunk_size = workload_.chunk_size;
    options.assume_stopped = true;  // the new directory is not open elsewhere
    options.create = true;
    options.hash_in_background = true;
    VERGER_TRY(log_, log::TransactionLog::open(files_, directory_, options, clock_, random_, out_));
    VERGER_TRY(const auto epoch, log_->append_epoch(EpochNumber(0), random_.uuid()));
    index_ = std::make_unique<WorkloadIndex>(workload_, plan_);
    Bytes buffer;
    log::LogCursor cursor(*log_, epoch.position, log_->end());
    for (;;) {
      VERGER_TRY(const auto record, cursor.next());
      if (!record) {
        break;
      }
      ++result_.records;
      if (const auto* prepare = record->prepare()) {
        index_->add(prepare->stream, prepare->event_number(), prepare->position);
      }
    }
    return {};
  }

  Result<LogPosition> append(std::string_view stream, std::int64_t number, std::uint16_t more,
                             std::string_view type, std::string_view data) {
    log::Prepare prepare;
    prepare.flags = static_cast<std::uint16_t>(kWhole | more);
    prepare.transaction_position = kNoPosition;
    prepare.expected_version = number - 1;
    prepare.stream = stream;
    prepare.event_id = random_.uuid();
    prepare.correlation_id = random_.uuid();
    prepare.timestamp = clock_.now();
    prepare.type = type;
    prepare.data = as_bytes(data);
    VERGER_RETURN_IF_ERROR(log_->append(std::span(&prepare, 1)));
    ++result_.records;
    return prepare.position;
  }

  Result<void> append_metadata(std::uint64_t stream, std::int64_t number, std::string_view json) {
    const auto name = streams::metastream_of(plan_.name(stream));
    VERGER_TRY(const auto position,
               append(name, number, flags::kData | flags::kIsJson, streams::kMetadataType, json));
    index_->add(name, EventNumber(number), position);
    ++result_.metadata_records;
    return {};
  }

  Result<void> write_events(const std::function<void(std::uint64_t)>& progress) {
    constexpr std::uint64_t kBetweenReports = 16ULL * 1024;
    const auto span = workload_.span_seconds * kTicksPerSecond;
    const auto step =
        span / static_cast<std::int64_t>(std::max<std::uint64_t>(workload_.events, 1));
    std::uint64_t written = 0;
    for (std::uint64_t round = 0; written < workload_.events; ++round) {
      plan_.start_round(random_);
      for (std::uint64_t turn = 0; turn < workload_.streams; ++turn) {
        const auto stream = plan_.next_turn();
        index_->expect_event(plan_.upcoming_turn(), round);
        if (round >= plan_.events_of(stream)) {
          continue;
        }
        clock_.set(Ticks(workload_.start.value() + step * static_cast<std::int64_t>(written)));
        if (round == 0) {
          if (const auto json = plan_.metadata(stream); !json.empty()) {
            VERGER_RETURN_IF_ERROR(append_metadata(stream, 0, json));
          }
        }
        const auto data = next_data(round);
        VERGER_TRY(
            const auto position,
            append(plan_.name(stream), static_cast<std::int64_t>(round),
                   static_cast<std::uint16_t>(flags::kData | json_flag_), workload_.type, data));
        index_->add_event(stream, round, position);
        if (++written % kBetweenReports == 0) {
          progress(written);
        }
      }
    }
    clock_.set(Ticks(workload_.start.value() + span));
    progress(written);
    return {};
  }

  /// JSON where it is long enough.
  std::string_view next_data(std::uint64_t number) {
    auto size = workload_.size_min;
    if (workload_.size_max > workload_.size_min) {
      size += random_.below(workload_.size_max - workload_.size_min + 1);
    }
    const auto chance = random_.next();
    if (size < kSmallestJson) {
      json_flag_ = 0;
      return pool_.cut(chance, size);
    }
    json_flag_ = flags::kIsJson;
    constexpr std::string_view kBefore = R"({"n":)";
    constexpr std::string_view kBetween = R"(,"text":")";
    constexpr std::string_view kBehind = R"("})";
    char* at = std::ranges::copy(kBefore, data_.data()).out;
    at = std::to_chars(at, data_.data() + size, number).ptr;
    at = std::ranges::copy(kBetween, at).out;
    const auto used = static_cast<std::size_t>(at - data_.data());
    at = std::ranges::copy(pool_.cut(chance, size - used - kBehind.size()), at).out;
    std::ranges::copy(kBehind, at);
    return std::string_view(data_).substr(0, size);
  }

  Result<void> write_endings() {
    for (std::uint64_t stream = 0; stream < workload_.streams; ++stream) {
      const auto ending = plan_.ending(stream);
      if (ending == WorkloadPlan::Ending::kSoftDeleted) {
        VERGER_RETURN_IF_ERROR(append_metadata(stream, 0, kSoftDeletedMetadata));
      } else if (ending == WorkloadPlan::Ending::kDeleted) {
        VERGER_TRY(const auto position, append(plan_.name(stream), kDeletedStream.value(),
                                               flags::kStreamDelete, streams::kTombstoneType, {}));
        index_->add(plan_.name(stream), kDeletedStream, position);
        ++result_.tombstones;
      }
    }
    if (workload_.scavenge_point) {
      const auto json = workload_.threshold == 0
                            ? std::string("{}")
                            : fmt::format("{{\n  \"threshold\": {}\n}}", workload_.threshold);
      VERGER_TRY(const auto position,
                 append(streams::kScavengePointsStream, 0, flags::kData | flags::kIsJson,
                        streams::kScavengePointType, json));
      VERGER_RETURN_IF_ERROR(log_->complete_chunk());
      index_->add(streams::kScavengePointsStream, EventNumber(0), position);
    }
    return {};
  }

  FileSystem& files_;
  const Path& directory_;
  const Workload& workload_;
  Log& out_;
  SeededRandom random_;
  WorkloadClock clock_;
  WorkloadPlan plan_;
  TextPool pool_;
  std::string data_;
  std::uint16_t json_flag_ = 0;
  std::unique_ptr<log::TransactionLog> log_;
  std::unique_ptr<WorkloadIndex> index_;
  Generated result_;
};

Result<void> check(const Workload& workload) {
  const auto bad = [](std::string_view what) {
    return Error{Errc::kInvalidArgument, std::string(what)};
  };
  if (workload.streams == 0 || workload.events < workload.streams) {
    return bad("a workload has at least one stream and as many events as streams");
  }
  if (workload.size_min > workload.size_max || workload.size_max > 8'000'000) {
    return bad("the size of an event is at most 8,000,000 bytes");
  }
  for (const double share :
       {workload.max_count_percent, workload.max_age_percent, workload.truncate_percent,
        workload.soft_deleted_percent, workload.deleted_percent}) {
    if (!(share >= 0 && share <= 100)) {
      return bad("a share of streams is a percentage from 0 to 100");
    }
  }
  if (workload.max_count_percent + workload.max_age_percent + workload.truncate_percent +
          workload.soft_deleted_percent + workload.deleted_percent >
      100.000001) {
    return bad("a stream has one setting at most: the shares together exceed 100 percent");
  }
  if ((workload.max_count_percent > 0 && workload.max_count < 1) ||
      (workload.max_age_percent > 0 && workload.max_age_seconds < 1) ||
      (workload.truncate_percent > 0 && workload.truncate_before < 1)) {
    return bad("a share of streams with a limit needs the limit, too");
  }
  const auto last = workload.start.value() / kTicksPerSecond + workload.span_seconds;
  if (workload.start.value() < 0 || workload.span_seconds < 0 ||
      workload.span_seconds > kMaxTicks.value() / kTicksPerSecond ||
      last > kMaxTicks.value() / kTicksPerSecond) {
    return bad("the time stamps would be out of range");
  }
  return {};
}

}  // namespace

Result<Generated> generate_workload(FileSystem& files, const Path& directory,
                                    const Workload& workload, Log& out,
                                    const std::function<void(std::uint64_t)>& progress) {
  VERGER_RETURN_IF_ERROR(check(workload));
  // Half of the time would be waiting for the disk.
  BackgroundFiles background(files);
  VERGER_TRY(const auto result, Generator(background, directory, workload, out).run(progress));
  VERGER_RETURN_IF_ERROR(background.finish());
  return result;
}

}  // namespace verger::tool
