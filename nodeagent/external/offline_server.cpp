#include "nodeagent/external/offline_server.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/backup/kept_files.h"
#include "engine/base/database_files.h"
#include "engine/scavenge/scavenge_job.h"
#include "nodeagent/external/server_process.h"

namespace verger::external {
namespace {

using std::chrono::milliseconds;

/// The end of a process that is no child of ours is seen in /proc only.
constexpr milliseconds kStateLook{200};
/// A server ends at most this long after it has closed its files. A process that runs longer is
/// another program, such as one that wrote into the directory.
constexpr std::chrono::minutes kLongestEnd{1};
/// A server that takes longer to stop is worth a line in the log.
constexpr std::chrono::seconds kLongStop{10};

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
  StopOrder order;
  std::optional<ServerProcess> server{};  ///< that had the files open at the last look that saw one
  Monotonic seen_open{};                  ///< when that was
  /// Of hold_files(): each holder has a share.
  std::shared_ptr<const bool> held = std::make_shared<const bool>(true);

  /// As far as it can be seen.
  bool has_files_open() const {
    if (options.own && options.own->runs()) {
      return true;
    }
    const auto found = find_server(place.database);
    return !found || *found;
  }

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
                             node::JobRunner& jobs, node::JobRunner& looks, Log& log,
                             const Path& stop_order)
    : parts_(std::make_shared<Parts>(Parts{.place = std::move(place),
                                           .options = service,
                                           .service = ServiceControl(service, timers),
                                           .files = files,
                                           .clock = clock,
                                           .random = random,
                                           .timers = timers,
                                           .jobs = jobs,
                                           .looks = looks,
                                           .log = log,
                                           .order = StopOrder(files, stop_order)})) {}

OfflineServer::~OfflineServer() = default;

bool OfflineServer::configured() const { return parts_->service.configured(); }

const DatabasePlace& OfflineServer::place() const { return parts_->place; }

std::string OfflineServer::start_text() const { return parts_->service.start_text(); }

std::string OfflineServer::wrong_user() const {
  const auto index = parts_->place.index_directory();
  const Path directories[] = {parts_->place.database, index,
                              scavenge::ScavengeState::path_in(index).parent_path()};
  const auto owner = check_file_owner(directories);
  return owner ? std::string() : owner.error().message;
}

net::awaitable<Result<bool>> OfflineServer::files_are_free() {
  const auto parts = parts_;
  if (parts->options.own && parts->options.own->runs()) {
    co_return false;
  }
  const auto look = std::make_shared<FilesAreFree>(parts->place.database);
  VERGER_CO_RETURN_IF_ERROR(co_await parts->looks.run(look, std::make_shared<node::StopFlag>()));
  const auto now = parts->clock.monotonic();
  if (look->found()) {
    parts->server = look->found();
    parts->seen_open = now;
  }
  // A server closes its files some time before it is gone, and a start beside it does nothing.
  const bool is_ending =
      parts->server && now - parts->seen_open < kLongestEnd && still_runs(*parts->server);
  const bool free = !look->found() && !is_ending;
  if (free) {
    if (const auto noted = parts->order.note_stopped(); !noted) {
      parts->log.warning("that the server has stopped cannot be noted",
                         {{"error", noted.error().message}});
    }
  }
  co_return free;
}

net::awaitable<Result<void>> OfflineServer::stop(milliseconds limit,
                                                 std::shared_ptr<const node::StopFlag> flag) {
  const auto parts = parts_;
  VERGER_CO_RETURN_IF_ERROR(co_await files_are_free());  // which process it is
  parts->log.info("stopping the server");
  const auto began = parts->clock.monotonic();
  const auto asked = co_await parts->service.stop();
  // A command that takes long is no reason to go back: the server is on its way down.
  const bool failed = !asked && asked.error().code != Errc::kTimeout;
  bool reported = false;
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
    // It may be another program than the server.
    const auto process = parts->options.own || !parts->server
                             ? std::string()
                             : fmt::format("process {} ", parts->server->id);
    if (waited >= limit) {
      co_return Error{Errc::kTimeout,
                      fmt::format("the server was asked to stop {} s ago and {}still has its files "
                                  "open{}",
                                  waited.count(), process,
                                  asked ? std::string() : "; " + asked.error().message)};
    }
    if (!reported && waited >= kLongStop && !process.empty()) {
      reported = true;
      parts->log.warning("the server was asked to stop, and a process still has its files open",
                         {{"database", parts->place.database.string()},
                          {"process", std::to_string(parts->server->id)}});
    }
    co_await parts->timers.sleep_for(kStateLook);
  }
}

Result<void> OfflineServer::may_start() const {
  const auto& parts = *parts_;
  if (parts.held.use_count() > 1) {
    return Error{Errc::kRefused,
                 "an operation works on the server's files: it can be started once that has ended"};
  }
  VERGER_TRY(const auto unfinished,
             backup::find_unfinished_restore(parts.files, parts.place.database));
  if (unfinished && !unfinished->database_is_whole) {
    return Error{Errc::kRefused,
                 fmt::format("{}: the {} of backup {} was interrupted while it replaced files: "
                             "finish it before the server is started",
                             parts.place.database.string(),
                             unfinished->reverting ? "revert of the restore" : "restore",
                             unfinished->generation)};
  }
  return {};
}

Result<void> OfflineServer::keep_stopped(std::string_view by, StopOrder::Server server) {
  return parts_->order.give(by, server);
}

void OfflineServer::see_running(std::string_view instance) {
  // The answer may be older than the server's end.
  if (!parts_->order.is_of_stopped_server() || !parts_->has_files_open()) {
    return;
  }
  const auto by = parts_->order.given_by();
  const auto lifted = parts_->order.lift();
  parts_->log.warning("the server was started by someone else while it was kept stopped",
                      {{"kept_stopped_by", by},
                       {"instance", std::string(instance)},
                       {"error", lifted ? std::string() : lifted.error().message}});
}

Result<void> OfflineServer::allow_start() {
  VERGER_RETURN_IF_ERROR(may_start());
  return parts_->order.lift();
}

std::string OfflineServer::kept_stopped_by() const { return parts_->order.given_by(); }

std::shared_ptr<const void> OfflineServer::hold_files() const { return parts_->held; }

net::awaitable<Result<void>> OfflineServer::start() {
  const auto parts = parts_;
  VERGER_CO_RETURN_IF_ERROR(may_start());
  if (const auto by = kept_stopped_by(); !by.empty()) {
    co_return Error{Errc::kRefused,
                    fmt::format("the server is kept stopped by {} until it is to be started "
                                "(start_service)",
                                by)};
  }
  parts->log.info("starting the server");
  co_return co_await parts->service.start();
}

net::awaitable<Result<void>> OfflineServer::run(std::shared_ptr<Job> job,
                                                std::shared_ptr<const node::StopFlag> flag) {
  const auto parts = parts_;
  const auto hold = hold_files();
  co_return co_await parts->jobs.run(std::move(job), std::move(flag));
}

Result<std::unique_ptr<streams::Database>> OfflineServer::open_database() const {
  return parts_->open();
}

OfflineMachine OfflineServer::machine() const {
  return {
      .files = parts_->files, .clock = parts_->clock, .random = parts_->random, .log = parts_->log};
}

}  // namespace verger::external
