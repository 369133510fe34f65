#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "nodeagent/external/database_look.h"
#include "nodeagent/external/service_control.h"
#include "nodeagent/node/job_runner.h"

namespace verger::external {

/// What a scavenge of a stopped server's files did, since it was begun or resumed; -1: not known.
struct OfflineScavenged {
  std::int64_t space_saved = -1;
  std::int64_t records_removed = -1;
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
  /// Why the files must be left alone: what this process makes beside them would not be the
  /// server's (check_file_owner). Empty: they may be written.
  [[nodiscard]] std::string wrong_user() const;
  /// Stops the server and waits until no process has the database open, however long the stop
  /// command takes, for `limit` at most. Errors: ServiceControl's, while the files are not free;
  /// kTimeout: they are not free, and the server may still be on its way down; kCancelled after
  /// interrupt().
  net::awaitable<Result<void>> stop(std::chrono::milliseconds limit);
  net::awaitable<Result<void>> start();
  /// Scavenges up to the point with this number, which is in the log, or resumes an unfinished
  /// one; nothing where it is reached. The server must be stopped: kRefused while a process has the
  /// files open. Other errors: the engine's.
  /// kCancelled after interrupt().
  net::awaitable<Result<void>> scavenge(std::int64_t point, std::int32_t threads);
  /// Of the last scavenge() that ended without an error, since this object was made.
  [[nodiscard]] OfflineScavenged last_scavenged() const;
  /// Stops a scavenge between two steps; it resumes there the next time. One that has not begun
  /// since the last stop() does not begin.
  void interrupt();
  /// False while a process has the database open for writing, and until the last one that was seen
  /// with it is gone. Reads /proc, and opens nothing.
  /// Error: kRefused: it cannot be seen.
  net::awaitable<Result<bool>> files_are_free();

 private:
  struct Parts;
  std::shared_ptr<Parts> parts_;
};

}  // namespace verger::external
