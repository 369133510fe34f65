#include <iostream>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include "engine/logging/spdlog_log.h"
#include "nodeagent/daemon/agent_options.h"
#include "nodeagent/daemon/embedded_node.h"
#include "nodeagent/http/beast_client.h"
#include "nodeagent/http/server.h"
#include "nodeagent/http/timers.h"
#include "nodeagent/operations/agent.h"

namespace {

using namespace verger;         // NOLINT(google-build-using-namespace): a main file's own
using namespace verger::agent;  // NOLINT(google-build-using-namespace)
using std::chrono::milliseconds;

constexpr int kUsage = 64;
constexpr int kRefused = 2;
constexpr int kFailed = 1;
constexpr milliseconds kLookInterval{50};

int fail(const Error& error) {
  std::cerr << "verger-agent: " << error.message << '\n';
  switch (error.code) {
    case Errc::kInvalidArgument:
      return kUsage;
    case Errc::kRefused:
    case Errc::kConflict:
      return kRefused;
    default:
      return kFailed;
  }
}

/// The parts of one process; what its role leaves out is null.
struct Program {
  explicit Program(ProgramOptions chosen) : options(std::move(chosen)) {}
  ProgramOptions options;
  net::io_context context{1};
  net::thread_pool pool{1};
  http::BeastClient client{context.get_executor()};
  node::PoolJobRunner jobs{pool.get_executor(), http::system_timers()};
  std::unique_ptr<EmbeddedNode> node;
  std::unique_ptr<Agent> agent;
  std::unique_ptr<http::Server> agent_server;
  bool told_to_end = false;
  int status = 0;
};

Result<void> start_agent(Program& program, Log& log) {
  const auto& options = program.options;
  auto url = options.node_url;
  if (url.empty()) {
    url = fmt::format("http://{}:{}", options.host, options.node_port);
  }
  VERGER_TRY(const auto endpoint, http::parse_endpoint(url));
  VERGER_TRY(program.agent,
             Agent::open({.journal = Path(options.state_directory) / "operations.db",
                          .node = endpoint,
                          .poll_interval = milliseconds(options.agent_poll_interval_ms)},
                         {.executor = program.context.get_executor(),
                          .files = posix_file_system(),
                          .clock = system_clock(),
                          .timers = http::system_timers(),
                          .client = program.client,
                          .jobs = program.jobs,
                          .log = log,
                          .inspection = [&program]() -> node::NodeInspection* {
                            return program.node ? program.node->inspection() : nullptr;
                          }}));
  program.agent_server = std::make_unique<http::Server>(
      program.context.get_executor(),
      http::ServerOptions{.host = options.host, .port = options.agent_port},
      program.agent->handler(), log);
  VERGER_TRY(const auto served, program.agent_server->listen());
  program.agent->start();
  log.info("the agent serves", {{"url", served.url()}});
  return {};
}

/// Ends the node when it was told to shut down; the process too, unless an agent outlives it.
net::awaitable<void> look_after(Program& program, Log& log) {
  while (!program.told_to_end) {
    if (program.node && program.node->wants_to_stop()) {
      log.info("the node stops");
      if (program.node->failed()) {
        program.status = kFailed;
      }
      co_await program.node->stop();
      if (!program.agent) {
        break;
      }
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
  using namespace net::experimental::awaitable_operators;
  const auto executor = co_await net::this_coro::executor;
  net::signal_set signals(executor, SIGINT, SIGTERM);
  if (const auto seconds = program.options.end_after_seconds; seconds > 0) {
    net::steady_timer end(executor, std::chrono::seconds(seconds));
    co_await (signals.async_wait(net::use_awaitable) || end.async_wait(net::use_awaitable));
  } else {
    co_await signals.async_wait(net::use_awaitable);
  }
  log.info("stopping");
  program.told_to_end = true;
}

int serve(ProgramOptions options, Log& log) {
  Program program(std::move(options));
  const auto role = program.options.role;
  if (role != Role::kAgent) {
    auto node = EmbeddedNode::start(program.options, program.context.get_executor(), program.client,
                                    program.jobs, log);
    if (!node) {
      return fail(node.error());
    }
    program.node = *std::move(node);
  }
  if (role != Role::kNode) {
    if (auto started = start_agent(program, log); !started) {
      return fail(started.error());
    }
  }
  const auto ended = [&](const std::exception_ptr& error) {
    if (error) {
      log.error("the program failed");
      program.status = kFailed;
      program.context.stop();
    }
  };
  net::co_spawn(program.context, wait_for_the_end(program, log), ended);
  net::co_spawn(program.context, look_after(program, log), ended);
  program.context.run();
  program.pool.join();
  return program.status;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Works on one node by operation id, and is an embedded node itself", "verger-agent");
  OptionParser parser(app);
  app.set_version_flag("--version", std::string("verger-agent ") + VERGER_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  auto options = parser.finish();
  if (!options) {
    return fail(options.error());
  }
  LogOptions log_options;
  log_options.json = options->json_log;
  auto log = make_log("verger-agent", log_options);
  if (!log) {
    return fail(log.error());
  }
  return serve(*std::move(options), **log);
}
