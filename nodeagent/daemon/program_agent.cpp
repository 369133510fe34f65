#include "nodeagent/daemon/program_agent.h"

#include <fmt/format.h>
#include <memory>
#include <optional>
#include <utility>

#include <boost/asio/ip/host_name.hpp>
#include <boost/asio/post.hpp>

#include "engine/base/database_files.h"
#include "engine/base/private_file.h"
#include "nodeagent/api/node.h"
#include "nodeagent/certificates/certificate_info.h"
#include "nodeagent/daemon/controller_guard.h"
#include "nodeagent/daemon/node_certificates.h"
#include "nodeagent/external/archive_settings.h"
#include "nodeagent/external/server_process.h"
#include "nodeagent/operations/backup/backup_access.h"
#include "nodeagent/operations/drill/drill_settings.h"
#include "nodeagent/operations/resize/server_config_access.h"

namespace verger::agent {
namespace {

using std::chrono::milliseconds;

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

/// Of an own node the version whose interface it has; empty: the server does not answer.
std::string version_of_server(const Program& program) {
  if (program.external) {
    return program.external->version();
  }
  return program.node ? "24.6.0" : "";
}

/// Why chunk files of the server are left alone, by its settings, which it reads when it starts:
/// looked at once for each that runs.
std::string archive_of_server(const Program& program, std::pair<std::string, std::string>& known) {
  constexpr api::Version kFirstWithArchive{25, 0, 0};
  const auto* seen = program.external ? program.external->inspection() : nullptr;
  const auto version = api::parse_version(version_of_server(program));
  if (seen == nullptr || (version && *version < kFirstWithArchive)) {
    return {};
  }
  if (auto instance = seen->instance_id(); known.first != instance) {
    std::optional<external::StartOptions> options;
    if (const auto server = external::find_server(program.options.node.database);
        server && *server) {
      if (auto found = external::start_options_of((*server)->id)) {
        options = *std::move(found);
      }
    }
    known = {std::move(instance), external::archive_problem(posix_file_system(), options,
                                                            program.options.server_config)};
  }
  return known.second;
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

net::awaitable<Result<void>> start_own_node(Program* program, Log* log) {
  co_return program->inspection() != nullptr ? Result<void>() : start_node(*program, *log);
}

net::awaitable<Result<void>> stop_own_node(Program* program) {
  if (program->node) {
    co_await program->node->stop();
  }
  co_return Result<void>();
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
                   .snapshots = {.program = options.snapshot_command,
                                 .state = Path(options.state_directory) / "snapshots",
                                 .limit = milliseconds(options.snapshot_timeout_ms)},
                   .files = posix_file_system(),
                   .database = database_file_system(),
                   .clock = system_clock(),
                   .random = system_random(),
                   .log = log,
                   .jobs = program.repository_jobs,
                   .host = net::ip::host_name()});
}

net::awaitable<Result<std::optional<external::StartOptions>>> started_with(Program* program) {
  using Found = Result<std::optional<external::StartOptions>>;
  VERGER_CO_TRY(const auto server, co_await find_server_of(program));
  if (!server) {
    co_return Found(std::nullopt);
  }
  VERGER_CO_TRY(auto options, external::start_options_of(server->id));
  co_return Found(std::move(options));
}

/// The configuration file of its server; null: it was not named.
std::shared_ptr<const ServerConfigAccess> server_config_access(Program& program) {
  if (program.options.server_config.empty() || program.options.role != Role::kAgent) {
    return nullptr;
  }
  return std::make_shared<const ServerConfigAccess>(
      ServerConfigAccess{.file = program.options.server_config,
                         .access = external::posix_file_access(),
                         .started_with = [&program] { return started_with(&program); }});
}

}  // namespace

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
      .backups = backup_access(program, log),
      .server_config = server_config_access(program)};
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
  program.online = std::make_unique<external::OnlineAccess>(
      external::DatabasePlace{.database = options.node.database, .index = options.node.index},
      external::OfflineMachine{.files = database_file_system(),
                               .clock = system_clock(),
                               .random = system_random(),
                               .log = log},
      http::system_timers(), [&program] { return version_of_server(program); },
      [&program, known = std::make_shared<std::pair<std::string, std::string>>()] {
        return archive_of_server(program, *known);
      });
  environment.online = program.online.get();
  environment.drills =
      std::make_shared<const DrillSettings>(DrillSettings{.node_program = "/proc/self/exe",
                                                          .command = options.drill_command,
                                                          .client = &program.client});
  VERGER_TRY(
      program.agent,
      Agent::open({.journal = Path(options.state_directory) / "operations.db",
                   .node = endpoint,
                   .credentials = program.credentials ? program.credentials->current() : nullptr,
                   .poll_interval = milliseconds(options.agent_poll_interval_ms),
                   .lost_streams_period = std::chrono::hours(24)},
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

}  // namespace verger::agent
