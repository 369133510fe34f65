#include "engine/backup/detail/index_choice.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/backup/detail/restore_files.h"
#include "engine/base/directories.h"

namespace verger::backup::detail {
namespace {

/// Nothing is chosen where copying the tables takes less.
constexpr double kWorthIt = 10;
/// The sample: so much of the log.
constexpr std::int64_t kSampleBytes = std::int64_t{64} << 20U;
/// The log's first part may be smaller than the rest, and copying needs no processor: the other way
/// has to be clearly faster.
constexpr double kMargin = 1.5;

double seconds_since(Clock& clock, Monotonic begin) {
  return std::chrono::duration<double>(clock.monotonic() - begin).count();
}

/// How long the tables of the log's first part take. nullopt: there is none to try it with.
Result<std::optional<double>> measure(FileSystem& disk, const RestorePlace& place,
                                      const Manifest& manifest, LogPosition end, Clock& clock,
                                      Random& random) {
  log::LogOptions how;
  how.chunk_size = manifest.positions.chunk_size;
  const Path staged = place.staged("writer.chk").parent_path();
  auto opened = log::TransactionLog::open(disk, staged, how, clock, random, null_log());
  if (!opened) {
    return std::optional<double>();
  }
  const Path scratch = place.staged(std::string(kIndexPrefix) + "sample");
  VERGER_RETURN_IF_ERROR(remove_tree(disk, scratch));
  const auto begin = clock.monotonic();
  auto worked = Result<void>();
  {
    IndexFromLog sample(disk, scratch, *std::move(opened), end, clock, random);
    for (bool done = false; worked && !done;) {
      const auto step = sample.step({.units = 65'536});
      worked = step ? Result<void>() : Result<void>(step.error());
      done = step && *step;
    }
  }
  const auto seconds = seconds_since(clock, begin);
  VERGER_RETURN_IF_ERROR(remove_tree(disk, scratch));
  return worked ? std::optional(seconds) : std::optional<double>();
}

}  // namespace

bool is_index_table(const BackedUpFile& file) {
  return file.kind == FileKind::kIndexMap || file.kind == FileKind::kTable ||
         file.kind == FileKind::kBloomFilter;
}

Result<std::uint64_t> stored_bytes(BlobStore& store, std::span<const NewFile> files) {
  std::uint64_t sum = 0;
  for (const auto& file : files) {
    if (!file.content) {
      VERGER_TRY(const auto blob, store.open_blob(file.entry.sha256));
      sum += blob->stored_size();
    }
  }
  return sum;
}

IndexFromLog::IndexFromLog(FileSystem& disk, Path directory,
                           std::unique_ptr<log::TransactionLog> log, LogPosition end, Clock& clock,
                           Random& random)
    : disk_(disk),
      directory_(std::move(directory)),
      log_(std::move(log)),
      end_(end),
      clock_(clock),
      random_(random) {}

Result<void> IndexFromLog::begin() {
  VERGER_RETURN_IF_ERROR(make_directories_durably(disk_, directory_));
  index::IndexOptions options;
  options.read_only = false;
  // Opening makes nothing yet; and the filter of streams stays as the backup has it.
  options.catch_up_end = LogPosition(0);
  options.stream_existence_filter_size = 0;
  VERGER_TRY(index_,
             index::Index::open(disk_, directory_, *log_, options, clock_, random_, null_log()));
  job_ = std::make_unique<index::IndexRebuildJob>(*index_, *log_, end_);
  return {};
}

Result<bool> IndexFromLog::step(Budget budget) {
  if (!job_) {
    VERGER_RETURN_IF_ERROR(begin());
    return false;
  }
  VERGER_TRY(const auto outcome, job_->step(budget));
  return outcome.kind == StepOutcome::Kind::kDone;
}

Result<IndexChoice> choose_index(FileSystem& disk, const RestorePlace& place,
                                 const Manifest& manifest, const CopyMeasured& copied, Clock& clock,
                                 Random& random) {
  if (copied.bytes == 0 || copied.seconds <= 0) {
    return IndexChoice{.from_log = false, .text = "restored: how fast copying is is not known"};
  }
  const auto rate = static_cast<double>(copied.bytes) / copied.seconds;
  const auto restoring = static_cast<double>(copied.left) / rate;
  if (restoring < kWorthIt) {
    return IndexChoice{.from_log = false,
                       .text = fmt::format("restored: that takes about {:.1f} s", restoring)};
  }
  const auto end = manifest.positions.end;
  const LogPosition part(std::min<std::int64_t>(end.value(), kSampleBytes));
  VERGER_TRY(const auto sample, measure(disk, place, manifest, part, clock, random));
  if (!sample || part.value() <= 0) {
    return IndexChoice{.from_log = false,
                       .text = "restored: what making it from the log takes could not be tried"};
  }
  const auto making =
      *sample * static_cast<double>(end.value()) / static_cast<double>(part.value());
  const bool from_log = making * kMargin < restoring;
  return IndexChoice{
      .from_log = from_log,
      .text = fmt::format("{}: restoring it takes about {:.0f} s, making it from the log {:.0f} s",
                          from_log ? "made from the log" : "restored", restoring, making)};
}

}  // namespace verger::backup::detail
