#pragma once

#include <chrono>
#include <memory>

#include <boost/asio/awaitable.hpp>

#include "engine/streams/event_store.h"
#include "nodeagent/http/notifier.h"
#include "nodeagent/http/task_group.h"
#include "nodeagent/node/detail/chunk_lock.h"
#include "nodeagent/node/election.h"
#include "nodeagent/node/node.h"

namespace verger::node {

/// What each part of a node is given: how the node is configured, the world outside, its database,
/// and whether it still lives. It knows none of the parts. Everything runs on one executor.
class NodeContext : public std::enable_shared_from_this<NodeContext> {
 public:
  virtual ~NodeContext() = default;
  NodeContext(const NodeContext&) = delete;
  NodeContext& operator=(const NodeContext&) = delete;

  /// Started, and neither stopped nor failed: only then may a part act.
  [[nodiscard]] bool serving() const { return started_ && !stopped_ && !failed_; }
  /// Serving, and not about to stop: only then is new work taken.
  [[nodiscard]] bool takes_work() const { return serving() && !stopping_; }
  [[nodiscard]] bool started() const { return started_; }
  /// Nothing more of this node happens.
  [[nodiscard]] bool stopped() const { return stopped_; }
  [[nodiscard]] bool failed() const { return failed_; }
  /// The disk has failed: no more votes, acknowledgements or writes.
  virtual void fail(const Error& error) = 0;

  /// Starts a coroutine of the node; does nothing once it has stopped.
  void spawn(net::awaitable<void> work);
  /// The sync of a flush of the log; the caller finishes it. At env.disk, unless small writes come
  /// one by one, and the latest sync was so brief that changing threads would take longer.
  net::awaitable<Result<void>> sync(std::shared_ptr<log::LogFlush> flush);
  /// A pointer to a part for its coroutines: the node lives as long as one of them does.
  template <class Part>
  std::shared_ptr<Part> keep(Part& part) {
    return {shared_from_this(), &part};
  }

  [[nodiscard]] Monotonic now() const { return env.clock.monotonic(); }
  [[nodiscard]] streams::Database& db() const { return *database_; }
  [[nodiscard]] log::TransactionLog& log() const { return database_->transaction_log(); }

  NodeOptions options;
  NodeEnvironment env;
  NodeAddresses addresses;  ///< known from the start on
  NodeId self;              ///< likewise
  Uuid instance;            ///< of this process, and new in the next one
  Ticks born;
  /// The commit position, the state, or something else with waiters has changed.
  http::Notifier changed;
  ChunkLock chunk_lock;

 protected:
  NodeContext(NodeOptions node_options, NodeEnvironment environment,
              std::unique_ptr<streams::Database> database);
  void set_started(NodeAddresses node_addresses);
  void set_stopping() { stopping_ = true; }
  void set_stopped() { stopped_ = true; }
  void set_failed() { failed_ = true; }
  /// No coroutine is started from here on; those that run are requested to end.
  void drop_tasks() { tasks_.reset(); }

 private:
  std::unique_ptr<streams::Database> database_;
  std::unique_ptr<http::TaskGroup> tasks_;
  /// How long the latest sync of the log took, where env.disk is there.
  std::chrono::steady_clock::duration latest_sync_ = std::chrono::hours(1);
  int small_flushes_ = 0;  ///< in a row
  bool started_ = false;
  bool stopping_ = false;
  bool stopped_ = false;
  bool failed_ = false;
};

}  // namespace verger::node
