#pragma once

#include <memory>
#include <vector>

#include "nodeagent/operations/backup/repositories.h"
#include "nodeagent/operations/operation.h"

namespace verger::agent {

/// stop_server {"serviceDeadlineMs"}: the server is stopped and stays so, also over a restart of
/// the agent, until start_service. Done once no process has its files open and it does not answer;
/// at once where that is so already. Result: {"ran"}: whether there was a server to stop. Codes:
/// "stopped" (cancelled: the server may still be on its way down), "no_effect" (it runs after the
/// deadline), "interrupted".
std::unique_ptr<Operation> make_stop_server_operation();

/// restore (api::RestoreParameters): puts a generation in the place of the files of the stopped
/// server, which stays stopped. An agent that was restarted resumes it. It can be cancelled while
/// it copies: the database is untouched then, and what was copied is used by the next one of the
/// same generation. Codes: "stopped", or the name of the error; "refused": the server runs.
/// `repositories`: null: the agent has none.
std::unique_ptr<Operation> make_restore_operation(std::shared_ptr<const Repositories> repositories);

/// restore_revert (api::RestoredGeneration): puts the files from before the restore back, byte for
/// byte (backup::revert_restore()); the server stays stopped. Nothing to put back is done.
std::unique_ptr<Operation> make_restore_revert_operation();

/// restore_discard_old (api::RestoredGeneration): removes the files that the restore kept, beside
/// the running server, too. Nothing to remove is done.
std::unique_ptr<Operation> make_restore_discard_operation();

/// All of these.
std::vector<std::unique_ptr<Operation>> restore_operations(
    const std::shared_ptr<const Repositories>& repositories);

}  // namespace verger::agent
