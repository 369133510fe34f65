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
#include "nodeagent/node/job_runner.h"

namespace verger::external {

/// What a job on a stopped server's files works with.
struct OfflineMachine {
  FileSystem& files;
  Clock& clock;
  Random& random;
  Log& log;
};

/// A server that is stopped so that our engine can work on its files, and started again.
class OfflineServer {
 public:
  /// `looks`: for what takes milliseconds and must not wait behind a long job; may be `jobs`.
  OfflineServer(DatabasePlace place, ServiceOptions service, FileSystem& files, Clock& clock,
                Random& random, http::Timers& timers, node::JobRunner& jobs, node::JobRunner& looks,
                Log& log);
  ~OfflineServer();

  [[nodiscard]] bool configured() const;
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
  net::awaitable<Result<void>> start();
  /// Runs a job on the files; the server must be stopped. Errors: the job's; kCancelled once `flag`
  /// is set: the job is then between two steps.
  net::awaitable<Result<void>> run(std::shared_ptr<Job> job,
                                   std::shared_ptr<const node::StopFlag> flag);
  /// The database of the stopped server, for writing. kRefused while a process has the files open;
  /// other errors: the engine's.
  [[nodiscard]] Result<std::unique_ptr<streams::Database>> open_database() const;
  [[nodiscard]] OfflineMachine machine() const;
  /// False while a process has the database open for writing, and until the last one that was seen
  /// with it is gone. Reads /proc, and opens nothing.
  /// Error: kRefused: it cannot be seen.
  net::awaitable<Result<bool>> files_are_free();

 private:
  struct Parts;
  std::shared_ptr<Parts> parts_;
};

}  // namespace verger::external
