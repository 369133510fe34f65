#include <algorithm>
#include <iostream>
#include <sys/stat.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include "controller/api/openapi.h"
#include "controller/daemon/agents_authority.h"
#include "controller/daemon/agents_token.h"
#include "controller/daemon/init.h"
#include "controller/daemon/pair.h"
#include "controller/daemon/term.h"
#include "controller/daemon/trusted_clients.h"
#include "controller/daemon/vergerd_options.h"
#include "controller/web/dashboard.h"
#include "engine/base/exit_code.h"
#include "engine/base/service_notify.h"
#include "engine/logging/spdlog_log.h"
#include "engine/settings/daemon_call.h"
#include "engine/settings/settings.h"
#include "nodeagent/http/server.h"
#include "nodeagent/http/service_watchdog.h"

namespace {

using namespace verger;  // NOLINT(google-build-using-namespace): a main file's own
using controller::VergerdOptions;
using std::chrono::milliseconds;

/// Says why vergerd cannot run; its exit code.
int fail(const Error& error) {
  std::cerr << "vergerd: " << error.message << '\n';
  return exit_code_of_start(error);
}

/// Waits for a signal or the end of the allotted time.
net::awaitable<void> wait_until_stopped(std::int64_t end_after_seconds) {
  using net::experimental::awaitable_operators::operator||;
  const auto executor = co_await net::this_coro::executor;
  net::signal_set signals(executor, SIGINT, SIGTERM);
  if (end_after_seconds > 0) {
    net::steady_timer end(executor, std::chrono::seconds(end_after_seconds));
    co_await (signals.async_wait(net::use_awaitable) || end.async_wait(net::use_awaitable));
  } else {
    co_await signals.async_wait(net::use_awaitable);
  }
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
                {{"error", loaded.error().message}, {"still_served", api->certificate().serial}});
    } else {
      log.info(
          "the API's certificate was reloaded",
          {{"serial", api->certificate().serial}, {"valid_until", api->certificate().not_after}});
    }
  }
}

/// The API's certificate; nullptr where it is plain.
Result<std::shared_ptr<http::TlsContext>> load_api_certificate(const VergerdOptions& options,
                                                               Log& log) {
  if (!options.api_is_https()) {
    return nullptr;
  }
  VERGER_TRY(auto loaded,
             http::TlsContext::server(options.api_files(), http::ClientCertificate::kNotRequested));
  log.info("certificate of the API loaded", {{"subject", loaded->certificate().subject},
                                             {"serial", loaded->certificate().serial},
                                             {"valid_until", loaded->certificate().not_after}});
  return loaded;
}

void warn_of_exposed_keys(const VergerdOptions& options, Log& log) {
  for (const auto& key : {Path(options.api_tls.private_key), Path(options.tls.private_key),
                          Path(options.journal_tls.private_key), options.agents_ca()}) {
    if (const auto warning = key.empty() ? std::string() : exposed_secret(posix_file_system(), key);
        !warning.empty()) {
      log.warning(warning);
    }
  }
}

/// A controller, or one of a pair, with what it needs of this machine, and the server of its API.
class Vergerd {
 public:
  Vergerd(const VergerdOptions& options, Log& log) : options_(options), log_(log) {}

  /// Errors: those of the certificates, the journal (kRefused: another vergerd has it) and the
  /// port (kConflict).
  Result<void> open() {
    warn_of_exposed_keys(options_, log_);
    VERGER_TRY(auto authority, controller::AgentsAuthority::open(options_));
    VERGER_TRY(const bool new_certificate, authority.renew_api(options_));
    static_cast<void>(new_certificate);
    VERGER_TRY(api_tls_, load_api_certificate(options_, log_));
    VERGER_TRY(auto agents_token,
               controller::open_or_make_agents_token(options_.agents_token(), system_random()));
    VERGER_TRY(clients_, controller::TrustedClients::make(context_.get_executor(), options_.tls,
                                                          Path(options_.data) / "trusted-roots",
                                                          std::move(agents_token), log_));
    authority_.emplace(std::move(authority));
    return options_.journal_etcd.empty() ? open_alone() : open_as_one_of_a_pair();
  }

  /// Until it is ordered to end. The exit code.
  int run() {
    int status = 0;
    net::co_spawn(context_, end_when_stopped(*this), [&](const std::exception_ptr& error) {
      if (error) {
        log_.error("stopping failed");
        status = kExitFailed;
      }
      context_.stop();
    });
    net::co_spawn(context_, reload_on_signal(*clients_, api_tls_, log_),
                  [&](const std::exception_ptr& error) {
                    if (error) {
                      log_.error("SIGHUP is no longer handled");
                    }
                  });
    if (!options_.api_names.empty()) {
      net::co_spawn(context_, renew_api(*this), [&](const std::exception_ptr& error) {
        if (error) {
          log_.error("the API's certificate is no longer renewed");
        }
      });
    }
    net::co_spawn(context_, http::feed_watchdog(notify_, http::system_timers()),
                  [&](const std::exception_ptr& error) {
                    if (error) {
                      log_.error("the service manager's watchdog is no longer answered");
                    }
                  });
    notify_.ready(fmt::format("serving {}", endpoint_.url()));
    context_.run();
    return status;
  }

 private:
  static net::awaitable<void> end_when_stopped(Vergerd& self) {
    co_await wait_until_stopped(self.options_.end_after_seconds);
    self.log_.info("stopping; runs that have not ended continue at the next start");
    self.notify_.stopping();
    if (self.pair_ != nullptr) {
      co_await self.pair_->stop();  // first: the other one waits for it
    }
    co_await self.server_->stop(milliseconds(2000));
    self.log_.info("the API is closed");
    if (self.term_ != nullptr) {
      co_await self.term_->end();
    }
  }

  /// Until the context ends. One of a pair renews its own, on standby too.
  static net::awaitable<void> renew_api(Vergerd& self) {
    // Some twenty looks in a lifetime, so that a failed renewal has further attempts before the
    // end.
    const auto look_every =
        std::min<milliseconds>(std::chrono::hours(1), milliseconds(self.authority_->lifetime) / 20);
    while (true) {
      co_await http::system_timers().sleep_for(look_every);
      auto renewed = self.authority_->renew_api(self.options_);
      if (renewed && *renewed) {
        if (auto loaded = self.api_tls_->reload(); !loaded) {
          renewed = loaded.error();
        }
      }
      if (!renewed) {
        self.log_.error("the API's certificate was not renewed; it will be tried again",
                        {{"error", renewed.error().message}});
      } else if (*renewed) {
        self.log_.info("the API's certificate was renewed",
                       {{"serial", self.api_tls_->certificate().serial},
                        {"valid_until", self.api_tls_->certificate().not_after}});
      }
    }
  }

  [[nodiscard]] controller::TermParts term_parts() {
    return {.executor = context_.get_executor(),
            .options = options_,
            .clients = *clients_,
            .authority = *authority_,
            .log = log_};
  }

  Result<void> open_alone() {
    VERGER_TRY(term_, controller::Term::open(term_parts(), {}));
    VERGER_RETURN_IF_ERROR(listen(term_->controller().handler()));
    VERGER_RETURN_IF_ERROR(term_->start());
    log_.info("serving", {{"url", endpoint_.url()},
                          {"epoch", fmt::format("{}", term_->controller().epoch())}});
    return {};
  }

  Result<void> open_as_one_of_a_pair() {
    VERGER_TRY(auto etcd, options_.etcd());
    // The URL has the port, which is only known once it listens.
    VERGER_RETURN_IF_ERROR(
        listen([this](http::Request request) { return pair_->handler()(std::move(request)); }));
    VERGER_TRY(pair_,
               controller::Pair::make(
                   {.executor = context_.get_executor(),
                    .etcd = etcd,
                    .lease_ttl = std::chrono::seconds(options_.journal_lease_seconds),
                    .url = options_.public_url.empty() ? endpoint_.url() : options_.public_url,
                    .agents_authority = authority_->authority.fingerprint(),
                    .clock = system_clock(),
                    .timers = http::system_timers(),
                    .log = log_,
                    .open_term = [this, etcd](controller::EtcdTerm term) {
                      return controller::Term::open(term_parts(), [etcd, term] {
                        return controller::open_etcd_journal(etcd, system_clock(), term);
                      });
                    }}));
    pair_->start();
    log_.info("serving; one of a pair",
              {{"url", endpoint_.url()}, {"journal", options_.journal_etcd}});
    return {};
  }

  Result<void> listen(http::Handler api) {
    dashboard_.emplace(controller::web::DashboardParts{.api = std::move(api),
                                                       .random = system_random(),
                                                       .clock = system_clock(),
                                                       .secure = options_.api_is_https()});
    server_.emplace(context_.get_executor(),
                    http::ServerOptions{.host = options_.host,
                                        .port = options_.port,
                                        .tls = api_tls_,
                                        .knows =
                                            [this](const http::Request& sent) {
                                              const auto head = dashboard_->identified(sent);
                                              return term_ != nullptr
                                                         ? term_->controller().knows(head)
                                                         : pair_ != nullptr && pair_->knows(head);
                                            }},
                    dashboard_->handler(), log_);
    VERGER_TRY(endpoint_, server_->listen());
    if (!options_.port_file.empty()) {
      const auto text = fmt::format("{}\n", endpoint_.port);
      VERGER_RETURN_IF_ERROR(
          write_file_durably(posix_file_system(), options_.port_file, as_bytes(text)));
    }
    return {};
  }

  const VergerdOptions& options_;
  Log& log_;
  ServiceNotify notify_ = ServiceNotify::of_this_process();
  net::io_context context_{1};
  std::shared_ptr<http::TlsContext> api_tls_;
  std::unique_ptr<controller::TrustedClients> clients_;
  std::optional<controller::AgentsAuthority> authority_;
  std::shared_ptr<controller::Term> term_;  ///< where it is alone
  std::unique_ptr<controller::Pair> pair_;
  std::optional<controller::web::Dashboard> dashboard_;
  std::optional<http::Server> server_;
  http::Endpoint endpoint_;
};

/// What a start would read of these options; opens and makes nothing. The exit code.
int check_config(const settings::Settings& all, const VergerdOptions& options) {
  if (auto checked = controller::check_options(options); !checked) {
    return fail(checked.error());
  }
  if (!options.api_tls.certificate.empty()) {
    auto loaded = http::TlsContext::server(options.api_tls, http::ClientCertificate::kNotRequested);
    if (!loaded) {
      return fail(loaded.error());
    }
  }
  std::cout << settings::checked_text(all);
  return kExitDone;
}

/// Every task but running. The exit code.
int do_task(const settings::DaemonCall& call, settings::Settings& all) {
  const auto done = [](const Result<void>& result) {
    return result ? kExitDone : fail(result.error());
  };
  switch (call.task) {
    case settings::DaemonTask::kVersion:
      std::cout << "vergerd " << VERGER_VERSION << '\n';
      return kExitDone;
    case settings::DaemonTask::kManual:
      return done(settings::write_manual(all, "vergerd", call.directory));
    case settings::DaemonTask::kShowDefaults: {
      const auto text = settings::defaults_of(all, call.arguments, "vergerd");
      if (!text) {
        return fail(text.error());
      }
      std::cout << *text;
      return kExitDone;
    }
    case settings::DaemonTask::kCheckConfig:
    case settings::DaemonTask::kRun:
      break;
  }
  return kExitDone;
}

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
  // The journal and all else is not for others to read.
  ::umask(S_IRWXG | S_IRWXO);
  settings::Settings all("vergerd",
                         "the controller of Verger: observes clusters, plans, executes, journals");
  VergerdOptions options;
  controller::add_options(all, options);
  auto commands = settings::daemon_commands();
  commands.insert(commands.begin(), controller::init_command());
  commands.push_back({"openapi", "Prints the OpenAPI document of its API"});
  all.set_commands(std::move(commands));
  if (argc > 1 && std::string_view(argv[1]) == "init") {
    return controller::run_init(argc - 1, argv + 1, std::cout, std::cerr);
  }
  if (argc == 2 && std::string_view(argv[1]) == "openapi") {
    std::cout << controller::openapi_document(VERGER_VERSION).dump(1) << '\n';
    return kExitDone;
  }
  const auto call = settings::daemon_call(argc, argv);
  if (!call) {
    return fail(call.error());
  }
  if (call->task != settings::DaemonTask::kRun &&
      call->task != settings::DaemonTask::kCheckConfig) {
    return do_task(*call, all);
  }
  const auto action = all.parse(call->arguments, settings::environment_of_this_process());
  if (!action) {
    std::cerr << "vergerd: " << action.error().message << '\n';
    return kExitUsage;
  }
  if (*action == settings::Settings::Action::kHelp) {
    std::cout << all.help();
    return 0;
  }
  if (*action == settings::Settings::Action::kVersion) {
    std::cout << "vergerd " << VERGER_VERSION << '\n';
    return 0;
  }
  if (call->task == settings::DaemonTask::kCheckConfig) {
    return check_config(all, options);
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
