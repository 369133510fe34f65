#include "nodeagent/node/grpc/node_services.h"

#include "nodeagent/node/grpc/service_base.h"
#include "nodeagent/node/node.h"

namespace verger::node {

std::shared_ptr<grpc::ServiceTable> make_services(const Node& node) {
  const auto core = node.core();
  auto& env = core->env;
  const auto table = std::make_shared<grpc::ServiceTable>(grpc::TableEnvironment{
      .clock = env.clock,
      .timers = env.timers,
      .log = env.log,
      .spawn = [weak = std::weak_ptr<Core>(core)](net::awaitable<void> work) {
        if (const auto alive = weak.lock()) {
          alive->spawn(std::move(work));
        }
      }});
  const rpc::Registry registry{.table = table, .core = core};
  // In the order in which the server lists them.
  rpc::add_persistent_subscriptions(registry);
  rpc::add_users(registry);
  rpc::add_streams(registry);
  rpc::add_operations(registry);
  rpc::add_cluster_services(registry);
  rpc::add_redaction(registry);
  return table;
}

}  // namespace verger::node
