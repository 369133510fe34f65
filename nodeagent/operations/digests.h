#pragma once

#include <memory>
#include <string>

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "nodeagent/api/agent.h"
#include "nodeagent/http/task_group.h"
#include "nodeagent/node/inspection.h"
#include "nodeagent/node/job_runner.h"
#include "nodeagent/operations/jobs/paced_job.h"

namespace verger::agent {

/// What a controller wants to know, and how gently.
struct DigestQuery {
  std::int64_t point = 0;
  bool readable = true;        ///< false: the logical digest alone, without temporary files
  int throttle_percent = 100;  ///< share of the time spent working, 1 to 100; of ask() alone
};

/// A digest that is being computed; `digest` is there once it is done.
class DigestJob : public MeteredJob {
 public:
  [[nodiscard]] virtual const api::Digest& digest() const = 0;
};

/// Digests of the node's log up to a scavenge point, computed one at a time. A finished one is kept
/// until the node or the chunks below the point change, one that was stopped until it is requested
/// again: then it resumes where it stopped. All of it is in memory and in temporary files without a
/// name: an agent that was restarted begins anew. One executor.
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

  /// The job that computes the digest, or the rest of it; done at its first step where it is there.
  /// Errors: kNotFound (no such point in this node's log), kRefused (another one is being
  /// computed), kNoSpace (temporary files).
  Result<std::shared_ptr<DigestJob>> job(node::NodeInspection& node, const DigestQuery& query);
  /// Drops what is kept of this point, unless it is being computed.
  void forget(std::int64_t point);
  /// Frees what was stopped and not requested again for more than a day.
  void forget_old();

  // For controllers of the version before, to which a digest is no operation; until the next one.

  /// The digest, or how far it is (try again: that keeps it going, and resumes it), or why it
  /// cannot be had: job()'s errors and those of the work; what failed is tried again after some
  /// minutes.
  Result<api::DigestAnswer> ask(node::NodeInspection& node, const DigestQuery& query);
  /// Ends the work that ask() began on this point between two of its steps. It is forgotten unless
  /// it is to be kept. Nothing happens where there is none.
  void stop(std::int64_t point, bool keep);
  /// Ends all work that ask() began.
  void stop();

 private:
  struct Work;
  class WorkJob;
  struct Asked;
  static net::awaitable<void> compute(std::shared_ptr<Asked> asked, std::shared_ptr<PacedJob> paced,
                                      node::JobRunner& jobs, Clock& clock);

  node::JobRunner& jobs_;
  http::TaskGroup& tasks_;
  Clock& clock_;
  FileSystem& files_;
  Path directory_;
  std::shared_ptr<Work> work_;
  std::shared_ptr<Asked> asked_;
};

}  // namespace verger::agent
