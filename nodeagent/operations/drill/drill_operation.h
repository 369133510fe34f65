#pragma once

#include <memory>

#include "nodeagent/operations/backup/repositories.h"
#include "nodeagent/operations/drill/drill_settings.h"
#include "nodeagent/operations/operation.h"

namespace verger::agent {

/// backup_drill (api::BackupCheckParameters): restores a generation to the scratch directory,
/// starts a server on it until it leads, stops that, reads everything with the engine, compares the
/// digests with those of the manifest, removes it all, and adds the check to the repository. What
/// the manifest has no digest of is compared with the restored files before the server ran. The
/// node's own database is not touched, and the node may do what it likes meanwhile.
///
/// A backup that cannot be restored, started or read, or that differs, is a result: the operation
/// is done and `passed` false. Codes: "stopped", or the name of the error (no repository, no
/// scratch directory, no space, another drill under way): then nothing is said of the backup.
/// Begun anew by an agent that was restarted. `repositories` and `settings`: null: unsupported.
std::unique_ptr<Operation> make_drill_operation(std::shared_ptr<const Repositories> repositories,
                                                std::shared_ptr<const DrillSettings> settings);

}  // namespace verger::agent
