#include "tests/bench/measures.h"

#include <array>
#include <chrono>
#include <fmt/format.h>
#include <optional>
#include <semaphore>
#include <thread>

#include "engine/base/digest.h"
#include "engine/scavenge/estimate.h"
#include "engine/scavenge/preview.h"
#include "engine/scavenge/scavenge_job.h"
#include "engine/streams/detail/hashed_records.h"
#include "engine/streams/detail/readable_digest.h"
#include "engine/streams/event_store.h"
#include "engine/verify/verify_database_job.h"

namespace verger::bench {
namespace {

using nlohmann::json;

constexpr std::size_t kBlock = std::size_t{1} << 20U;

class Timer {
 public:
  double seconds() const {
    return std::chrono::duration<double>(system_clock().monotonic() - start_).count();
  }

 private:
  Monotonic start_ = system_clock().monotonic();
};

Result<std::unique_ptr<streams::Database>> open_for_writing(const Path& directory) {
  streams::DatabaseOptions options;
  options.log.access = log::Access::kWrite;
  options.log.assume_stopped = true;
  options.index.stream_existence_filter_size = 0;
  return streams::Database::open(posix_file_system(), directory, options, /*commit_all=*/true,
                                 system_clock(), system_random(), null_log());
}

/// Calls `visit` with each file below `directory`, by its path from there.
template <class Visit>
Result<void> for_each_file(const Path& directory, const Path& below, const Visit& visit) {
  VERGER_TRY(const auto entries, posix_file_system().list(directory / below));
  for (const auto& entry : entries) {
    VERGER_RETURN_IF_ERROR(entry.is_directory ? for_each_file(directory, below / entry.name, visit)
                                              : visit(below / entry.name));
  }
  return {};
}

/// Notes how long each stage takes.
class StageTimes final : public scavenge::ScavengeEvents {
 public:
  void stage_started(scavenge::Stage stage) override {
    close();
    name_ = scavenge::to_string(stage);
    timer_ = {};
  }
  json finish() {
    close();
    return std::move(stages_);
  }

 private:
  void close() {
    if (!name_.empty() && name_ != "Done") {
      stages_[name_] = timer_.seconds();
    }
  }
  std::string name_;
  Timer timer_;
  json stages_ = json::object();
};

}  // namespace

Result<json> read_sequentially(const Path& directory) {
  Bytes block(kBlock);
  std::uint64_t bytes = 0;
  VERGER_RETURN_IF_ERROR(for_each_file(directory, "", [&](const Path& name) -> Result<void> {
    VERGER_TRY(const auto file, posix_file_system().open(directory / name, OpenMode::kRead));
    for (std::uint64_t at = 0;;) {
      VERGER_TRY(const auto size, file->read_at(at, block));
      if (size == 0) {
        return {};
      }
      at += size;
      bytes += size;
    }
  }));
  return json{{"bytes", bytes}};
}

namespace {

template <class Hash>
Result<json> copy_with(const Path& from, const Path& to) {
  auto& files = posix_file_system();
  Bytes block(kBlock);
  std::uint64_t bytes = 0;
  VERGER_RETURN_IF_ERROR(for_each_file(from, "", [&](const Path& name) -> Result<void> {
    VERGER_RETURN_IF_ERROR(files.make_directories((to / name).parent_path()));
    VERGER_TRY(const auto source, files.open(from / name, OpenMode::kRead));
    VERGER_TRY(const auto target, files.open(to / name, OpenMode::kCreateNew));
    Hash hash;
    for (std::uint64_t at = 0;;) {
      VERGER_TRY(const auto size, source->read_at(at, block));
      if (size == 0) {
        static_cast<void>(hash.finish());
        return target->sync();
      }
      const auto part = ByteView(block).first(size);
      hash.update(part);
      VERGER_RETURN_IF_ERROR(target->write_at(at, part));
      at += size;
      bytes += size;
    }
  }));
  return json{{"bytes", bytes}};
}

}  // namespace

Result<json> copy_with_md5(const Path& from, const Path& to) { return copy_with<Md5>(from, to); }

namespace {

/// The MD5 of blocks in a thread of its own. The caller does something else with a block meanwhile.
class HashBeside {
 public:
  HashBeside() : thread_([this] { hash_all(); }) {}
  ~HashBeside() {
    block_ = std::nullopt;
    given_.release();
  }
  HashBeside(const HashBeside&) = delete;
  HashBeside& operator=(const HashBeside&) = delete;

  void start(ByteView block) {
    block_ = block;
    given_.release();
  }
  void wait() { hashed_.acquire(); }
  Md5Digest finish() { return hash_.finish(); }

 private:
  void hash_all() {
    for (;;) {
      given_.acquire();
      if (!block_) {
        return;
      }
      hash_.update(*block_);
      hashed_.release();
    }
  }

  std::optional<ByteView> block_;
  std::binary_semaphore given_{0};
  std::binary_semaphore hashed_{0};
  Md5 hash_;
  std::jthread thread_;
};

}  // namespace

Result<json> copy_beside_md5(const Path& from, const Path& to) {
  auto& files = posix_file_system();
  std::array<Bytes, 2> blocks{Bytes(kBlock), Bytes(kBlock)};
  std::uint64_t bytes = 0;
  VERGER_RETURN_IF_ERROR(for_each_file(from, "", [&](const Path& name) -> Result<void> {
    VERGER_RETURN_IF_ERROR(files.make_directories((to / name).parent_path()));
    VERGER_TRY(const auto source, files.open(from / name, OpenMode::kRead));
    VERGER_TRY(const auto target, files.open(to / name, OpenMode::kCreateNew));
    HashBeside hash;
    std::uint64_t at = 0;
    for (std::size_t n = 0;; ++n) {
      auto& block = blocks[n % blocks.size()];
      VERGER_TRY(const auto size, source->read_at(at, block));
      if (n > 0) {
        hash.wait();
      }
      if (size == 0) {
        static_cast<void>(hash.finish());
        return target->sync();
      }
      const auto part = ByteView(block).first(size);
      hash.start(part);
      VERGER_RETURN_IF_ERROR(target->write_at(at, part));
      at += size;
      bytes += size;
    }
  }));
  return json{{"bytes", bytes}};
}

Result<json> copy_with_sha256(const Path& from, const Path& to) {
  return copy_with<Sha256>(from, to);
}

Result<json> grow(const Path& directory, int percent) {
  VERGER_TRY(const auto database, open_for_writing(directory));
  constexpr std::size_t kEventSize = std::size_t{64} << 10U;
  const auto bytes = database->transaction_log().end().value() / 100 * percent;
  std::int64_t written = 0;
  for (; written < bytes; written += kEventSize) {
    streams::NewEvent event;
    event.id = system_random().uuid();
    event.type = "grown";
    event.data.assign(kEventSize, std::byte{'x'});
    const auto outcome = database->append("grown", streams::kExpectAny, {std::move(event)});
    if (!outcome) {
      return outcome.error().error;
    }
    VERGER_RETURN_IF_ERROR(database->commit_up_to(outcome->end));
  }
  return json{{"bytes", written}};
}

Result<json> write_point(const Path& directory) {
  VERGER_TRY(const auto database, open_for_writing(directory));
  VERGER_TRY(const auto points, streams::scavenge_points(*database));
  const auto last = points.empty() ? streams::kExpectNoStream : points.back().number.value();
  const auto written = database->append_scavenge_point(last, 0);
  if (!written) {
    return written.error().error;
  }
  VERGER_RETURN_IF_ERROR(database->commit_up_to(written->end));
  return json::object();
}

Result<json> scavenge(const Path& directory, int threads) {
  const Timer opening;
  VERGER_TRY(const auto database, open_for_writing(directory));
  const auto opened = opening.seconds();
  VERGER_TRY(const auto points, streams::scavenge_points(*database));
  scavenge::ScavengeOptions options;
  options.threads = threads;
  options.hash_in_background = true;  // as verger-db does
  auto& index = database->stream_index();
  VERGER_TRY(auto state, scavenge::ScavengeState::open(posix_file_system(), index.directory(),
                                                       index.options().hash, options.state));
  StageTimes times;
  const auto runner = scavenge::make_thread_runner(threads);
  scavenge::ScavengeJob job({database->transaction_log(), index, posix_file_system(),
                             system_clock(), system_random(), null_log()},
                            std::move(state), points.back(), options, times, *runner);
  for (;;) {
    VERGER_TRY(const auto outcome, job.step({.units = 65'536}));
    if (outcome.kind == StepOutcome::Kind::kDone) {
      break;
    }
  }
  const auto& progress = job.progress();
  auto stages = times.finish();
  stages["opening"] = opened;
  return json{{"stages", stages},
              {"records_kept", progress.records_kept},
              {"records_discarded", progress.records_discarded},
              {"entries_kept", progress.entries_kept},
              {"entries_discarded", progress.entries_discarded},
              {"groups_merged", progress.groups_merged},
              {"space_saved", progress.space_saved}};
}

Result<json> verify(const Path& directory, int threads) {
  verify::VerifyDatabaseOptions options;
  options.directory = directory;
  options.scratch = directory.parent_path() / "scratch";
  options.lanes = static_cast<std::size_t>(threads);
  const auto runner = scavenge::make_thread_runner(threads);
  verify::VerifyDatabaseJob job(posix_file_system(), options, system_clock(), system_random(),
                                null_log(), *runner);
  for (;;) {
    VERGER_TRY(const auto outcome, job.step({.units = 65'536}));
    if (outcome.kind == StepOutcome::Kind::kDone) {
      break;
    }
  }
  if (job.findings().damage_count() > 0) {
    return Error{Errc::kCorruption,
                 fmt::format("the database is damaged: {}", job.findings().all().front().text)};
  }
  return json{{"records", job.totals().records}, {"entries", job.totals().entries}};
}

Result<json> estimate(const Path& directory) {
  const auto scratch = directory / "scratch";
  VERGER_RETURN_IF_ERROR(posix_file_system().make_directories(scratch));
  streams::DatabaseOptions with;
  with.log.access = log::Access::kReadOnly;
  with.index.read_only = true;
  with.index.stream_existence_filter_size = 0;
  VERGER_TRY(const auto database,
             streams::Database::open(posix_file_system(), directory, with, /*commit_all=*/true,
                                     system_clock(), system_random(), null_log()));
  VERGER_TRY(const auto points, streams::scavenge_points(*database));
  if (points.empty()) {
    return Error{Errc::kNotFound, "the log holds no scavenge point"};
  }
  scavenge::ScavengeOptions options;
  options.hash_in_background = true;
  VERGER_TRY(
      const auto preview,
      scavenge::Preview::open({database->transaction_log(), database->stream_index(),
                               posix_file_system(), system_clock(), system_random(), null_log()},
                              {posix_file_system(), scratch}, options));
  preview->choose(points.back());
  const Timer previewing;
  VERGER_RETURN_IF_ERROR(run_job(*preview));
  const auto previewed = previewing.seconds();
  const Timer counting;
  scavenge::EstimateJob job(*preview, 10);
  VERGER_RETURN_IF_ERROR(run_job(job));
  return json{{"stages", {{"Preview", previewed}, {"Counting", counting.seconds()}}},
              {"records_removed", job.estimate().removed.records},
              {"space_saved", job.estimate().space_saved}};
}

Result<json> digest(const Path& directory) {
  streams::DatabaseOptions with;
  with.log.access = log::Access::kReadOnly;
  with.index.read_only = true;
  with.index.stream_existence_filter_size = 0;
  VERGER_TRY(const auto database,
             streams::Database::open(posix_file_system(), directory, with, /*commit_all=*/true,
                                     system_clock(), system_random(), null_log()));
  VERGER_TRY(const auto points, streams::scavenge_points(*database));
  if (points.empty()) {
    return Error{Errc::kNotFound, "the log holds no scavenge point"};
  }
  streams::DigestOptions options;
  options.files = &posix_file_system();
  options.temporary_directory = directory;
  options.hash_in_background = true;  // as verger-db does
  streams::DigestJob job(*database, points.back().position, points.back().effective_now, options);
  for (;;) {
    VERGER_TRY(const auto step, job.step(Budget{}));
    if (step.kind == StepOutcome::Kind::kDone) {
      break;
    }
  }
  return json{{"readable", to_hex(job.digest().readable)},
              {"readable_events", job.digest().readable_events},
              {"records", job.digest().records},
              {"temporary_bytes", job.bytes_on_disk()}};
}

Result<json> hash_events(std::int64_t streams) {
  Sha256Digest all{};
  const std::string event(180, 'x');  // with its stream, type, id and lengths
  for (std::int64_t i = 0; i < streams; ++i) {
    const auto name = fmt::format("stream-{:012}", i);
    for (const auto& hashed : {sha256(as_bytes(name)), sha256(as_bytes(event))}) {
      all[0] ^= hashed[0];
    }
  }
  return json{{"streams", streams}, {"all", to_hex(all)}};
}

Result<json> digest_streams(const Path& directory, std::int64_t streams) {
  streams::DigestOptions options;
  options.files = &posix_file_system();
  options.temporary_directory = directory;
  streams::detail::ReadableDigest digest(
      options, Ticks(0), [](LogPosition position, EventNumber) { return std::optional(position); });
  log::Prepare prepare;
  prepare.flags = log::prepare_flags::kIsCommitted | log::prepare_flags::kIsJson;
  prepare.type = "event";
  const std::string data(100, 'x');
  constexpr std::size_t kAtOnce = 2000;
  streams::detail::RecordHashing hashing(/*in_background=*/false);
  auto records = hashing.make();
  const auto add_all = [&]() -> Result<void> {
    hashing.give(std::move(records));
    auto hashed = hashing.take(/*all=*/true);
    VERGER_RETURN_IF_ERROR(digest.add(hashed->events, hashed->messages));
    hashing.recycle(std::move(hashed));
    records = hashing.make();
    return {};
  };
  const auto add = [&](EventNumber number) {
    records->events.push_back(streams::detail::describe(prepare, number, records->messages));
    return records->events.size() < kAtOnce ? Result<void>() : add_all();
  };
  for (std::int64_t i = 0; i < streams; ++i) {
    const auto name = fmt::format("stream-{:012}", i);
    const auto about = "$$" + name;
    prepare.position = LogPosition(i * 300);
    prepare.timestamp = Ticks(kUnixEpoch.value() + i * 1'000);
    prepare.stream = name;
    prepare.data = as_bytes(data);
    VERGER_RETURN_IF_ERROR(add(EventNumber(0)));
    if (i % 20 == 0) {
      prepare.stream = about;
      prepare.data = as_bytes(R"({"$tb":1})");
      VERGER_RETURN_IF_ERROR(add(EventNumber(0)));
    } else if (i % 50 == 1) {
      VERGER_RETURN_IF_ERROR(add(kDeletedStream));
    }
  }
  VERGER_RETURN_IF_ERROR(add_all());
  for (bool done = false; !done;) {
    VERGER_TRY(done, digest.settle());
  }
  return json{{"streams", streams},
              {"readable_events", digest.count()},
              {"temporary_bytes", digest.bytes_on_disk()}};
}

Result<json> rebuild_index(const Path& directory) {
  VERGER_TRY(const auto database, open_for_writing(directory));
  const Timer timer;
  VERGER_RETURN_IF_ERROR(database->stream_index().rebuild(database->transaction_log()));
  return json{{"rebuild", timer.seconds()}};
}

Result<json> open_database(const Path& directory) {
  const Timer timer;
  VERGER_TRY(const auto database, open_for_writing(directory));
  return json{{"opening", timer.seconds()}};
}

}  // namespace verger::bench
