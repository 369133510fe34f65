#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "engine/streams/event_store.h"
#include "nodeagent/external/database_look.h"
#include "nodeagent/external/service_control.h"
#include "nodeagent/external/stop_order.h"
#include "nodeagent/node/job_runner.h"

namespace verger::external {

/// What a job on a stopped server's files works with.
struct OfflineMachine {
  FileSystem& files;
  Clock& clock;
  Random& random;
  Log& log;
};

/// A server that is stopped so that our engine can work on its files, and started again. All that
/// an agent starts it starts here, so that nothing does while its files must be left alone.
class OfflineServer {
 public:
  /// `looks`: for what takes milliseconds and must not wait behind a long job; may be `jobs`.
  /// `stop_order`: where keep_stopped() is remembered (StopOrder); empty: in memory alone.
  OfflineServer(DatabasePlace place, ServiceOptions service, FileSystem& files, Clock& clock,
                Random& random, http::Timers& timers, node::JobRunner& jobs, node::JobRunner& looks,
                Log& log, const Path& stop_order = {});
  ~OfflineServer();

  [[nodiscard]] bool configured() const;
  [[nodiscard]] const DatabasePlace& place() const;
  /// The command that starts the server; empty: not configured.
  [[nodiscard]] std::string start_text() const;
  /// Why the files must be left alone: what this process makes beside them would not be the
  /// server's (check_file_owner). Empty: they may be written.
  [[nodiscard]] std::string wrong_user() const;
  /// Stops the server and waits until no process has the database open, however long the stop
  /// command takes, for `limit` at most. Errors: ServiceControl's, while the files are not free;
  /// kTimeout: they are not free, and the server may still be on its way down; kCancelled once
  /// `flag` is set.
  net::awaitable<Result<void>> stop(std::chrono::milliseconds limit,
                                    std::shared_ptr<const node::StopFlag> flag);
  /// Errors: may_start()'s; kRefused also while it is kept stopped; ServiceControl's.
  net::awaitable<Result<void>> start();
  /// kRefused, with the reason, while an operation works on its files, or a restore of them was
  /// interrupted while it replaced them.
  [[nodiscard]] Result<void> may_start() const;
  /// From now on it is not started, also after a restart of the agent, until allow_start(), or
  /// until someone else has started it. `by`: what wants that, for people. `server`: it may run
  /// where it is about to be stopped. Error: it cannot be remembered.
  Result<void> keep_stopped(std::string_view by, StopOrder::Server server);
  /// The server answered as this instance: where it had been stopped and a process has its files
  /// open, someone else has started it, and it is no longer kept stopped.
  void see_running(std::string_view instance);
  /// Errors: may_start()'s, those of the file.
  Result<void> allow_start();
  /// What keeps it stopped; empty: nothing.
  [[nodiscard]] std::string kept_stopped_by() const;
  /// While it lives, an operation works on the files.
  [[nodiscard]] std::shared_ptr<const void> hold_files() const;
  /// Runs a job on the files; the server must be stopped. Errors: the job's; kCancelled once `flag`
  /// is set: the job is then between two steps.
  net::awaitable<Result<void>> run(std::shared_ptr<Job> job,
                                   std::shared_ptr<const node::StopFlag> flag);
  /// The database of the stopped server, for writing. kRefused while a process has the files open;
  /// other errors: the engine's.
  [[nodiscard]] Result<std::unique_ptr<streams::Database>> open_database() const;
  [[nodiscard]] OfflineMachine machine() const;
  /// False while a process has the database open for writing, and until the last one that was seen
  /// with it is gone. Reads /proc, and opens nothing. Once true, a server that was about to be
  /// stopped (keep_stopped()) has stopped.
  /// Error: kRefused: it cannot be seen.
  net::awaitable<Result<bool>> files_are_free();

 private:
  struct Parts;
  std::shared_ptr<Parts> parts_;
};

}  // namespace verger::external
