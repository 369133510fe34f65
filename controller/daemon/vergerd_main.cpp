#include <iostream>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "controller/daemon/agent_renewal.h"
#include "controller/daemon/controller.h"
#include "controller/daemon/enrolled_agents.h"
#include "controller/daemon/spawn.h"
#include "controller/daemon/trusted_clients.h"
#include "engine/base/directories.h"
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
  http::TlsFiles api_tls;  ///< of the API; without a certificate it is plain, on loopback
  std::string agents_ca_file;
  std::int64_t agent_certificate_days = 90;
  std::int64_t agent_certificate_seconds = 0;
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
  all.add("host", options.host,
          "Address to listen on; without --api-certificate-file loopback only");
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
          "vergerd's own certificate for agents that have one of another authority", tls);
  all.add("certificate-private-key-file", options.tls.private_key, "Its key", tls);
  all.add("api-certificate-file", options.api_tls.certificate,
          "Certificate of the API, its intermediates behind it (PEM): the API is https", tls);
  all.add("api-certificate-private-key-file", options.api_tls.private_key, "Its key", tls);
  all.add(
      "agents-ca-file", options.agents_ca_file,
      "Key and root, in one file of mode 0600, of the authority that issues the certificates of "
      "agents that enrol; made at the first start, never replaced (default: DATA/agents-ca.pem)",
      tls);
  all.add("agent-certificate-days", options.agent_certificate_days,
          "How long such a certificate is valid; renewed when two thirds are over",
          {.group = "Certificates", .unit = "d"});
  all.add("agent-certificate-seconds", options.agent_certificate_seconds,
          "The same in seconds, for tests (0: the days count)",
          {.group = "Certificates", .unit = "s", .hidden = true});
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

net::awaitable<void> reload_on_signal(controller::TrustedClients& clients,
                                      std::shared_ptr<http::TlsContext> api, Log& log) {
  net::signal_set signals(co_await net::this_coro::executor, SIGHUP);
  while (true) {
    co_await signals.async_wait(net::use_awaitable);
    log.info("reading certificates and trusted roots again: SIGHUP has been received");
    clients.reload();
    if (api == nullptr) {
      continue;
    }
    if (auto loaded = api->reload(); !loaded) {
      log.error("the API's certificate was not reloaded; the former one stays",
                {{"error", loaded.error().message}, {"still served", api->certificate().serial}});
    } else {
      log.info(
          "the API's certificate was reloaded",
          {{"serial", api->certificate().serial}, {"valid until", api->certificate().not_after}});
    }
  }
}

/// The authority of vergerd's agents, and vergerd's own certificate of it.
struct AgentsAuthority {
  certificates::Authority authority;
  Path own_certificate;
  std::chrono::seconds lifetime;

  static Result<AgentsAuthority> open(const Options& options) {
    const Path data = options.data;
    VERGER_CHECK(make_directories_durably(posix_file_system(), data));
    VERGER_TRY(auto authority, certificates::Authority::open_or_make(
                                   options.agents_ca_file.empty() ? data / "agents-ca.pem"
                                                                  : Path(options.agents_ca_file),
                                   system_clock().now()));
    AgentsAuthority out{std::move(authority), data / "agents-client.pem",
                        options.agent_certificate_seconds > 0
                            ? std::chrono::seconds(options.agent_certificate_seconds)
                            : std::chrono::hours(24 * options.agent_certificate_days)};
    VERGER_TRY(const bool made, out.renew());
    static_cast<void>(made);
    return out;
  }
  [[nodiscard]] Result<bool> renew() const {
    return controller::renew_own_certificate(authority, own_certificate, lifetime,
                                             system_clock().now());
  }
  /// `root` is told by its file, which holds the key too; only certificates are read from it.
  [[nodiscard]] http::TlsFiles tls(const std::string& root) const {
    return {.certificate = own_certificate.string(),
            .private_key = own_certificate.string(),
            .trusted_roots = root};
  }
};

/// An authority that is not the one agents enrolled with helps nobody, and nobody would notice.
void warn_of_strangers(const controller::AgentBook& book, const certificates::Authority& authority,
                       Log& log) {
  for (const auto& agent : book.agents()) {
    if (agent.authority != authority.fingerprint()) {
      log.error("an agent has enrolled with an authority that is not there any more",
                {{"cluster", agent.cluster},
                 {"node", agent.node},
                 {"do", "restore the file of --agents-ca-file, or enrol the agent again"}});
    }
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
  if (options.api_tls.certificate.empty() != options.api_tls.private_key.empty()) {
    return usage(
        "--api-certificate-file and --api-certificate-private-key-file belong together: give both "
        "or none");
  }
  if (options.api_tls.certificate.empty() && !http::is_loopback(options.host)) {
    return usage("--host " + options.host +
                 ": plain HTTP is for this machine alone; to listen on other addresses give "
                 "--api-certificate-file and --api-certificate-private-key-file");
  }
  std::shared_ptr<http::TlsContext> api_tls;
  if (!options.api_tls.certificate.empty()) {
    auto loaded = http::TlsContext::server(options.api_tls, http::ClientCertificate::kNotAsked);
    if (!loaded) {
      std::cerr << "vergerd: " << loaded.error().message << '\n';
      return kFailed;
    }
    api_tls = *std::move(loaded);
    log.info("certificate of the API loaded", {{"subject", api_tls->certificate().subject},
                                               {"serial", api_tls->certificate().serial},
                                               {"valid until", api_tls->certificate().not_after}});
  }
  net::io_context context{1};
  const Path data = options.data;
  const auto clients = controller::TrustedClients::make(context.get_executor(), options.tls,
                                                        data / "trusted-roots", log);
  if (!clients) {
    std::cerr << "vergerd: " << clients.error().message << '\n';
    return clients.error().code == Errc::kInvalidArgument ? kUsage : kFailed;
  }
  if (options.agent_certificate_days < 1) {
    return usage("--agent-certificate-days must be at least 1");
  }
  const auto agents = AgentsAuthority::open(options);
  if (!agents) {
    std::cerr << "vergerd: " << agents.error().message << '\n';
    return agents.error().code == Errc::kRefused ? kRefused : kFailed;
  }
  const auto agents_ca =
      options.agents_ca_file.empty() ? (data / "agents-ca.pem").string() : options.agents_ca_file;
  const auto enrolled =
      controller::EnrolledAgents::make(context.get_executor(), agents->tls(agents_ca));
  if (!enrolled) {
    std::cerr << "vergerd: " << enrolled.error().message << '\n';
    return kFailed;
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
       .policy = policy,
       .agent_certificate_lifetime = agents->lifetime},
      {.executor = context.get_executor(),
       .files = posix_file_system(),
       .clock = system_clock(),
       .random = system_random(),
       .timers = http::system_timers(),
       .client = *standard->nodes,
       .log = log,
       .clients_of = [&](const std::string& roots) -> Result<controller::ClusterClients> {
         VERGER_TRY(auto both, (*clients)->trusting(roots));
         both.agents = &(*enrolled)->routed(*both.agents);
         return both;
       },
       .run_command = controller::spawn_command,
       .authority = &agents->authority,
       .served_certificate =
           [executor = context.get_executor(),
            deadline = milliseconds(options.request_deadline_ms)](http::Endpoint of) {
             return http::served_certificate(executor, std::move(of), deadline);
           }});
  if (!controller) {
    std::cerr << "vergerd: " << controller.error().message << '\n';
    return controller.error().code == Errc::kRefused ? kRefused : kFailed;
  }
  (*enrolled)->attach((*controller)->registry(), (*controller)->agents());
  warn_of_strangers((*controller)->agents(), agents->authority, log);
  http::Server server(context.get_executor(),
                      {.host = options.host, .port = options.port, .tls = api_tls},
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
  net::co_spawn(context, reload_on_signal(**clients, api_tls, log),
                [&](const std::exception_ptr& error) {
                  if (error) {
                    log.error("SIGHUP is not looked for any more");
                  }
                });
  // Short-lived certificates of tests are looked at more often.
  const auto look_every =
      std::min<milliseconds>(std::chrono::hours(1), milliseconds(agents->lifetime) / 20);
  net::co_spawn(context,
                controller::AgentRenewal::run(
                    {.book = (*controller)->agents(),
                     .registry = (*controller)->registry(),
                     .clock = system_clock(),
                     .timers = http::system_timers(),
                     .log = log,
                     .client_of = [&](const controller::EnrolledAgent& agent) -> http::Client& {
                       return (*enrolled)->client_of(agent);
                     },
                     .renew_own = [&]() -> Result<void> {
                       VERGER_TRY(const bool renewed, agents->renew());
                       return renewed ? (*enrolled)->reload() : Result<void>{};
                     },
                     .request_deadline = milliseconds(options.request_deadline_ms),
                     .look_every = look_every}),
                [&](const std::exception_ptr& error) {
                  if (error) {
                    log.error("agents' certificates are not renewed any more");
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
