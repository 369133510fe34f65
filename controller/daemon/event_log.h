#pragma once

#include <functional>
#include <memory>
#include <string>

#include "controller/journal/journal.h"
#include "engine/base/log.h"

namespace verger::controller {

struct EventLogParts {
  Journal& journal;
  Log& log;
  /// The cluster of a run that began before; empty where there is no such run.
  std::function<std::string(const std::string& run)> cluster_of;
};

/// Writes a line of the log for what is journaled: requests of people, changes of clusters,
/// policies, tokens and agents, plans, due times, and each transition of a run, its stages and its
/// steps, with their ids. Not for progress. One thread; what it is given outlives it.
class EventLog {
 public:
  /// What the journal holds by now is not logged. Errors: the journal's.
  static Result<std::unique_ptr<EventLog>> open(EventLogParts parts);
  ~EventLog();

 private:
  struct Impl;
  explicit EventLog(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
  Journal::Subscription subscription_;
};

}  // namespace verger::controller
