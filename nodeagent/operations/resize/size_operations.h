#pragma once

#include <memory>
#include <vector>

#include "nodeagent/operations/operation.h"
#include "nodeagent/operations/resize/server_config_file.h"

namespace verger::agent {

/// server_size (api::ServerSize): the server is stopped, its configuration file gets another
/// ClusterSize and other gossip seeds, and the server is started; done once it answers and reports
/// the new size. Whether it leads or follows then is not asked: between nodes of different sizes it
/// may do neither. One that leads resigns first. Codes: "conflict" (the file shows another size, or
/// someone else has changed it), "no_effect" (it answers, and does not report the new size: the
/// former bytes are put back), "no_answer".
std::unique_ptr<Operation> make_server_size_operation(std::shared_ptr<ServerConfigFile> file);

/// server_size_restore (api::ServerSizeRestore): the same with the bytes from before that change;
/// done at once where the file and the running server are so already.
std::unique_ptr<Operation> make_server_size_restore_operation(
    std::shared_ptr<ServerConfigFile> file);

std::vector<std::unique_ptr<Operation>> size_operations(
    const std::shared_ptr<ServerConfigFile>& file);

}  // namespace verger::agent
