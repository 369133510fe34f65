#include <iostream>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "controller/daemon/controller.h"
#include "controller/daemon/spawn.h"
#include "controller/daemon/trusted_clients.h"
#include "engine/logging/spdlog_log.h"
#include "engine/settings/settings.h"
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
  controller::ClientTls tls;
  std::int64_t poll_interval_ms = 1000;
  std::int64_t request_deadline_ms = 15'000;
  std::int64_t permit_valid_ms = 60'000;
  std::int64_t leader_hold_ms = planner::ScavengePolicy().leader_hold_ms;
  std::int64_t election_settle_ms = planner::ScavengePolicy().election_settle_ms;
  std::int64_t disk_reserve_mib = planner::ScavengePolicy().disk_reserve_bytes >> 20U;
  std::int64_t end_after_seconds = 0;
  bool json_log = false;
};

void add_options(settings::Settings& all, Options& options) {
  all.add("data", options.data, "Directory of the journal; made when missing");
  all.add("credentials", options.credentials,
          "Directory of credential files (default: DATA/credentials)");
  all.add("host", options.host, "Address to listen on; loopback only");
  all.add("port", options.port, "Port of the API; 0 lets the system choose");
  all.add("port-file", options.port_file, "File to write the chosen port to");
  all.add("json-log", options.json_log, "Log lines as JSON");
  all.add("end-after-seconds", options.end_after_seconds,
          "End by itself after this long (0: never)", {.hidden = true});
  const settings::Traits tls{.group = "Certificates"};
  all.add("ca", options.tls.trusted_roots,
          "Trusted roots of nodes and agents: a file, or a directory of .crt .cer .pem .der; a "
          "cluster may name its own (verger cluster add --ca)",
          {.group = "Certificates", .aliases = {"trusted-roots"}});
  all.add("certificate-file", options.tls.certificate,
          "vergerd's own certificate, which agents ask for over https", tls);
  all.add("certificate-private-key-file", options.tls.private_key, "Its key", tls);
  const settings::Traits times{.group = "Times", .unit = "ms"};
  all.add("poll-interval-ms", options.poll_interval_ms,
          "Between two looks at a node that acts, or at a closed gate", times);
  all.add("request-deadline-ms", options.request_deadline_ms, "For each request to a node or agent",
          times);
  all.add("permit-valid-ms", options.permit_valid_ms,
          "How long an agent keeps a permit without hearing again", times);
  all.add("leader-hold-ms", options.leader_hold_ms,
          "How long a new leader must hold before a move counts", times);
  all.add("election-settle-ms", options.election_settle_ms,
          "No resignation sooner than this after an election", times);
  all.add("disk-reserve-mib", options.disk_reserve_mib,
          "Disk of a node that must stay free beyond its largest rewrite",
          {.group = "Limits", .unit = "MiB"});
  all.set_footer(
      "Example: vergerd --data /var/lib/verger --ca /etc/verger/ca\n"
      "Annotated file: examples/vergerd.yaml");
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

net::awaitable<void> reload_on_signal(controller::TrustedClients& clients, Log& log) {
  net::signal_set signals(co_await net::this_coro::executor, SIGHUP);
  while (true) {
    co_await signals.async_wait(net::use_awaitable);
    log.info("reading certificates and trusted roots again: SIGHUP has been received");
    clients.reload();
  }
}

int usage(std::string_view text) {
  std::cerr << "vergerd: " << text << '\n';
  return kUsage;
}

int serve(const Options& options, Log& log) {
  if (options.data.empty()) {
    return usage("--data is missing: a directory for the journal");
  }
  if (options.tls.certificate.empty() != options.tls.private_key.empty()) {
    return usage(
        "--certificate-file and --certificate-private-key-file belong together: give both or none");
  }
  if (!options.tls.certificate.empty() && options.tls.trusted_roots.empty()) {
    log.info("no --ca: https works for clusters that name their own trusted roots");
  }
  if (!http::is_loopback(options.host)) {
    return usage("--host " + options.host +
                 ": vergerd's own API has no TLS and no authentication yet, so it listens on "
                 "loopback only");
  }
  net::io_context context{1};
  const Path data = options.data;
  const auto clients = controller::TrustedClients::make(context.get_executor(), options.tls,
                                                        data / "trusted-roots", log);
  if (!clients) {
    std::cerr << "vergerd: " << clients.error().message << '\n';
    return clients.error().code == Errc::kInvalidArgument ? kUsage : kFailed;
  }
  const auto standard = (*clients)->trusting({});
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
       .client = *standard->nodes,
       .log = log,
       .clients_of = [&clients](const std::string& roots) { return (*clients)->trusting(roots); },
       .run_command = controller::spawn_command});
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
  net::co_spawn(context, reload_on_signal(**clients, log), [&](const std::exception_ptr& error) {
    if (error) {
      log.error("SIGHUP is not looked for any more");
    }
  });
  context.run();
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  settings::Settings all("vergerd",
                         "the controller of Verger: observes clusters, plans, executes, journals");
  Options options;
  add_options(all, options);
  const auto asked = all.parse(argc, argv);
  if (!asked) {
    return usage(asked.error().message);
  }
  if (*asked == settings::Settings::Asked::kHelp) {
    std::cout << all.help();
    return 0;
  }
  if (*asked == settings::Settings::Asked::kVersion) {
    std::cout << "vergerd " << VERGER_VERSION << '\n';
    return 0;
  }
  LogOptions log_options;
  log_options.json = options.json_log;
  auto log = make_log("vergerd", log_options);
  if (!log) {
    std::cerr << "vergerd: " << log.error().message << '\n';
    return kFailed;
  }
  for (const auto& warning : all.warnings()) {
    (*log)->warning(warning);
  }
  return serve(options, **log);
}
