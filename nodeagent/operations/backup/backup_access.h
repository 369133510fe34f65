#pragma once

#include <string>

#include "engine/backup/disk_snapshots.h"
#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "engine/base/random.h"
#include "nodeagent/node/job_runner.h"

namespace verger::agent {

/// What an agent needs for backups, as it is configured. All of it outlives the agent.
struct BackupAccess {
  /// Each file NAME.json in it is the repository NAME (docs/operations/backup.md, "Repository
  /// files").
  Path repositories{};
  /// For drills; empty: this agent makes none.
  Path scratch{};
  Path temporary{};  ///< of the agent: made when it is needed
  /// How disk snapshots are made; without a program: they are not.
  backup::SnapshotSettings snapshots{};
  FileSystem& files;     ///< of the repositories and of all above
  FileSystem& database;  ///< of the node's database
  Clock& clock;
  Random& random;
  Log& log;
  /// For what may wait for a repository that does not answer: nothing else waits behind it.
  node::JobRunner& jobs;
  std::string host{};  ///< of the machine, for manifests
};

}  // namespace verger::agent
