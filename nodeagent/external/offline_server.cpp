#include "nodeagent/external/offline_server.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/database_files.h"
#include "engine/scavenge/scavenge_job.h"
#include "nodeagent/external/server_process.h"

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
  node::JobRunner& looks;
  Log& log;
  std::optional<ServerProcess> server{};  ///< that had the files open at the last look that saw one
  std::shared_ptr<node::StopFlag> stop_scavenge = std::make_shared<node::StopFlag>();
  OfflineScavenged scavenged{};

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

  [[nodiscard]] OfflineScavenged scavenged() const {
    if (job_ == nullptr) {
      return {.space_saved = 0, .records_removed = 0};
    }
    return {.space_saved = job_->progress().space_saved,
            .records_removed = static_cast<std::int64_t>(job_->progress().records_discarded)};
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

class FilesAreFree final : public Job {
 public:
  explicit FilesAreFree(Path database) : database_(std::move(database)) {}
  Result<StepOutcome> step(Budget /*budget*/) override {
    VERGER_TRY(found_, find_server(database_));
    return StepOutcome{.kind = StepOutcome::Kind::kDone};
  }
  [[nodiscard]] const std::optional<ServerProcess>& found() const { return found_; }

 private:
  Path database_;
  std::optional<ServerProcess> found_;
};

}  // namespace

OfflineServer::OfflineServer(DatabasePlace place, ServiceOptions service, FileSystem& files,
                             Clock& clock, Random& random, http::Timers& timers,
                             node::JobRunner& jobs, node::JobRunner& looks, Log& log)
    : parts_(std::make_shared<Parts>(Parts{.place = std::move(place),
                                           .options = service,
                                           .service = ServiceControl(service, timers),
                                           .files = files,
                                           .clock = clock,
                                           .random = random,
                                           .timers = timers,
                                           .jobs = jobs,
                                           .looks = looks,
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
  const auto look = std::make_shared<FilesAreFree>(parts->place.database);
  VERGER_CO_RETURN_IF_ERROR(co_await parts->looks.run(look, std::make_shared<node::StopFlag>()));
  if (look->found()) {
    parts->server = look->found();
  }
  // A server closes its files some time before it is gone, and a start beside it does nothing.
  co_return !look->found() && (!parts->server || !still_runs(*parts->server));
}

net::awaitable<Result<void>> OfflineServer::stop(milliseconds limit) {
  const auto parts = parts_;
  parts->stop_scavenge = std::make_shared<node::StopFlag>();
  const auto flag = parts->stop_scavenge;
  VERGER_CO_RETURN_IF_ERROR(co_await files_are_free());  // which process it is
  parts->log.info("stopping the server");
  const auto began = parts->clock.monotonic();
  const auto asked = co_await parts->service.stop();
  // A command that takes long is no reason to go back: the server is on its way down.
  const bool failed = !asked && asked.error().code != Errc::kTimeout;
  for (;;) {
    VERGER_CO_TRY(const auto free, co_await files_are_free());
    if (free) {
      co_return Result<void>();
    }
    const auto waited =
        std::chrono::duration_cast<std::chrono::seconds>(parts->clock.monotonic() - began);
    if (failed) {
      co_return asked.error();
    }
    if (flag->requested()) {
      co_return Error{Errc::kCancelled, "stopped while the server was on its way down"};
    }
    if (waited >= limit) {
      co_return Error{
          Errc::kTimeout,
          fmt::format("the server was asked to stop {} s ago and still has its files "
                      "open{}",
                      waited.count(), asked ? std::string() : "; " + asked.error().message)};
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
  parts->scavenged = {};
  const auto job =
      std::make_shared<OfflineScavenge>([parts] { return parts->open(); }, parts->files,
                                        parts->clock, parts->random, parts->log, point, threads);
  VERGER_CO_RETURN_IF_ERROR(co_await parts->jobs.run(job, parts->stop_scavenge));
  parts->scavenged = job->scavenged();
  co_return Result<void>();
}

OfflineScavenged OfflineServer::last_scavenged() const { return parts_->scavenged; }

}  // namespace verger::external
