#include "nodeagent/node/detail/node_context.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "nodeagent/node/gossip.h"

namespace verger::node {

NodeContext::NodeContext(NodeOptions node_options, NodeEnvironment environment,
                         std::unique_ptr<streams::Database> database)
    : options(std::move(node_options)),
      env(std::move(environment)),
      instance(env.random.uuid()),
      born(env.clock.now()),
      changed(env.executor),
      database_(std::move(database)),
      tasks_(std::make_unique<http::TaskGroup>(env.executor, env.log, "node")) {}

void NodeContext::set_started(NodeAddresses node_addresses) {
  addresses = std::move(node_addresses);
  self = node_id(addresses.http);
  started_ = true;
}

void NodeContext::spawn(net::awaitable<void> work) {
  if (tasks_) {
    tasks_->spawn(std::move(work));
  }
}

net::awaitable<Result<void>> NodeContext::sync(std::shared_ptr<log::LogFlush> flush) {
  if (!env.disk) {
    co_return flush->sync();
  }
  // Not cancelled in the middle: what it returns is what the disk has.
  co_return co_await net::co_spawn(
      env.disk,
      [](std::shared_ptr<log::LogFlush> wanted) -> net::awaitable<Result<void>> {
        co_return wanted->sync();
      }(flush),
      net::use_awaitable);
}

}  // namespace verger::node
