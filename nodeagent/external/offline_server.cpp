#include "nodeagent/external/offline_server.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/database_files.h"
#include "engine/scavenge/scavenge_job.h"

namespace verger::external {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStateLook{200};

}  // namespace

struct OfflineServer::Parts {
  DatabasePlace place;
  ServiceOptions options;
  ServiceControl service;
  FileSystem& files;
  Clock& clock;
  Random& random;
  http::Timers& timers;
  node::JobRunner& jobs;
  Log& log;
  std::shared_ptr<node::StopFlag> stop_scavenge = std::make_shared<node::StopFlag>();

  Result<std::unique_ptr<streams::Database>> open() const {
    streams::DatabaseOptions with;
    with.log.access = log::Access::kWrite;
    with.index.read_only = false;
    with.index.stream_existence_filter_size = 0;  // the server brings it up to date itself
    with.index_directory = place.index;
    // What lies behind the chaser may not be on a majority: it is left alone.
    return streams::Database::open(files, place.database, std::move(with), /*commit_all=*/false,
                                   clock, random, log);
  }
};

namespace {

/// Opens, scavenges, closes: the database is open only while the job lives.
class OfflineScavenge final : public Job {
 public:
  using Open = std::function<Result<std::unique_ptr<streams::Database>>()>;
  OfflineScavenge(Open open, FileSystem& files, Clock& clock, Random& random, Log& log,
                  std::int64_t point, std::int32_t threads)
      : open_(std::move(open)),
        files_(files),
        clock_(clock),
        random_(random),
        log_(log),
        point_(point),
        threads_(std::clamp(threads, 1, 4)) {}

  Result<StepOutcome> step(Budget budget) override {
    if (job_ == nullptr) {
      VERGER_TRY(const bool is_needed, begin());
      return StepOutcome{.kind = is_needed ? StepOutcome::Kind::kMore : StepOutcome::Kind::kDone};
    }
    return job_->step(budget);
  }

 private:
  Result<bool> begin() {
    VERGER_TRY(database_, open_());
    auto& index = database_->stream_index();
    scavenge::ScavengeOptions options;
    options.threads = threads_;
    VERGER_TRY(auto state, scavenge::ScavengeState::open(files_, index.directory(),
                                                         index.options().hash, options.state));
    VERGER_TRY(const auto checkpoint, state->checkpoint());
    VERGER_TRY(const auto points, streams::scavenge_points(*database_));
    const auto wanted = std::ranges::find_if(
        points, [this](const auto& point) { return point.number.value() == point_; });
    if (wanted == points.end()) {
      return Error{Errc::kNotFound,
                   fmt::format("scavenge point {} is not in the log of this node", point_)};
    }
    const auto decision = scavenge::decide_start(checkpoint, *wanted, /*sync_only=*/true);
    if (!decision.point) {
      return false;
    }
    runner_ = threads_ > 1 ? scavenge::make_thread_runner(threads_) : nullptr;
    job_ = std::make_unique<scavenge::ScavengeJob>(
        scavenge::ScavengeParts{database_->transaction_log(), index, files_, clock_, random_, log_},
        std::move(state), *decision.point, options, events_,
        runner_ ? *runner_ : scavenge::inline_runner());
    log_.info("scavenging the stopped server's files",
              {{"point", std::to_string(decision.point->number.value())}});
    return true;
  }

  Open open_;
  FileSystem& files_;
  Clock& clock_;
  Random& random_;
  Log& log_;
  std::int64_t point_;
  std::int32_t threads_;
  scavenge::ScavengeEvents events_;
  std::unique_ptr<streams::Database> database_;
  std::unique_ptr<scavenge::ParallelRunner> runner_;
  std::unique_ptr<scavenge::ScavengeJob> job_;
};

/// Opening for writing tells, better than anything else, whether a process has the files open.
class FilesAreFree final : public Job {
 public:
  explicit FilesAreFree(OfflineScavenge::Open open) : open_(std::move(open)) {}
  Result<StepOutcome> step(Budget /*budget*/) override {
    VERGER_CHECK(open_());
    return StepOutcome{.kind = StepOutcome::Kind::kDone};
  }

 private:
  OfflineScavenge::Open open_;
};

}  // namespace

OfflineServer::OfflineServer(DatabasePlace place, ServiceOptions service, FileSystem& files,
                             Clock& clock, Random& random, http::Timers& timers,
                             node::JobRunner& jobs, Log& log)
    : parts_(std::make_shared<Parts>(Parts{.place = std::move(place),
                                           .options = service,
                                           .service = ServiceControl(service, timers),
                                           .files = files,
                                           .clock = clock,
                                           .random = random,
                                           .timers = timers,
                                           .jobs = jobs,
                                           .log = log})) {}

OfflineServer::~OfflineServer() = default;

bool OfflineServer::configured() const { return parts_->service.configured(); }

std::string OfflineServer::wrong_user() const {
  const auto index = parts_->place.index_directory();
  const Path directories[] = {parts_->place.database, index,
                              scavenge::ScavengeState::path_in(index).parent_path()};
  const auto owner = check_file_owner(directories);
  return owner ? std::string() : owner.error().message;
}

net::awaitable<Result<bool>> OfflineServer::files_are_free() {
  const auto parts = parts_;
  const auto free =
      co_await parts->jobs.run(std::make_shared<FilesAreFree>([parts] { return parts->open(); }),
                               std::make_shared<node::StopFlag>());
  if (!free && free.error().code != Errc::kRefused) {
    co_return free.error();
  }
  co_return free.has_value();
}

net::awaitable<Result<void>> OfflineServer::stop() {
  const auto parts = parts_;
  parts->stop_scavenge = std::make_shared<node::StopFlag>();
  parts->log.info("stopping the server");
  VERGER_CO_CHECK(co_await parts->service.stop());
  for (milliseconds waited{0};; waited += kStateLook) {
    VERGER_CO_TRY(const auto free, co_await files_are_free());
    if (free) {
      co_return Result<void>();
    }
    if (waited >= parts->options.limit) {
      co_return Error{Errc::kTimeout, "the server still has its files open"};
    }
    co_await parts->timers.sleep_for(kStateLook);
  }
}

net::awaitable<Result<void>> OfflineServer::start() {
  const auto parts = parts_;
  parts->log.info("starting the server");
  co_return co_await parts->service.start();
}

void OfflineServer::interrupt() { parts_->stop_scavenge->request(); }

net::awaitable<Result<void>> OfflineServer::scavenge(std::int64_t point, std::int32_t threads) {
  const auto parts = parts_;
  co_return co_await parts->jobs.run(
      std::make_shared<OfflineScavenge>([parts] { return parts->open(); }, parts->files,
                                        parts->clock, parts->random, parts->log, point, threads),
      parts->stop_scavenge);
}

}  // namespace verger::external
