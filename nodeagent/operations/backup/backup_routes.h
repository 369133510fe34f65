#pragma once

#include "nodeagent/http/router.h"
#include "nodeagent/operations/backup/catalogue.h"

namespace verger::agent {

/// GET /agent/v1/backups/repositories and /agent/v1/backups (nodeagent/api/agent_backups.h).
/// `catalogue` is null where the agent is configured without repositories: then there are none.
void add_backup_routes(http::Router& router, BackupCatalogue::Self catalogue);

}  // namespace verger::agent
