#include <iostream>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "controller/daemon/agent_renewal.h"
#include "controller/daemon/agents_authority.h"
#include "controller/daemon/controller.h"
#include "controller/daemon/enrolled_agents.h"
#include "controller/daemon/spawn.h"
#include "controller/daemon/trusted_clients.h"
#include "controller/daemon/vergerd_options.h"
#include "engine/base/exit_code.h"
#include "engine/logging/spdlog_log.h"
#include "engine/settings/settings.h"
#include "nodeagent/http/server.h"

namespace {

using namespace verger;  // NOLINT(google-build-using-namespace): a main file's own
using controller::VergerdOptions;
using std::chrono::milliseconds;

/// Says why vergerd cannot run; its exit code.
int fail(const Error& error) {
  std::cerr << "vergerd: " << error.message << '\n';
  return exit_code_of_start(error);
}

/// Waits for a signal or the end of the allotted time, then ends everything in order.
net::awaitable<void> run_until_told(controller::Controller& controller, http::Server& server,
                                    std::int64_t end_after_seconds, Log& log) {
  using net::experimental::awaitable_operators::operator||;
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

/// The API's certificate; nullptr where it is plain.
Result<std::shared_ptr<http::TlsContext>> load_api_certificate(const VergerdOptions& options,
                                                               Log& log) {
  if (options.api_tls.certificate.empty()) {
    return nullptr;
  }
  VERGER_TRY(auto loaded,
             http::TlsContext::server(options.api_tls, http::ClientCertificate::kNotAsked));
  log.info("certificate of the API loaded", {{"subject", loaded->certificate().subject},
                                             {"serial", loaded->certificate().serial},
                                             {"valid until", loaded->certificate().not_after}});
  return loaded;
}

/// The controller with what it needs of this machine, and the server of its API.
class Vergerd {
 public:
  Vergerd(const VergerdOptions& options, Log& log) : options_(options), log_(log) {}

  /// Errors: those of the certificates, the journal (kRefused: another vergerd has it) and the
  /// port (kConflict).
  Result<void> open() {
    VERGER_TRY(api_tls_, load_api_certificate(options_, log_));
    VERGER_TRY(clients_,
               controller::TrustedClients::make(context_.get_executor(), options_.tls,
                                                Path(options_.data) / "trusted-roots", log_));
    VERGER_TRY(auto authority, controller::AgentsAuthority::open(options_));
    authority_.emplace(std::move(authority));
    VERGER_TRY(enrolled_,
               controller::EnrolledAgents::make(context_.get_executor(), authority_->tls()));
    VERGER_CHECK(open_controller());
    enrolled_->attach(controller_->registry(), controller_->agents());
    authority_->warn_of_strangers(controller_->agents(), log_);
    VERGER_CHECK(listen());
    VERGER_CHECK(controller_->start());
    log_.info("serving",
              {{"url", endpoint_.url()}, {"epoch", fmt::format("{}", controller_->epoch())}});
    return {};
  }

  /// Until it is told to end. The exit code.
  int run() {
    int status = 0;
    net::co_spawn(context_,
                  run_until_told(*controller_, *server_, options_.end_after_seconds, log_),
                  [&](const std::exception_ptr& error) {
                    if (error) {
                      log_.error("stopping failed");
                      status = kExitFailed;
                    }
                    context_.stop();
                  });
    net::co_spawn(context_, reload_on_signal(*clients_, api_tls_, log_),
                  [&](const std::exception_ptr& error) {
                    if (error) {
                      log_.error("SIGHUP is not looked for any more");
                    }
                  });
    net::co_spawn(context_, controller::AgentRenewal::run(renewal()),
                  [&](const std::exception_ptr& error) {
                    if (error) {
                      log_.error("agents' certificates are not renewed any more");
                    }
                  });
    context_.run();
    return status;
  }

 private:
  Result<void> open_controller() {
    VERGER_TRY(const auto standard, clients_->trusting({}));
    const auto executor = context_.get_executor();
    const milliseconds deadline(options_.request_deadline_ms);
    VERGER_TRY(
        controller_,
        controller::Controller::open(
            {.data_directory = options_.data,
             .credentials_directory = options_.credentials_directory(),
             .request_deadline = deadline,
             .executor = {.poll_interval = milliseconds(options_.poll_interval_ms),
                          .permit_valid_for = milliseconds(options_.permit_valid_ms)},
             .policy = options_.policy(),
             .agent_certificate_lifetime = authority_->lifetime},
            {.executor = executor,
             .files = posix_file_system(),
             .clock = system_clock(),
             .random = system_random(),
             .timers = http::system_timers(),
             .client = *standard.nodes,
             .log = log_,
             .clients_of = [this](const std::string& roots) -> Result<controller::ClusterClients> {
               VERGER_TRY(auto both, clients_->trusting(roots));
               both.agents = &enrolled_->routed(*both.agents);
               return both;
             },
             .run_command = controller::spawn_command,
             .authority = &authority_->authority,
             .served_certificate =
                 [executor, deadline](http::Endpoint of) {
                   return http::served_certificate(executor, std::move(of), deadline);
                 }}));
    return {};
  }

  Result<void> listen() {
    server_.emplace(
        context_.get_executor(),
        http::ServerOptions{.host = options_.host, .port = options_.port, .tls = api_tls_},
        controller_->handler(), log_);
    VERGER_TRY(endpoint_, server_->listen());
    if (!options_.port_file.empty()) {
      const auto text = fmt::format("{}\n", endpoint_.port);
      VERGER_CHECK(write_file_durably(posix_file_system(), options_.port_file, as_bytes(text)));
    }
    return {};
  }

  controller::AgentRenewal renewal() {
    return {.book = controller_->agents(),
            .registry = controller_->registry(),
            .clock = system_clock(),
            .timers = http::system_timers(),
            .log = log_,
            .client_of = [this](const controller::EnrolledAgent& agent) -> http::Client& {
              return enrolled_->client_of(agent);
            },
            .renew_own = [this]() -> Result<void> {
              VERGER_TRY(const bool renewed, authority_->renew());
              return renewed ? enrolled_->reload() : Result<void>{};
            },
            .request_deadline = milliseconds(options_.request_deadline_ms),
            // Short-lived certificates of tests are looked at more often.
            .look_every = std::min<milliseconds>(std::chrono::hours(1),
                                                 milliseconds(authority_->lifetime) / 20)};
  }

  const VergerdOptions& options_;
  Log& log_;
  net::io_context context_{1};
  std::shared_ptr<http::TlsContext> api_tls_;
  std::unique_ptr<controller::TrustedClients> clients_;
  std::optional<controller::AgentsAuthority> authority_;
  std::unique_ptr<controller::EnrolledAgents> enrolled_;
  std::unique_ptr<controller::Controller> controller_;
  std::optional<http::Server> server_;
  http::Endpoint endpoint_;
};

int serve(const VergerdOptions& options, Log& log) {
  if (auto checked = controller::check_options(options); !checked) {
    return fail(checked.error());
  }
  if (!options.tls.certificate.empty() && options.tls.trusted_roots.empty()) {
    log.info("no --ca: https works for clusters that name their own trusted roots");
  }
  Vergerd vergerd(options, log);
  if (auto opened = vergerd.open(); !opened) {
    return fail(opened.error());
  }
  return vergerd.run();
}

}  // namespace

int main(int argc, char** argv) {
  settings::Settings all("vergerd",
                         "the controller of Verger: observes clusters, plans, executes, journals");
  VergerdOptions options;
  controller::add_options(all, options);
  const auto asked = all.parse(argc, argv);
  if (!asked) {
    std::cerr << "vergerd: " << asked.error().message << '\n';
    return kExitUsage;
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
  log_options.level = parse_log_level(options.log_level).value_or(LogLevel::kInfo);
  auto log = make_log("vergerd", log_options);
  if (!log) {
    return fail(log.error());
  }
  for (const auto& warning : all.warnings()) {
    (*log)->warning(warning);
  }
  return serve(options, **log);
}
