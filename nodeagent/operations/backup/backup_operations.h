#pragma once

#include <memory>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "nodeagent/operations/backup/repositories.h"
#include "nodeagent/operations/operation.h"

/// What an agent does for backups. Names, parameters and results:
/// nodeagent/api/backup_operations.h. `repositories` is null where the agent is configured without
/// any: then all of them are refused.
namespace verger::agent {

using RepositoriesPointer = std::shared_ptr<const Repositories>;

/// backup: copies the database of the running node. Refused while a scavenge runs on it, and where
/// its files cannot be copied while it runs (engine/backup/source.h); a scavenge that begins during
/// the copy makes it end with "conflict", and the next backup does not copy again what is stored.
std::unique_ptr<Operation> make_backup_operation(RepositoriesPointer repositories);
/// offline_backup: stops the server for the copy, and starts it again. Refused on a leader. Codes:
/// also those of StoppedServerOperation.
std::unique_ptr<Operation> make_offline_backup_operation(RepositoriesPointer repositories);
/// snapshot_backup: has disk snapshots of the node's volumes made, copies them and has them deleted
/// again. The node may do anything meanwhile, also a scavenge. Refused where the agent has no
/// program for it. After a restart of the agent, or a stop of the operation, what was made is
/// deleted.
std::unique_ptr<Operation> make_snapshot_backup_operation(RepositoriesPointer repositories);
/// When the agent starts: deletes the disk snapshots that an earlier process made and did not
/// delete. What cannot be deleted is logged, and tried again before the next one is made.
net::awaitable<void> delete_left_snapshots(std::shared_ptr<const BackupAccess> access);
/// backup_verify: reads one generation and records the check.
std::unique_ptr<Operation> make_backup_verify_operation(RepositoriesPointer repositories);
/// backup_retain: deletes generations by rules or by id.
std::unique_ptr<Operation> make_backup_retain_operation(RepositoriesPointer repositories);

/// All of these.
std::vector<std::unique_ptr<Operation>> backup_operations(const RepositoriesPointer& repositories);

}  // namespace verger::agent
