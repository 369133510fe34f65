#include "nodeagent/node/detail/node_context.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "nodeagent/node/gossip.h"

namespace verger::node {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// Where a sync takes no longer than this, two changes of threads would.
constexpr SteadyClock::duration kBriefSync = std::chrono::microseconds(200);
/// A small write. So many flushes of one in a row: no others come meanwhile, which would have to
/// wait.
constexpr std::int64_t kFewBytes = 512;
constexpr int kAloneAfter = 8;

struct TimedSync {
  Result<void> outcome{};
  SteadyClock::duration took{};
};

TimedSync timed_sync(log::LogFlush& flush) {
  const auto begin = SteadyClock::now();
  auto outcome = flush.sync();
  return {std::move(outcome), SteadyClock::now() - begin};
}

}  // namespace

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
  const bool another_thread = env.disk != env.executor;
  const bool small = flush->end() - log().end().value() <= kFewBytes;
  small_flushes_ = small ? std::min(small_flushes_ + 1, kAloneAfter) : 0;
  if (another_thread && small_flushes_ == kAloneAfter && latest_sync_ <= kBriefSync) {
    auto done = timed_sync(*flush);
    latest_sync_ = done.took;
    co_return std::move(done.outcome);
  }
  // Not cancelled in the middle: what it returns is what the disk has.
  auto done = co_await net::co_spawn(
      env.disk,
      [](std::shared_ptr<log::LogFlush> wanted) -> net::awaitable<TimedSync> {
        co_return timed_sync(*wanted);
      }(flush),
      net::use_awaitable);
  latest_sync_ = done.took;
  co_return std::move(done.outcome);
}

}  // namespace verger::node
