#include <iostream>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "engine/base/exit_code.h"
#include "engine/base/private_file.h"
#include "engine/base/service_notify.h"
#include "engine/logging/spdlog_log.h"
#include "engine/settings/daemon_call.h"
#include "nodeagent/daemon/enrol.h"
#include "nodeagent/daemon/epoch_command.h"
#include "nodeagent/daemon/program.h"
#include "nodeagent/daemon/program_agent.h"
#include "nodeagent/http/service_watchdog.h"

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

net::awaitable<void> wait_for_the_end(Program& program, const ServiceNotify& notify, Log& log) {
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
  notify.stopping();
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
  const auto notify = ServiceNotify::of_this_process();
  net::co_spawn(program.context, wait_for_the_end(program, notify, log), ended);
  net::co_spawn(program.context, http::feed_watchdog(notify, http::system_timers()), ended);
  net::co_spawn(program.context, look_after(program, log), ended);
  net::co_spawn(program.context, reload_on_signal(program, log), ended);
  notify.ready("serving");
  program.context.run();
  program.pool.join();
  program.looks_pool.join();
  program.repositories_pool.join();
  return program.status;
}

/// What a start would read of these options; opens and makes nothing. The exit code.
int check_config(OptionParser& parser) {
  const auto options = parser.finish();
  if (!options) {
    return fail(options.error());
  }
  if (const auto tls = load_tls(*options, null_log()); !tls) {
    return fail(tls.error());
  }
  std::cout << settings::checked_text(parser.settings());
  return kExitDone;
}

/// Every task but running and checking. The exit code.
int do_task(const settings::DaemonCall& call, OptionParser& parser) {
  switch (call.task) {
    case settings::DaemonTask::kVersion:
      std::cout << "verger-agent " << VERGER_VERSION << '\n';
      return kExitDone;
    case settings::DaemonTask::kManual: {
      const auto written =
          settings::write_manual(parser.settings(), "verger-agent", call.directory);
      return written ? kExitDone : fail(written.error());
    }
    case settings::DaemonTask::kShowDefaults: {
      const auto text = settings::defaults_of(parser.settings(), call.arguments, "verger-agent");
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
  const auto call = settings::daemon_call(argc, argv);
  if (!call) {
    return fail(call.error());
  }
  if (call->task != settings::DaemonTask::kRun &&
      call->task != settings::DaemonTask::kCheckConfig) {
    return do_task(*call, parser);
  }
  const auto action = parser.parse(call->arguments, settings::environment_of_this_process());
  if (!action) {
    return fail(action.error());
  }
  if (*action == settings::Settings::Action::kHelp) {
    std::cout << parser.help();
    return 0;
  }
  if (*action == settings::Settings::Action::kVersion) {
    std::cout << "verger-agent " << VERGER_VERSION << '\n';
    return 0;
  }
  if (call->task == settings::DaemonTask::kCheckConfig) {
    return check_config(parser);
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
