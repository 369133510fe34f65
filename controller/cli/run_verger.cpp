#include <cstdlib>
#include <ostream>

#include <CLI/CLI.hpp>

#include "controller/cli/commands.h"
#include "nodeagent/http/loopback.h"
#include "nodeagent/http/tls.h"

namespace verger::cli {
namespace {

constexpr const char* kDefaultController = "http://127.0.0.1:2115";

int run_chosen(const Command& chosen, const std::string& url, const std::string& ca_file,
               bool as_json, std::ostream& out, std::ostream& err) {
  const auto controller = http::parse_endpoint(url);
  if (!controller) {
    err << "verger: --controller " << url << ": " << controller.error().message << '\n';
    return kUsage;
  }
  if (!controller->tls && !http::is_loopback(controller->host)) {
    err << "verger: --controller " << url
        << ": plain HTTP is for this machine alone; use https, with --ca-file\n";
    return kUsage;
  }
  std::shared_ptr<http::TlsContext> tls;
  if (controller->tls) {
    if (ca_file.empty()) {
      err << "verger: --ca-file (or VERGER_CA_FILE) is missing: the roots that the certificate of "
          << controller->url() << " chains to\n";
      return kUsage;
    }
    auto loaded = http::TlsContext::client({.trusted_roots = ca_file});
    if (!loaded) {
      err << "verger: --ca-file " << loaded.error().message << '\n';
      return kUsage;
    }
    tls = *std::move(loaded);
  }
  const auto token = token_of_environment();
  if (!token) {
    err << "verger: " << token.error().message << '\n';
    return kUsage;
  }
  ApiClient api(*controller, *token, std::move(tls));
  return chosen(CliContext{.api = api, .out = out, .err = err, .json = as_json});
}

}  // namespace

int run_verger(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  CLI::App app("Maintenance of event-database clusters: the command line of vergerd", "verger");
  app.require_subcommand(1);
  app.fallthrough();
  std::string url = kDefaultController;
  app.add_option("--controller", url, "URL of vergerd")->envname("VERGER_CONTROLLER");
  std::string ca_file;
  app.add_option("--ca-file", ca_file,
                 "Trusted roots of vergerd's certificate, for https: a file or a directory")
      ->envname("VERGER_CA_FILE");
  std::string format = "table";
  app.add_option("-o,--output", format, "table, or json: one object, or one a line for lists")
      ->check(CLI::IsMember({"table", "json"}));
  app.set_version_flag("--version", std::string("verger ") + VERGER_VERSION);

  Command chosen;
  add_cluster_commands(app, chosen);
  add_plan_commands(app, chosen);
  add_run_commands(app, chosen);
  add_policy_commands(app, chosen);
  add_agent_commands(app, chosen);
  add_admin_commands(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error, out, err) == 0 ? kDone : kUsage;
  }
  return run_chosen(chosen, url, ca_file, format == "json", out, err);
}

}  // namespace verger::cli
