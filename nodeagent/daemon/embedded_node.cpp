#include "nodeagent/daemon/embedded_node.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <boost/asio/thread_pool.hpp>

#include "nodeagent/daemon/detail/database_place.h"
#include "nodeagent/daemon/detail/slow_disk.h"
#include "nodeagent/daemon/detours.h"
#include "nodeagent/http/frame_transport.h"
#include "nodeagent/http/server.h"
#include "nodeagent/http/timers.h"
#include "nodeagent/node/grpc/node_services.h"
#include "nodeagent/node/node.h"

namespace verger::agent {

using std::chrono::milliseconds;

/// As the server's own: then 408, while the handler continues (node-interface.md, 1.1).
constexpr milliseconds kHandlerTime{10'000};

/// The servers refer to the node's handlers, so they are declared, and end, after it.
struct EmbeddedNode::State {
  State(net::any_io_executor executor, const NodeTls* tls, http::Client& client,
        const ProgramOptions& options, Log& log)
      : tcp_frames(std::move(executor), tls == nullptr ? nullptr : tls->calls()),
        frames(tcp_frames, options.detours),
        calls(client, options.detours) {
    if (!options.slow_disk.empty()) {
      slow_disk.emplace(posix_file_system(), options.slow_disk, system_random(), log);
    }
  }
  http::TcpFrameTransport tcp_frames;
  DetourFrames frames;
  DetourClient calls;
  std::optional<SlowDisk> slow_disk;
  net::thread_pool disk{1};  ///< waits for syncs of the log
  std::unique_ptr<node::Node> node;
  std::unique_ptr<http::Server> server;
  std::unique_ptr<http::Server> unix_server;  ///< null: none is wanted
  std::unique_ptr<http::FrameAcceptor> acceptor;
  bool shutdown_asked = false;
  bool disk_failed = false;
};

namespace {

/// A long poll's wait is no slowness of its handler; one that is too long to be meant is cut.
milliseconds long_poll(const http::Request& request) {
  int seconds = 0;
  if (const auto text = request.headers.get("ES-LongPoll")) {
    std::from_chars(text->data(), text->data() + text->size(), seconds);
  }
  return std::chrono::seconds(std::clamp(seconds, 0, 3600));
}

/// The routes between nodes are for nodes alone: a client there has to show a node's certificate.
http::Handler only_nodes_between_nodes(http::Handler handler, Log& log) {
  return [handler = std::move(handler),
          &log](http::Request request) -> net::awaitable<http::Response> {
    // As the router reads it: an encoded letter makes no other route.
    const auto target = http::parse_target(request.target);
    const bool between = target && !target->segments.empty() && target->segments[0] == "verger";
    if (between && !request.peer.certificate_is_node) {
      log.warning("a request of another node was refused: no node's certificate",
                  {{"peer", request.peer.address},
                   {"common_name", request.peer.certificate_common_name.value_or("none")}});
      return [](http::Response refused) -> net::awaitable<http::Response> {
        co_return refused;
      }(http::Response{.status = 401});
    }
    return handler(std::move(request));
  };
}

/// As servers from 23.6 to 25.0 name it.
constexpr std::string_view kUnixSocket = "eventstore.sock";

/// gRPC on the node's port; the certificates, and what they say of a client, are the HTTP server's.
std::shared_ptr<const http::Http2Service> grpc_service(const node::Node& node,
                                                       const ProgramOptions& options) {
  const auto table = node::make_services(node);
  return std::make_shared<const http::Http2Service>(http::Http2Service{
      .options = {.keep_alive_interval = milliseconds(options.keep_alive_interval_ms),
                  .keep_alive_timeout = milliseconds(options.keep_alive_timeout_ms)},
      .takes = [table](const http::Request& head) { return table->takes(head); },
      .calls =
          [table](std::shared_ptr<http::Http2Exchange> exchange) {
            return grpc::ServiceTable::serve(table, std::move(exchange));
          }});
}

}  // namespace

EmbeddedNode::EmbeddedNode(std::unique_ptr<State> state) : state_(std::move(state)) {}
EmbeddedNode::~EmbeddedNode() = default;

Result<std::unique_ptr<EmbeddedNode>> EmbeddedNode::start(
    const ProgramOptions& options, net::any_io_executor executor, http::Client& client,
    node::JobRunner& jobs, const NodeTls* tls, std::function<void()> on_reload, Log& log) {
  auto state = std::make_unique<State>(executor, tls, client, options, log);
  auto* raw = state.get();
  VERGER_RETURN_IF_ERROR(
      check_database_place(posix_file_system(), options.node.database, options.init));
  VERGER_TRY(
      state->node,
      node::Node::open(options.node,
                       {.executor = executor,
                        .files = state->slow_disk ? state->slow_disk->files() : posix_file_system(),
                        .clock = system_clock(),
                        .random = system_random(),
                        .timers = http::system_timers(),
                        .client = state->calls,
                        .frames = state->frames,
                        .jobs = jobs,
                        .log = log,
                        .disk = raw->disk.get_executor(),
                        .on_shutdown = [raw] { raw->shutdown_asked = true; },
                        .on_reload = std::move(on_reload),
                        .on_failure =
                            [raw, &log](const Error& error) {
                              log.error("the node's disk failed", {{"error", error.message}});
                              raw->disk_failed = true;
                            }}));
  auto handler = state->node->http_handler();
  if (tls != nullptr) {
    handler = only_nodes_between_nodes(std::move(handler), log);
  }
  const auto http2 = grpc_service(*state->node, options);
  if (options.unix_socket) {
    state->unix_server = std::make_unique<http::Server>(
        executor,
        http::ServerOptions{
            .limits = {.handler = kHandlerTime}, .more_time = long_poll, .http2 = http2},
        handler, log);
  }
  state->server = std::make_unique<http::Server>(
      executor,
      http::ServerOptions{.host = options.node_ip,
                          .port = options.node_port,
                          .limits = {.handler = kHandlerTime},
                          .more_time = long_poll,
                          .tls = tls == nullptr ? nullptr : tls->clients(),
                          .http2 = http2},
      std::move(handler), log);
  state->acceptor = std::make_unique<http::FrameAcceptor>(
      executor,
      http::FrameAcceptorOptions{.host = options.replication_ip,
                                 .port = options.replication_port,
                                 .tls = tls == nullptr ? nullptr : tls->nodes()},
      state->node->frame_handler(), log);
  VERGER_TRY(auto http, state->server->listen());
  VERGER_TRY(auto replication, state->acceptor->listen());
  if (state->unix_server) {
    VERGER_RETURN_IF_ERROR(
        state->unix_server->listen_at((options.node.database / kUnixSocket).string()));
  }
  if (!options.advertised_host.empty()) {
    http.host = options.advertised_host;
    replication.host = options.advertised_host;
  }
  if (!options.advertised_replication_host.empty()) {
    replication.host = options.advertised_replication_host;
  }
  state->node->start({.http = http, .replication = replication});
  if (!options.url_file.empty()) {
    VERGER_RETURN_IF_ERROR(
        write_file_durably(posix_file_system(), options.url_file, as_bytes(http.url())));
  }
  log.info("the node serves", {{"url", http.url()},
                               {"database", options.node.database.string()},
                               {"instance", state->node->inspection().instance_id()}});
  return std::unique_ptr<EmbeddedNode>(new EmbeddedNode(std::move(state)));
}

node::NodeInspection* EmbeddedNode::inspection() {
  return state_->node ? &state_->node->inspection() : nullptr;
}

bool EmbeddedNode::wants_to_stop() const {
  return state_->node && (state_->shutdown_asked || state_->disk_failed);
}

bool EmbeddedNode::failed() const { return state_->disk_failed; }

net::awaitable<void> EmbeddedNode::stop() {
  if (!state_->node) {
    co_return;
  }
  co_await state_->node->stop();
  co_await state_->acceptor->stop(milliseconds(200));
  co_await state_->server->stop(milliseconds(500));
  if (state_->unix_server) {
    co_await state_->unix_server->stop(milliseconds(500));
  }
  state_->node.reset();
}

}  // namespace verger::agent
