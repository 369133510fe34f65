#include "nodeagent/operations/drill/drill_server.h"

#include <algorithm>
#include <arpa/inet.h>
#include <csignal>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/unique_fd.h"
#include "nodeagent/client/judge.h"
#include "nodeagent/client/node_client.h"

namespace verger::agent {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook{100};
constexpr milliseconds kRequestLimit{5'000};
constexpr int kMostStarts = 4;
constexpr std::size_t kLogEnd = 600;

/// Free at this moment.
Result<std::uint16_t> free_port() {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);  // NOLINT: as the interface has it
  if (!socket.valid() || ::bind(socket.get(), raw, size) != 0 ||
      ::getsockname(socket.get(), raw, &size) != 0) {
    return Error{Errc::kIo, "no free port on loopback for the server of the drill"};
  }
  return ntohs(address.sin_port);
}

Path log_of(const DrillPlace& place) { return place.directory() / "server.log"; }
Path url_file(const DrillPlace& place) { return place.directory() / "server-url"; }

std::string end_of_log(FileSystem& files, const DrillPlace& place) {
  const auto bytes = read_file(files, log_of(place));
  if (!bytes || bytes->empty()) {
    return "it has printed nothing";
  }
  auto text = std::string(as_text(*bytes));
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  const auto from = text.size() > kLogEnd ? text.size() - kLogEnd : 0;
  return "its log ends: " + text.substr(from);
}

std::vector<std::string> embedded_node(const DrillSettings& settings, const DrillPlace& place) {
  return {settings.node_program.string(),
          "--role",
          "node",
          "--insecure",
          "--fast-timings",
          "--db",
          place.database().string(),
          "--host",
          "127.0.0.1",
          "--node-port",
          "0",
          "--replication-port",
          "0",
          "--cluster-size",
          "1",
          "--enable-atom-pub-over-http",
          "--url-file",
          url_file(place).string()};
}

}  // namespace

Result<void> DrillServer::spawn(DrillPlace& place) {
  const auto& settings = environment_.settings;
  // Our own options, where they come by the environment, are not the drill's.
  external::ChildOptions child{.without = "VERGER_", .output = log_of(place)};
  if (settings.command.empty()) {
    if (const auto removed = environment_.files.remove(url_file(place));
        !removed && removed.error().code != Errc::kNotFound) {
      return removed;
    }
    child.command = embedded_node(settings, place);
  } else {
    VERGER_TRY(port_, free_port());
    VERGER_TRY(const auto other, free_port());
    child.command = {"/bin/sh", "-c", settings.command};
    child.environment = {{"VERGER_DRILL_DB", place.database().string()},
                         {"VERGER_DRILL_INDEX", (place.database() / "index").string()},
                         {"VERGER_DRILL_HTTP_PORT", std::to_string(port_)},
                         {"VERGER_DRILL_TCP_PORT", std::to_string(other)}};
  }
  VERGER_TRY(process_, external::ChildProcess::start(child));
  const auto seen = external::process_with(process_->id());
  return seen ? place.note_process(*seen) : Result<void>();
}

std::string DrillServer::url(const DrillPlace& place) const {
  if (port_ != 0) {
    return fmt::format("http://127.0.0.1:{}", port_);
  }
  const auto bytes = read_file(environment_.files, url_file(place));
  return bytes ? std::string(as_text(*bytes)) : std::string();
}

net::awaitable<Result<bool>> DrillServer::leads(const std::string& url) {
  VERGER_CO_TRY(const auto endpoint, http::parse_endpoint(url));
  const client::NodeClient node(*environment_.settings.client, endpoint,
                                client::SharedCredentials(), {}, kRequestLimit);
  const auto gossip = client::to_result(co_await node.gossip());
  if (!gossip || gossip->members.empty()) {
    co_return false;  // it has not begun to answer
  }
  const auto& self = gossip->members.front();
  if (self.state != api::NodeState::kLeader) {
    co_return false;
  }
  // One that leads serves reads.
  const auto stats = client::to_result(co_await node.stats());
  writer_position_ = std::max(self.writer_checkpoint, stats ? stats->checksum : std::int64_t{-1});
  co_return true;
}

net::awaitable<Result<std::unique_ptr<DrillServer>>> DrillServer::start(
    Environment environment, DrillPlace* place, std::shared_ptr<const node::StopFlag> stop) {
  std::unique_ptr<DrillServer> server(new DrillServer(environment));
  const auto& settings = environment.settings;
  const auto began = environment.clock.monotonic();
  VERGER_CO_RETURN_IF_ERROR(server->spawn(*place));
  for (int starts = 1;;) {
    if (stop->requested()) {
      co_return Error{Errc::kCancelled, "stopped while the server of the drill was starting"};
    }
    if (const auto status = server->process_->status()) {
      if (*status != 0 || starts == kMostStarts) {
        co_return Error{Errc::kUnavailable,
                        fmt::format("the server that was started on the restored database ended "
                                    "with status {}; {}",
                                    *status, end_of_log(environment.files, *place))};
      }
      ++starts;
      VERGER_CO_RETURN_IF_ERROR(server->spawn(*place));
    }
    if (const auto url = server->url(*place); !url.empty()) {
      VERGER_CO_TRY(const bool leads, co_await server->leads(url));
      if (leads) {
        co_return server;
      }
    }
    if (environment.clock.monotonic() - began > settings.start_limit) {
      co_return Error{
          Errc::kUnavailable,
          fmt::format("the server that was started on the restored database does not "
                      "lead after {} s; {}",
                      settings.start_limit.count() / 1000, end_of_log(environment.files, *place))};
    }
    co_await environment.timers.sleep_for(kLook);
  }
}

net::awaitable<void> DrillServer::stop() {
  process_->signal(SIGTERM);
  const auto began = environment_.clock.monotonic();
  while (!process_->status() &&
         environment_.clock.monotonic() - began < environment_.settings.stop_limit) {
    co_await environment_.timers.sleep_for(kLook);
  }
  process_.reset();
}

}  // namespace verger::agent
