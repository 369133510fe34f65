#include "tests/support/socket_node/socket_node.h"

#include <chrono>
#include <exception>
#include <utility>

#include <boost/asio/co_spawn.hpp>

#include "engine/base/random.h"
#include "nodeagent/node/grpc/node_services.h"
#include "tests/support/results.h"

namespace verger::test {

using namespace std::chrono_literals;

void SocketNode::open(node::NodeOptions options) {
  options.database = database();
  options.assume_stopped = true;
  options.enable_atom_pub = true;
  options.stream_existence_filter_size = 10'000;
  options.timings = node::NodeTimings::fast();
  node_ = value(node::Node::open(options, {.executor = context_.get_executor(),
                                           .files = posix_file_system(),
                                           .clock = system_clock(),
                                           .random = system_random(),
                                           .timers = http::system_timers(),
                                           .client = client_,
                                           .frames = frames_,
                                           .jobs = jobs_,
                                           .log = null_log()}));
  const auto table = node::make_services(*node_);
  const auto http2 = std::make_shared<const http::Http2Service>(
      http::Http2Service{.takes = [table](const http::Request& head) { return table->takes(head); },
                         .calls =
                             [table](std::shared_ptr<http::Http2Exchange> exchange) {
                               return grpc::ServiceTable::serve(table, std::move(exchange));
                             }});
  const auto serve = [&] {
    return std::make_unique<http::Server>(context_.get_executor(),
                                          http::ServerOptions{.http2 = http2},
                                          node_->http_handler(), null_log());
  };
  server_ = serve();
  unix_server_ = serve();
  endpoint_ = value(server_->listen());
  ok(unix_server_->listen_at(socket()));
  node_->start({.http = endpoint_, .replication = {.host = "127.0.0.1", .port = 1}});
}

net::awaitable<void> SocketNode::become_leader() {
  while (co_await send("POST", "/streams/orders", R"({"n":1})") != 201) {
    co_await pause();
  }
}

net::awaitable<void> SocketNode::stop() {
  co_await node_->stop();
  if (unix_server_ != nullptr) {
    co_await unix_server_->stop(200ms);
  }
  co_await server_->stop(200ms);
  unix_server_.reset();
  server_.reset();
  node_.reset();
}

void SocketNode::run(net::awaitable<void> work) {
  bool ended = false;
  std::exception_ptr failed;
  net::co_spawn(context_, std::move(work), [&](const std::exception_ptr& failure) {
    ended = true;
    failed = failure;
    context_.stop();
  });
  context_.restart();
  context_.run_for(60s);
  ASSERT_TRUE(ended) << "the test's coroutine hangs";
  if (failed) {
    std::rethrow_exception(failed);
  }
}

net::awaitable<int> SocketNode::send(std::string method, std::string target, std::string body,
                                     std::string event_type) {
  http::Request request{.method = std::move(method), .target = std::move(target)};
  request.headers.set("Content-Type", "application/json");
  request.headers.set("ES-EventType", std::move(event_type));
  request.headers.set("ES-EventId", system_random().uuid().to_string());
  request.body = std::move(body);
  co_return (co_await node_->http_handler()(std::move(request))).status;
}

net::awaitable<void> SocketNode::pause() { co_await http::system_timers().sleep_for(5ms); }

net::awaitable<void> SocketNode::scavenge_ends() {
  while (node_->inspection().running_scavenge()) {
    co_await pause();
  }
}

std::map<std::string, std::uint64_t> SocketNode::chunk_files() const {
  std::map<std::string, std::uint64_t> names;
  for (const auto& entry : value(posix_file_system().list(database()))) {
    if (entry.name.starts_with("chunk-")) {
      names[entry.name] = entry.size;
    }
  }
  return names;
}

}  // namespace verger::test
