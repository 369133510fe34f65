#pragma once

#include <functional>
#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "engine/base/random.h"
#include "engine/base/result.h"
#include "nodeagent/http/client.h"
#include "nodeagent/http/frames.h"
#include "nodeagent/http/timers.h"
#include "nodeagent/node/inspection.h"
#include "nodeagent/node/job_runner.h"
#include "nodeagent/node/options.h"

namespace verger::node {

class Core;

/// Everything a node gets from outside. References must outlive the node and its executor.
struct NodeEnvironment {
  net::any_io_executor executor;  ///< single-threaded; everything of the node runs on it
  FileSystem& files;
  Clock& clock;
  Random& random;
  http::Timers& timers;
  http::Client& client;
  http::FrameTransport& frames;
  JobRunner& jobs;
  Log& log;
  /// Of a thread that may wait for the disk: syncs of the log run there, so that requests are
  /// answered meanwhile. Empty: on `executor`.
  net::any_io_executor disk{};
  /// POST /admin/shutdown was answered: the owner now calls stop() and ends.
  std::function<void()> on_shutdown = [] {};
  /// POST /admin/reloadconfig was answered: reads certificates and roots again. Empty: no TLS.
  std::function<void()> on_reload{};
  /// The disk failed for good: the node serves no more and its owner should end the process.
  std::function<void(Error)> on_failure = [](const Error&) {};
};

/// An embedded node. One executor, no threads.
///
/// Use: open(); bind http_handler() and frame_handler() to servers (or to a simulated network);
/// start() with the addresses they got. stop() ends it gracefully. Destroying it at any moment is a
/// crash as far as the node is concerned: nothing more is written; its coroutines end when the
/// executor's context is polled or destroyed. Destroy the node before the context.
class Node {
 public:
  /// Opens the database (may take long: index rebuild), creating an empty one where nothing is.
  /// Errors: those of streams::Database::open, kInvalidArgument (options).
  static Result<std::unique_ptr<Node>> open(NodeOptions options, NodeEnvironment environment);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Valid at once and for as long as the caller likes; before start() the node answers as one
  /// that is initializing, after it is gone 503.
  http::Handler http_handler();
  http::FrameHandler frame_handler();

  /// Joins the cluster: gossip, elections, replication.
  void start(NodeAddresses addresses);
  /// Refuses new writes, stops a running scavenge, waits for what is in flight (at most
  /// shutdown_grace), closes links, brings checkpoints up to date. The node answers nothing after.
  net::awaitable<void> stop();

  NodeInspection& inspection();
  /// The node's parts, for its other services (nodeagent/node/grpc).
  [[nodiscard]] std::shared_ptr<Core> core() const;

 private:
  class Impl;
  explicit Node(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace verger::node
