#include <cstdlib>
#include <ostream>

#include <CLI/CLI.hpp>

#include "controller/cli/commands.h"
#include "nodeagent/http/loopback.h"

namespace verger::cli {
namespace {

constexpr const char* kDefaultController = "http://127.0.0.1:2115";

int run_chosen(const Command& chosen, const std::string& url, bool as_json, std::ostream& out,
               std::ostream& err) {
  const auto controller = http::parse_endpoint(url);
  if (!controller) {
    err << "verger: --controller " << url << ": " << controller.error().message << '\n';
    return kUsage;
  }
  if (!http::is_loopback(controller->host)) {
    err << "verger: " << controller->host
        << " is not a loopback address; until TLS and authentication are there the controller is "
           "reached from its own machine only\n";
    return kUsage;
  }
  const auto token = token_of_environment();
  if (!token) {
    err << "verger: " << token.error().message << '\n';
    return kUsage;
  }
  ApiClient api(*controller, *token);
  return chosen(CliContext{.api = api, .out = out, .err = err, .json = as_json});
}

}  // namespace

int run_verger(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  CLI::App app("Maintenance of event-database clusters: the command line of vergerd", "verger");
  app.require_subcommand(1);
  app.fallthrough();
  std::string url = kDefaultController;
  app.add_option("--controller", url, "URL of vergerd")->envname("VERGER_CONTROLLER");
  std::string format = "table";
  app.add_option("-o,--output", format, "table, or json: one object, or one a line for lists")
      ->check(CLI::IsMember({"table", "json"}));
  app.set_version_flag("--version", std::string("verger ") + VERGER_VERSION);

  Command chosen;
  add_cluster_commands(app, chosen);
  add_plan_commands(app, chosen);
  add_run_commands(app, chosen);
  add_policy_commands(app, chosen);
  add_admin_commands(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error, out, err) == 0 ? kDone : kUsage;
  }
  return run_chosen(chosen, url, format == "json", out, err);
}

}  // namespace verger::cli
