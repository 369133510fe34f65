#pragma once

#include <memory>
#include <string>

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "nodeagent/api/agent.h"
#include "nodeagent/http/task_group.h"
#include "nodeagent/node/inspection.h"
#include "nodeagent/node/job_runner.h"

namespace verger::agent {

/// What a controller wants to know, and how gently.
struct DigestQuery {
  std::int64_t point = 0;
  bool readable = true;        ///< false: the logical digest alone, without temporary files
  int throttle_percent = 100;  ///< share of the time spent working, 1 to 100
};

/// Digests of the node's log up to a scavenge point, computed one at a time. A finished one is kept
/// until the node or the chunks below the point change, one that was stopped until it is requested
/// again: then it resumes where it stopped. Work without a request for a minute stops by itself.
/// One executor.
class Digests {
 public:
  /// Temporary files go to `directory`, without a name.
  Digests(node::JobRunner& jobs, http::TaskGroup& tasks, Clock& clock, FileSystem& files,
          Path directory)
      : jobs_(jobs),
        tasks_(tasks),
        clock_(clock),
        files_(files),
        directory_(std::move(directory)) {}

  /// The digest, or how far it is (try again), or why it cannot be had: kNotFound (no such point in
  /// this node's log), kRefused (another one is being computed), kNoSpace (temporary files), the
  /// job's own errors; what failed is tried again after some minutes.
  Result<api::DigestAnswer> ask(node::NodeInspection& node, const DigestQuery& query);
  /// Ends the work on this point between two of its steps: within a second, however large the log.
  /// It is forgotten unless it is to be kept. Nothing happens where there is none.
  void stop(std::int64_t point, bool keep);
  /// Ends all computation.
  void stop();
  /// Frees what was stopped and not requested again for more than a day.
  void forget_old();

 private:
  struct Work;
  class GentleWork;
  static net::awaitable<void> compute(std::shared_ptr<Work> work, std::shared_ptr<GentleWork> job,
                                      node::JobRunner& jobs, Clock& clock);
  void resume(int throttle_percent);
  [[nodiscard]] Result<api::DigestAnswer> answer() const;

  node::JobRunner& jobs_;
  http::TaskGroup& tasks_;
  Clock& clock_;
  FileSystem& files_;
  Path directory_;
  std::shared_ptr<Work> work_;
};

}  // namespace verger::agent
