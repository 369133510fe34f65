#include <iostream>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/host_name.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <nlohmann/json.hpp>

#include "engine/base/database_files.h"
#include "engine/base/exit_code.h"
#include "engine/base/private_file.h"
#include "engine/logging/spdlog_log.h"
#include "nodeagent/certificates/certificate_info.h"
#include "nodeagent/daemon/agent_options.h"
#include "nodeagent/daemon/controller_guard.h"
#include "nodeagent/daemon/credentials_file.h"
#include "nodeagent/daemon/embedded_node.h"
#include "nodeagent/daemon/enrol.h"
#include "nodeagent/daemon/epoch_command.h"
#include "nodeagent/daemon/identity.h"
#include "nodeagent/daemon/node_certificates.h"
#include "nodeagent/external/external_node.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/external/truncation_watch.h"
#include "nodeagent/http/beast_client.h"
#include "nodeagent/http/server.h"
#include "nodeagent/http/timers.h"
#include "nodeagent/operations/agent.h"
#include "nodeagent/operations/backup/backup_access.h"
#include "nodeagent/operations/drill/drill_settings.h"

namespace {

using namespace verger;         // NOLINT(google-build-using-namespace): a main file's own
using namespace verger::agent;  // NOLINT(google-build-using-namespace)
using std::chrono::milliseconds;

constexpr milliseconds kLookInterval{50};
constexpr std::chrono::seconds kCredentialsInterval{5};

int fail(const Error& error) {
  std::cerr << "verger-agent: " << error.message;
  if (error.code == Errc::kCorruption) {
    std::cerr << "; `verger-db verify` lists all damage, and chunk files come back from another "
                 "node or a backup";
  }
  std::cerr << '\n';
  return exit_code_of_start(error);
}

/// TLS of everything this process does; null where its options name no certificates or roots.
struct Tls {
  std::unique_ptr<NodeTls> node;
  std::shared_ptr<http::TlsContext> agent;
  std::shared_ptr<http::TlsContext> calls;
};

Result<Tls> load_tls(const ProgramOptions& options, Log& log) {
  Tls tls;
  if (options.role != Role::kAgent && options.node_has_tls()) {
    VERGER_TRY(tls.node, NodeTls::load(options.node_tls, log));
    tls.calls = tls.node->calls();
  } else if (!options.node_tls.trusted_roots.empty()) {
    VERGER_TRY(tls.calls,
               http::TlsContext::client({.trusted_roots = options.node_tls.trusted_roots}));
  }
  if (options.role != Role::kNode && options.agent_has_tls()) {
    VERGER_TRY(tls.agent,
               http::TlsContext::server(options.agent_tls, http::ClientCertificate::kRequired));
  }
  return tls;
}

/// The parts of one process; what its role leaves out is null.
struct Program {
  Program(ProgramOptions chosen, Tls loaded)
      : options(std::move(chosen)),
        tls(std::move(loaded)),
        client(context.get_executor(), {.connection_lifetime = options.connection_lifetime,
                                        .tls = tls.calls,
                                        .plain_to_loopback_only = true}) {}
  ProgramOptions options;
  Tls tls;
  net::io_context context{1};
  net::thread_pool pool{1};
  net::thread_pool looks_pool{1};  ///< for looks at /proc and files, beside long jobs in `pool`
  /// For repositories of backups: one that does not answer holds up its own thread.
  net::thread_pool repositories_pool{4};
  http::BeastClient client;
  node::PoolJobRunner jobs{pool.get_executor(), http::system_timers()};
  node::PoolJobRunner looks{looks_pool.get_executor(), http::system_timers()};
  node::PoolJobRunner repository_jobs{repositories_pool.get_executor(), http::system_timers()};
  std::unique_ptr<CredentialsFile> credentials;  ///< null: none are configured
  std::unique_ptr<EmbeddedNode> node;
  std::unique_ptr<external::ExternalNode> external;  ///< role agent: the server beside it
  std::unique_ptr<external::OfflineServer> offline;
  std::unique_ptr<external::TruncationWatch> truncation;
  std::unique_ptr<Agent> agent;
  std::unique_ptr<Identity> identity;  ///< of an agent that has enrolled
  [[nodiscard]] node::NodeInspection* inspection() const {
    return node ? node->inspection() : external ? external->inspection() : nullptr;
  }
  std::unique_ptr<http::Server> agent_server;
  /// Reads flags, environment and file again.
  std::function<Result<ProgramOptions>()> read_options;
  bool stopping = false;
  int status = 0;
};

/// The password, certificates and roots again, the latter from where the options say now; the rest
/// of the options needs a restart.
void reload(Program& program, Log& log) {
  if (program.credentials) {
    program.credentials->look();
  }
  const auto options = program.read_options();
  if (!options) {
    log.error("An error has occurred while reloading the configuration",
              {{"error", options.error().message}});
    return;
  }
  auto& tls = program.tls;
  if (tls.node) {
    if (!tls.node->reload(options->node_tls)) {
      return;  // it has said why; the agent's certificate is most often the same
    }
  } else if (program.options.role != Role::kAgent) {
    log.info("Skipping reload of certificates since TLS is disabled.");
    log.info("The node's configuration was successfully reloaded");
  }
  const auto again = [&](std::string_view what, const std::shared_ptr<http::TlsContext>& context,
                         const http::TlsFiles& files) {
    if (auto loaded = http::TlsContext::reload_all({context}, files); !loaded) {
      log.error("An error has occurred while reloading the configuration",
                {{"of", std::string(what)}, {"error", loaded.error().message}});
    }
  };
  if (tls.agent && options->agent_enrolled != program.options.agent_enrolled) {
    log.warning("the agent has enrolled since it was started: restart it to use that");
  } else if (tls.agent) {
    again("agent", tls.agent, options->agent_tls);
  }
  if (!tls.node && tls.calls) {
    again("calls", tls.calls, {.trusted_roots = options->node_tls.trusted_roots});
  }
}

/// To what is said of a node that does not answer.
void add_problem(const std::string& problem, std::string& into) {
  if (!problem.empty()) {
    into += into.empty() ? problem : "; " + problem;
  }
}

net::awaitable<Result<std::string>> serial_shown_by(net::any_io_executor executor,
                                                    http::Endpoint node) {
  VERGER_CO_TRY(const auto seen,
                co_await http::served_certificate(executor, node, milliseconds(15'000)));
  co_return seen.serial;
}

class ServerSearch final : public Job {
 public:
  explicit ServerSearch(Path database) : database_(std::move(database)) {}
  Result<StepOutcome> step(Budget /*budget*/) override {
    VERGER_TRY(found, external::find_server(database_));
    return StepOutcome{.kind = StepOutcome::Kind::kDone};
  }
  std::optional<external::ServerProcess> found;

 private:
  Path database_;
};

net::awaitable<Result<std::optional<external::ServerProcess>>> find_server_of(Program* program) {
  const auto search = std::make_shared<ServerSearch>(program->options.node.database);
  VERGER_CO_RETURN_IF_ERROR(
      co_await program->looks.run(search, std::make_shared<node::StopFlag>()));
  co_return search->found;
}

Path stop_order_file(const ProgramOptions& options) {
  return Path(options.state_directory) / "server-kept-stopped";
}

bool look_whether_it_answers(Program& program) {
  const auto* seen = program.external->inspection();
  if (seen != nullptr) {
    program.offline->see_running(seen->instance_id());
  }
  return seen != nullptr;
}

/// What the agent sees of a server in another process.
void look_at_server(Program& program, const http::Endpoint& endpoint, Log& log) {
  const auto& options = program.options;
  program.external = std::make_unique<external::ExternalNode>(
      external::ExternalOptions{
          .place = {.database = options.node.database, .index = options.node.index},
          .server_database = options.server_database,
          .server_index = options.server_index,
          .node = endpoint,
          .credentials = program.credentials ? program.credentials->current() : nullptr,
          .certificate_file = options.node_tls.certificate,
          .trusted_roots = options.node_tls.trusted_roots,
          .poll_interval = milliseconds(options.agent_poll_interval_ms)},
      external::ExternalEnvironment{.executor = program.context.get_executor(),
                                    .files = posix_file_system(),
                                    .clock = system_clock(),
                                    .random = system_random(),
                                    .timers = http::system_timers(),
                                    .client = program.client,
                                    .jobs = program.jobs,
                                    .looks = program.looks,
                                    .log = log});
  program.external->start();
  if (options.service.configured()) {
    program.offline = std::make_unique<external::OfflineServer>(
        external::DatabasePlace{.database = options.node.database, .index = options.node.index},
        options.service, database_file_system(), system_clock(), system_random(),
        http::system_timers(), program.jobs, program.looks, log, stop_order_file(options));
    program.truncation = std::make_unique<external::TruncationWatch>(
        options.node.database, milliseconds(options.agent_poll_interval_ms),
        external::TruncationWatch::Environment{
            .executor = program.context.get_executor(),
            .files = posix_file_system(),
            .timers = http::system_timers(),
            .clock = system_clock(),
            .log = log,
            .answers = [&program] { return look_whether_it_answers(program); },
            .start = [&program] { return program.offline->start(); },
            .find = [&program] { return find_server_of(&program); },
            .runs =
                [](const external::ServerProcess& process) {
                  return external::still_runs(process);
                },
            .kept_stopped = [&program] { return !program.offline->kept_stopped_by().empty(); },
            .given_up_file = Path(options.state_directory) / "server-given-up"});
    program.truncation->start();
  }
}

Result<void> start_node(Program& program, Log& log) {
  // The answer goes out before anything is read, as the server's does.
  const auto on_reload = [&program, &log] {
    net::post(program.context, [&program, &log] { reload(program, log); });
  };
  program.node.reset();
  VERGER_TRY(program.node,
             EmbeddedNode::start(program.options, program.context.get_executor(), program.client,
                                 program.jobs, program.tls.node.get(), on_reload, log));
  return {};
}

net::awaitable<Result<void>> start_own_node(Program* program, Log* log) {
  co_return program->inspection() != nullptr ? Result<void>() : start_node(*program, *log);
}

net::awaitable<Result<void>> stop_own_node(Program* program) {
  if (program->node) {
    co_await program->node->stop();
  }
  co_return Result<void>();
}

/// Role both: the embedded node as a server that its agent stops and starts.
void control_own_node(Program& program, Log& log) {
  const auto& node = program.options.node;
  program.offline = std::make_unique<external::OfflineServer>(
      external::DatabasePlace{.database = node.database, .index = node.index},
      external::ServiceOptions{
          .own = external::ServiceOptions::OwnServer{
              .start = [&program, &log] { return start_own_node(&program, &log); },
              .stop = [&program] { return stop_own_node(&program); },
              .runs = [&program] { return program.inspection() != nullptr; }}},
      database_file_system(), system_clock(), system_random(), http::system_timers(), program.jobs,
      program.looks, log, stop_order_file(program.options));
}

/// What SIGHUP does to this process, as it arrives: later than the request for it.
net::awaitable<Result<void>> hang_up(Program* program, Log* log) {
  net::post(program->context, [program, log] { reload(*program, *log); });
  co_return Result<void>();
}

net::awaitable<Result<void>> signal_server_of(Program* program) {
  VERGER_CO_TRY(const auto server, co_await find_server_of(program));
  if (!server) {
    co_return Error{Errc::kUnavailable, "no process has the server's database open"};
  }
  co_return send_hangup(server->id);
}

/// How the agent changes its node's certificates; null where it does not know them.
std::shared_ptr<const CertificateAccess> node_certificates(Program& program, Log& log) {
  auto access = certificate_access(program.options, program.context.get_executor());
  if (access && program.options.role == Role::kAgent) {
    access->signal_server = [&program] { return signal_server_of(&program); };
    // Its own roots, and perhaps its certificate, are the node's.
    access->reload_own = [&program, &log] { reload(program, log); };
  } else if (access) {
    access->signal_server = [&program, &log]() -> net::awaitable<Result<void>> {
      return hang_up(&program, &log);
    };
  }
  return access;
}

/// What the agent answers, for its controller alone.
Result<http::Handler> guarded(const ProgramOptions& options, http::Handler handler, Log& log) {
  if (options.agent_has_tls()) {
    VERGER_TRY(const auto own, certificates::read_certificates(options.agent_tls.certificate));
    if (own.front().common_name == options.controller_name) {
      return Error{
          Errc::kInvalidArgument,
          fmt::format("--agent-controller-name {}: the agent's own certificate {} has that "
                      "name, so every agent could act as the controller; give vergerd "
                      "a certificate with a name of its own",
                      options.controller_name, options.agent_tls.certificate)};
    }
    return only_the_controller_named(options.controller_name, std::move(handler), log);
  }
  VERGER_TRY(auto token, read_controller_token(options.controller_token_file));
  return only_with_the_token(std::move(token), std::move(handler), system_clock(), log);
}

/// Where the agent keeps backups; null: nowhere.
std::shared_ptr<const BackupAccess> backup_access(Program& program, Log& log) {
  const auto& options = program.options;
  if (options.backup_repositories.empty()) {
    return nullptr;
  }
  return std::make_shared<const BackupAccess>(
      BackupAccess{.repositories = options.backup_repositories,
                   .scratch = options.backup_scratch,
                   .temporary = Path(options.state_directory) / "backup",
                   .files = posix_file_system(),
                   .database = database_file_system(),
                   .clock = system_clock(),
                   .random = system_random(),
                   .log = log,
                   .jobs = program.repository_jobs,
                   .host = net::ip::host_name()});
}

Result<void> start_agent(Program& program, Log& log) {
  const auto& options = program.options;
  auto url = options.node_url;
  if (url.empty()) {
    url = fmt::format("{}://{}:{}", options.node_has_tls() ? "https" : "http",
                      options.advertised_host.empty() ? options.node_ip : options.advertised_host,
                      options.node_port);
  }
  VERGER_TRY(const auto endpoint, http::parse_endpoint(url));
  if (!options.credentials_file.empty()) {
    VERGER_TRY(program.credentials,
               CredentialsFile::open(options.credentials_file, posix_file_system(), log));
  }
  AgentEnvironment environment{
      .executor = program.context.get_executor(),
      .files = posix_file_system(),
      .clock = system_clock(),
      .timers = http::system_timers(),
      .client = program.client,
      .jobs = program.jobs,
      .log = log,
      .inspection = [&program]() { return program.inspection(); },
      .complete_facts =
          [&program](api::AgentFacts& facts) {
            if (program.external) {
              program.external->complete(facts);
            }
            if (program.truncation) {
              add_problem(program.truncation->problem(), facts.node_problem);
              facts.stays_down =
                  program.truncation->has_given_up() ? program.truncation->problem() : "";
            }
            const auto secret =
                program.credentials ? program.credentials->warning() : std::string();
            if (!secret.empty()) {
              facts.warning = facts.warning.empty() ? secret : facts.warning + "; " + secret;
            }
          },
      .make_private = &make_private,
      .certificates = node_certificates(program, log),
      .backups = backup_access(program, log)};
  if (options.role == Role::kAgent) {
    look_at_server(program, endpoint, log);
    environment.served_serial = [&program] { return program.external->served_serial(); };
    environment.serial_on_disk = [&program] { return program.external->serial_on_disk(); };
  } else if (program.tls.node) {
    environment.served_serial = [&program, endpoint] {
      return serial_shown_by(program.context.get_executor(), endpoint);
    };
    environment.serial_on_disk = [&program]() -> Result<std::string> {
      VERGER_TRY(const auto read,
                 certificates::read_certificates(program.options.node_tls.certificate));
      return read.front().serial;
    };
  }
  environment.offline = program.offline.get();
  environment.drills =
      std::make_shared<const DrillSettings>(DrillSettings{.node_program = "/proc/self/exe",
                                                          .command = options.drill_command,
                                                          .client = &program.client});
  VERGER_TRY(
      program.agent,
      Agent::open({.journal = Path(options.state_directory) / "operations.db",
                   .node = endpoint,
                   .credentials = program.credentials ? program.credentials->current() : nullptr,
                   .poll_interval = milliseconds(options.agent_poll_interval_ms)},
                  std::move(environment)));
  auto handler = program.agent->handler();
  if (options.agent_enrolled) {
    program.identity = std::make_unique<Identity>(
        IdentityFiles::in(options.state_directory),
        [&program] { return program.tls.agent->reload(); }, log);
    handler = program.identity->with_renewal(std::move(handler));
  }
  VERGER_TRY(handler, guarded(options, std::move(handler), log));
  program.agent_server = std::make_unique<http::Server>(
      program.context.get_executor(),
      http::ServerOptions{
          .host = options.agent_ip, .port = options.agent_port, .tls = program.tls.agent},
      std::move(handler), log);
  VERGER_TRY(const auto served, program.agent_server->listen());
  program.agent->start();
  log.info("the agent serves", {{"url", served.url()}});
  return {};
}

/// Ends the node when it was ordered to shut down; the process too, unless an agent outlives it.
net::awaitable<void> look_after(Program& program, Log& log) {
  auto credentials_looked_at = std::chrono::steady_clock::now() + kCredentialsInterval;
  while (!program.stopping) {
    if (program.node && program.node->wants_to_stop()) {
      log.info("the node stops");
      if (program.node->failed()) {
        program.status = kExitFailed;
      }
      co_await program.node->stop();
      if (!program.agent) {
        break;
      }
    }
    if (program.credentials && std::chrono::steady_clock::now() >= credentials_looked_at) {
      program.credentials->look();
      credentials_looked_at = std::chrono::steady_clock::now() + kCredentialsInterval;
    }
    co_await http::system_timers().sleep_for(kLookInterval);
  }
  if (program.agent) {
    co_await program.agent_server->stop(milliseconds(500));
    co_await program.agent->stop();
  }
  if (program.node) {
    co_await program.node->stop();
  }
  program.context.stop();
}

net::awaitable<void> wait_for_the_end(Program& program, Log& log) {
  using net::experimental::awaitable_operators::operator||;
  const auto executor = co_await net::this_coro::executor;
  net::signal_set signals(executor, SIGINT, SIGTERM);
  if (const auto seconds = program.options.end_after_seconds; seconds > 0) {
    net::steady_timer end(executor, std::chrono::seconds(seconds));
    co_await (signals.async_wait(net::use_awaitable) || end.async_wait(net::use_awaitable));
  } else {
    co_await signals.async_wait(net::use_awaitable);
  }
  log.info("stopping");
  program.stopping = true;
}

net::awaitable<void> reload_on_signal(Program& program, Log& log) {
  net::signal_set signals(co_await net::this_coro::executor, SIGHUP);
  while (true) {
    co_await signals.async_wait(net::use_awaitable);
    log.info("Reloading the node's configuration since SIGHUP has been received.");
    reload(program, log);
  }
}

/// False: the agent of this process keeps its node stopped.
bool may_start_node(const Program& program, Log& log) {
  if (!program.offline) {
    return true;
  }
  const auto by = program.offline->kept_stopped_by();
  const auto may = program.offline->may_start();
  if (!by.empty() || !may) {
    log.warning("the node is not started",
                {{"kept_stopped_by", by}, {"reason", may ? std::string() : may.error().message}});
    return false;
  }
  return true;
}

int serve(ProgramOptions options, std::function<Result<ProgramOptions>()> read_options, Log& log) {
  for (const auto& warning : options.warnings) {
    log.warning(warning);
  }
  for (const auto& key : {options.agent_tls.private_key, options.node_tls.private_key}) {
    if (const auto warning = key.empty() ? std::string() : exposed_secret(posix_file_system(), key);
        !warning.empty()) {
      log.warning(warning);
    }
  }
  auto tls = load_tls(options, log);
  if (!tls) {
    return fail(tls.error());
  }
  Program program(std::move(options), *std::move(tls));
  program.read_options = std::move(read_options);
  const auto role = program.options.role;
  if (role == Role::kBoth) {
    control_own_node(program, log);
  }
  if (role != Role::kAgent && may_start_node(program, log)) {
    if (const auto started = start_node(program, log); !started) {
      return fail(started.error());
    }
  }
  if (role != Role::kNode) {
    if (auto started = start_agent(program, log); !started) {
      return fail(started.error());
    }
  }
  const auto ended = [&](const std::exception_ptr& error) {
    if (error) {
      log.error("the program failed");
      program.status = kExitFailed;
      program.context.stop();
    }
  };
  net::co_spawn(program.context, wait_for_the_end(program, log), ended);
  net::co_spawn(program.context, look_after(program, log), ended);
  net::co_spawn(program.context, reload_on_signal(program, log), ended);
  program.context.run();
  program.pool.join();
  program.looks_pool.join();
  program.repositories_pool.join();
  return program.status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "enrol") {
    return run_enrol(argc - 1, argv + 1, std::cout, std::cerr);
  }
  if (argc > 1 && std::string_view(argv[1]) == "epoch") {
    return run_epoch(argc - 1, argv + 1, std::cout, std::cerr);
  }
  const auto read_options = [argc, argv]() -> Result<ProgramOptions> {
    OptionParser parser;
    VERGER_RETURN_IF_ERROR(parser.parse(argc, argv));
    return parser.finish();
  };
  OptionParser parser;
  const auto asked = parser.parse(argc, argv);
  if (!asked) {
    return fail(asked.error());
  }
  if (*asked == settings::Settings::Asked::kHelp) {
    std::cout << parser.help();
    return 0;
  }
  if (*asked == settings::Settings::Asked::kVersion) {
    std::cout << "verger-agent " << VERGER_VERSION << '\n';
    return 0;
  }
  auto options = parser.finish();
  if (!options) {
    return fail(options.error());
  }
  LogOptions log_options;
  log_options.json = options->json_log;
  log_options.level = parse_log_level(options->log_level).value_or(LogLevel::kInfo);
  auto log = make_log("verger-agent", log_options);
  if (!log) {
    return fail(log.error());
  }
  return serve(*std::move(options), read_options, **log);
}
