#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "controller/daemon/controller.h"
#include "engine/logging/spdlog_log.h"
#include "nodeagent/http/beast_client.h"
#include "nodeagent/http/loopback.h"
#include "nodeagent/http/server.h"

namespace {

using namespace verger;  // NOLINT(google-build-using-namespace): a main file's own
using std::chrono::milliseconds;

constexpr int kUsage = 64;
constexpr int kRefused = 2;
constexpr int kFailed = 1;

struct Options {
  std::string data;
  std::string credentials;
  std::string host = "127.0.0.1";
  std::uint16_t port = 2115;
  std::string port_file;
  std::int64_t poll_interval_ms = 1000;
  std::int64_t request_deadline_ms = 15'000;
  std::int64_t permit_valid_ms = 60'000;
  std::int64_t leader_hold_ms = planner::ScavengePolicy().leader_hold_ms;
  std::int64_t election_settle_ms = planner::ScavengePolicy().election_settle_ms;
  std::int64_t disk_reserve_mib = planner::ScavengePolicy().disk_reserve_bytes >> 20U;
  std::int64_t end_after_seconds = 0;
  bool json_log = false;
};

void add_options(CLI::App& app, Options& options) {
  app.add_option("--data", options.data, "Directory of the journal; made when missing")
      ->required()
      ->envname("VERGER_DATA");
  app.add_option("--credentials", options.credentials,
                 "Directory of credential files (default: DATA/credentials)")
      ->envname("VERGER_CREDENTIALS");
  app.add_option("--host", options.host, "Address to listen on; loopback only")
      ->envname("VERGER_HOST")
      ->capture_default_str();
  app.add_option("--port", options.port, "Port of the API; 0 lets the system choose")
      ->envname("VERGER_PORT")
      ->capture_default_str();
  app.add_option("--port-file", options.port_file, "File to write the chosen port to");
  app.add_option("--poll-interval-ms", options.poll_interval_ms,
                 "Between two looks at a node that acts, or at a closed gate")
      ->envname("VERGER_POLL_INTERVAL_MS")
      ->capture_default_str();
  app.add_option("--request-deadline-ms", options.request_deadline_ms,
                 "For each request to a node or agent")
      ->envname("VERGER_REQUEST_DEADLINE_MS")
      ->capture_default_str();
  app.add_option("--permit-valid-ms", options.permit_valid_ms,
                 "How long an agent keeps a permit without hearing again")
      ->envname("VERGER_PERMIT_VALID_MS")
      ->capture_default_str();
  app.add_option("--leader-hold-ms", options.leader_hold_ms,
                 "How long a new leader must hold before a move counts")
      ->envname("VERGER_LEADER_HOLD_MS")
      ->capture_default_str();
  app.add_option("--election-settle-ms", options.election_settle_ms,
                 "No resignation sooner than this after an election")
      ->envname("VERGER_ELECTION_SETTLE_MS")
      ->capture_default_str();
  app.add_option("--disk-reserve-mib", options.disk_reserve_mib,
                 "Disk of a node that must stay free beyond its largest rewrite")
      ->envname("VERGER_DISK_RESERVE_MIB")
      ->capture_default_str();
  app.add_option("--end-after-seconds", options.end_after_seconds,
                 "End by itself after this long (for tests and demos; 0 = never)");
  app.add_flag("--json-log", options.json_log, "Log lines as JSON")->envname("VERGER_JSON_LOG");
  app.set_version_flag("--version", std::string("vergerd ") + VERGER_VERSION);
  app.footer("Example: vergerd --data /var/lib/verger --port 2115");
}

/// Waits for a signal or the end of the allotted time, then ends everything in order.
net::awaitable<void> run_until_told(controller::Controller& controller, http::Server& server,
                                    std::int64_t end_after_seconds, Log& log) {
  using namespace net::experimental::awaitable_operators;
  const auto executor = co_await net::this_coro::executor;
  net::signal_set signals(executor, SIGINT, SIGTERM);
  if (end_after_seconds > 0) {
    net::steady_timer end(executor, std::chrono::seconds(end_after_seconds));
    co_await (signals.async_wait(net::use_awaitable) || end.async_wait(net::use_awaitable));
  } else {
    co_await signals.async_wait(net::use_awaitable);
  }
  log.info("stopping; runs that have not ended go on at the next start");
  co_await server.stop(milliseconds(2000));
  co_await controller.stop();
}

int serve(const Options& options, Log& log) {
  if (!http::is_loopback(options.host)) {
    std::cerr << "vergerd: --host " << options.host
              << ": until TLS and authentication are there vergerd listens on loopback only\n";
    return kUsage;
  }
  net::io_context context{1};
  http::BeastClient client(context.get_executor());
  const Path data = options.data;
  planner::Policy policy;
  policy.scavenge.leader_hold_ms = options.leader_hold_ms;
  policy.scavenge.election_settle_ms = options.election_settle_ms;
  policy.scavenge.disk_reserve_bytes = options.disk_reserve_mib << 20U;
  auto controller = controller::Controller::open(
      {.data_directory = data,
       .credentials_directory =
           options.credentials.empty() ? data / "credentials" : Path(options.credentials),
       .request_deadline = milliseconds(options.request_deadline_ms),
       .executor = {.poll_interval = milliseconds(options.poll_interval_ms),
                    .permit_valid_for = milliseconds(options.permit_valid_ms)},
       .policy = policy},
      {.executor = context.get_executor(),
       .files = posix_file_system(),
       .clock = system_clock(),
       .random = system_random(),
       .timers = http::system_timers(),
       .client = client,
       .log = log});
  if (!controller) {
    std::cerr << "vergerd: " << controller.error().message << '\n';
    return controller.error().code == Errc::kRefused ? kRefused : kFailed;
  }
  http::Server server(context.get_executor(), {.host = options.host, .port = options.port},
                      (*controller)->handler(), log);
  const auto endpoint = server.listen();
  if (!endpoint) {
    std::cerr << "vergerd: " << endpoint.error().message << '\n';
    return endpoint.error().code == Errc::kConflict ? kRefused : kFailed;
  }
  if (!options.port_file.empty()) {
    const auto text = fmt::format("{}\n", endpoint->port);
    if (auto written = write_file_durably(posix_file_system(), options.port_file, as_bytes(text));
        !written) {
      std::cerr << "vergerd: " << written.error().message << '\n';
      return kFailed;
    }
  }
  if (auto started = (*controller)->start(); !started) {
    std::cerr << "vergerd: " << started.error().message << '\n';
    return kFailed;
  }
  log.info("serving",
           {{"url", endpoint->url()}, {"epoch", fmt::format("{}", (*controller)->epoch())}});
  int status = 0;
  net::co_spawn(context, run_until_told(**controller, server, options.end_after_seconds, log),
                [&](const std::exception_ptr& error) {
                  if (error) {
                    log.error("stopping failed");
                    status = kFailed;
                  }
                  context.stop();
                });
  context.run();
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The controller of Verger: observes clusters, plans, executes, journals", "vergerd");
  Options options;
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  LogOptions log_options;
  log_options.json = options.json_log;
  auto log = make_log("vergerd", log_options);
  if (!log) {
    std::cerr << "vergerd: " << log.error().message << '\n';
    return kFailed;
  }
  return serve(options, **log);
}
