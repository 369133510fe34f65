#pragma once

#include <memory>

#include "nodeagent/grpc/service_table.h"

/// The services of the node interface over gRPC (docs/formats/grpc.md).
namespace verger::node {

class Node;

/// All services of one node, which they hold weakly: calls after its end are not served.
std::shared_ptr<grpc::ServiceTable> make_services(const Node& node);

}  // namespace verger::node
