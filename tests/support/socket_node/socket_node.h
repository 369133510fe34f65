#pragma once

#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include "nodeagent/http/beast_client.h"
#include "nodeagent/http/frame_transport.h"
#include "nodeagent/http/server.h"
#include "nodeagent/node/job_runner.h"
#include "nodeagent/node/node.h"
#include "tests/support/temp_directory.h"

namespace verger::test {

/// One embedded node on the machine's disk and network, with its Unix socket. It works while run()
/// does; who opens it stops it.
class SocketNode : public ::testing::Test {
 public:
  /// On what is in database(), with Atom, as a cluster of one.
  void open(node::NodeOptions options);
  /// Once it leads, it takes writes.
  net::awaitable<void> become_leader();
  net::awaitable<void> stop();
  /// Runs the node until `work` has ended; throws what it throws.
  void run(net::awaitable<void> work);

  /// A request to the node itself, as of a client that writes an event. Its status.
  net::awaitable<int> send(std::string method, std::string target, std::string body = {},
                           std::string event_type = "noted");
  net::awaitable<void> pause();
  /// Until the scavenge that runs, if any, has ended.
  net::awaitable<void> scavenge_ends();

  Path database() const { return directory_.path() / "db"; }
  std::string socket() const { return (database() / "eventstore.sock").string(); }
  /// Names of chunk files, with their sizes.
  std::map<std::string, std::uint64_t> chunk_files() const;

  TempDirectory directory_;
  net::io_context context_{1};
  net::thread_pool pool_{1};
  node::PoolJobRunner jobs_{pool_.get_executor(), http::system_timers()};
  http::BeastClient client_{context_.get_executor()};
  http::TcpFrameTransport frames_{context_.get_executor()};
  std::unique_ptr<node::Node> node_;
  std::unique_ptr<http::Server> server_;
  std::unique_ptr<http::Server> unix_server_;
  http::Endpoint endpoint_;
};

}  // namespace verger::test
