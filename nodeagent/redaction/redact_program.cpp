#include "nodeagent/redaction/redact_program.h"

#include <array>
#include <csignal>
#include <ostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>

#include "engine/base/database_files.h"
#include "engine/base/exit_code.h"
#include "engine/manual/man_pages.h"
#include "nodeagent/redaction/online_redaction.h"

namespace verger::online {
namespace {

struct Arguments {
  std::string database;
  std::vector<std::string> events;
};

constexpr std::string_view kDescription =
    "Blanks the data of events in the chunk files of a node while it runs: the bytes become 0xFF, "
    "the record is flagged as redacted, all else stays. Events stay blanked; there is no way back.";

void add_arguments_of_redaction(CLI::App& app, Arguments& into) {
  app.name("verger-redact");
  app.set_version_flag("--version", std::string("verger-redact ") + VERGER_VERSION);
  app.add_option("--db", into.database, "Database directory of the node on this machine")
      ->required();
  app.add_option(
         "--events", into.events,
         "Events as NUMBER@STREAM, separated by commas; for names with commas stop the node "
         "and use `verger-db redact --events-file`")
      ->required()
      ->delimiter(',')
      ->allow_extra_args(false);
  app.footer(
      "The node needs EnableUnixSocket (servers from 23.6 on, --enable-unix-socket of an embedded "
      "node).\nRun it as the user of the node, on every node of the cluster. No scavenge starts "
      "meanwhile.\nRefused: system streams, metadata streams, tombstones, markers of transactions, "
      "events in the\nchunk that is still written to, a scavenge under way.\n"
      "Exit codes: 0 redacted or nothing to do, 1 failed, 2 refused, 3 stopped (run again to "
      "finish), 64 wrong usage.\n`verger-redact man DIR` writes this as a manual page.\nExample:\n"
      "  verger-redact --db /var/lib/eventstore --events 12@customer-7,13@customer-7");
}

int write_own_manual(const RedactProgram& program, const Path& directory) {
  CLI::App app{std::string(kDescription)};
  Arguments none;
  add_arguments_of_redaction(app, none);
  // verger-redact(1) is a command of verger.
  const auto written =
      write_man_pages(program.files, man_pages(app, "verger-redact man", 8), directory);
  if (!written) {
    program.err << "verger-redact: " << written.error().message << '\n';
    return kExitFailed;
  }
  return kExitDone;
}

/// nullopt: the arguments are there; else the exit code.
std::optional<int> parse(int argc, const char* const* argv, const RedactProgram& program,
                         Arguments& into) {
  // No subcommand, which would need the options of the program itself.
  if (argc == 3 && std::string_view(argv[1]) == "man") {
    return write_own_manual(program, argv[2]);
  }
  CLI::App app{std::string(kDescription)};
  add_arguments_of_redaction(app, into);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error, program.out, program.err);  // --help
      return kExitDone;
    }
    program.err << "verger-redact: " << error.what() << "\nSee `verger-redact --help`.\n";
    return kExitUsage;
  }
  return std::nullopt;
}

Result<OnlineRequest> request_of(const Arguments& arguments) {
  OnlineRequest request;
  request.directory = arguments.database;
  for (const auto& text : arguments.events) {
    VERGER_TRY(auto event, redaction::parse_event_name(text));
    request.events.push_back(std::move(event));
  }
  return request;
}

int exit_code_of(const Error& error) {
  switch (error.code) {
    case Errc::kInvalidArgument:
      return kExitUsage;
    case Errc::kRefused:
    case Errc::kConflict:
    case Errc::kNotFound:
    case Errc::kUnauthorized:
      return kExitRefused;
    case Errc::kCancelled:
      return kExitStopped;
    default:
      return kExitFailed;
  }
}

void print(std::ostream& out, const OnlineReport& report) {
  for (const auto& name : report.removed) {
    out << "removed " << name << ", which an interrupted redaction had left\n";
  }
  for (const auto& chunk : report.chunks) {
    out << fmt::format("{} is now {}: {} records blanked, MD5 {} was {}\n", chunk.from, chunk.to,
                       chunk.records, to_hex(chunk.md5_after), to_hex(chunk.md5_before));
  }
  if (report.already > 0) {
    out << fmt::format("{} records were redacted already\n", report.already);
  }
}

/// What the coroutines need; the pool ends before what its jobs use.
struct Running {
  net::io_context context{1};
  net::thread_pool pool{1};
  node::PoolJobRunner jobs{pool.get_executor(), http::system_timers()};
  std::shared_ptr<node::StopFlag> stop = std::make_shared<node::StopFlag>();
  std::shared_ptr<OnlineReport> report = std::make_shared<OnlineReport>();
};

Result<void> redact(const RedactProgram& program, OnlineRequest request, Running& running) {
  const std::array directories = {request.directory};
  VERGER_RETURN_IF_ERROR(check_file_owner(directories));
  auto socket = client::find_redaction_socket(request.directory.string());
  if (!socket) {
    return Error{socket.error().code,
                 socket.error().message + ", or stop it and use verger-db redact"};
  }
  VERGER_TRY(auto connected,
             client::RedactionClient::connect(running.context.get_executor(), *std::move(socket),
                                              {}, http::system_timers(), program.log));
  const std::shared_ptr<client::RedactionClient> node = std::move(connected);
  net::signal_set signals(running.context, SIGINT, SIGTERM);
  signals.async_wait([stop = running.stop](boost::system::error_code error, int) {
    if (!error) {
      stop->request();
    }
  });
  Result<void> outcome = Error{Errc::kCancelled, "stopped"};
  net::co_spawn(running.context,
                redact_online(node, std::move(request),
                              {.files = program.files,
                               .random = program.random,
                               .jobs = running.jobs,
                               .timers = http::system_timers(),
                               .log = program.log},
                              running.report, running.stop),
                [&](const std::exception_ptr& failure, Result<void> result) {
                  if (!failure) {
                    outcome = std::move(result);
                  }
                  running.context.stop();
                  if (failure) {
                    std::rethrow_exception(failure);
                  }
                });
  running.context.run();
  return outcome;
}

}  // namespace

int run_redact_program(int argc, const char* const* argv, RedactProgram program) {
  Arguments arguments;
  if (const auto ended = parse(argc, argv, program, arguments)) {
    return *ended;
  }
  auto request = request_of(arguments);
  Running running;
  const auto outcome =
      request ? redact(program, *std::move(request), running) : Result<void>(request.error());
  running.pool.join();
  print(program.out, *running.report);
  if (!outcome) {
    program.err << "verger-redact: " << outcome.error().message << '\n';
    return exit_code_of(outcome.error());
  }
  program.out << (running.report->chunks.empty()
                      ? "nothing to do\n"
                      : "redacted; other nodes of the cluster and backups still have the data\n");
  return kExitDone;
}

}  // namespace verger::online
