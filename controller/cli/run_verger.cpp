#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <expected>
#include <fmt/format.h>
#include <optional>
#include <ostream>
#include <sstream>

#include <CLI/CLI.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/profiles.h"
#include "controller/cli/table.h"
#include "engine/base/nearest_name.h"
#include "nodeagent/http/loopback.h"
#include "nodeagent/http/tls.h"

namespace verger::cli {
namespace {

constexpr const char* kDefaultController = "http://127.0.0.1:2115";

/// Shows the same again and again, each time from the top of the screen, until it fails or the user
/// ends it. A controller that was there and is silent may come back.
int watch(const Command& chosen, const CliContext& context, std::chrono::milliseconds interval,
          int times) {
  for (int shown = 1;; ++shown) {
    std::ostringstream screen;
    const int status = chosen(CliContext{.api = context.api,
                                         .out = screen,
                                         .err = context.err,
                                         .json = context.json,
                                         .width = context.width});
    // What was shown stays while it is silent, below it why nothing new comes.
    const bool silent = status != kDone && shown > 1 && !context.api.answered();
    if (!silent) {
      context.out << (context.json ? "" : "\033[H\033[2J") << screen.str() << std::flush;
    }
    if ((status != kDone && !silent) || shown == times) {
      return status;
    }
    context.api.wait(interval);
  }
}

/// Several in one word have commas between them.
std::expected<std::vector<http::Endpoint>, std::string> controllers_of(
    const std::vector<std::string>& words) {
  std::vector<http::Endpoint> out;
  for (const auto& word : words) {
    std::istringstream parts(word);
    for (std::string url; std::getline(parts, url, ',');) {
      const auto controller = http::parse_endpoint(url, http::kControllerPort);
      if (!controller) {
        return std::unexpected(controller.error().message);
      }
      if (!controller->tls && !http::is_loopback(controller->host)) {
        return std::unexpected(fmt::format(
            "{}: plain HTTP is for this machine alone; use https, with --ca-file", url));
      }
      out.push_back(*controller);
    }
  }
  if (out.empty()) {
    return std::unexpected("it takes the URL of vergerd, or those of a pair");
  }
  return out;
}

/// What goes for all commands.
struct CommonOptions {
  std::vector<std::string> urls{};
  std::string profile{};
  bool controller_named = false;  ///< by a flag, which then goes before every profile
  bool profile_named = false;     ///< by a flag, which goes before VERGER_CONTROLLER
  std::string ca_file{};
  std::string reason{};
  std::string format = "table";
  std::optional<double> watch_seconds{};
  int watch_times = 0;
};

/// The profile that counts: the one that is named, or the one in use where no controller is named.
/// Never the token of one controller for another: a profile counts as a whole.
Result<std::optional<Profile>> profile_of(const CommonOptions& options) {
  if (options.controller_named && options.profile_named) {
    return Error{Errc::kInvalidArgument, "--profile or --controller, not both"};
  }
  if (!options.profile_named && !options.urls.empty()) {
    return std::optional<Profile>();
  }
  const auto directory = Profiles::directory_of_environment();
  if (!directory) {
    return options.profile.empty() ? Result<std::optional<Profile>>(std::optional<Profile>())
                                   : Error{Errc::kInvalidArgument,
                                           "--profile: neither HOME nor XDG_CONFIG_HOME is set"};
  }
  VERGER_TRY(const auto profiles, Profiles::load(*directory));
  const auto& name = options.profile.empty() ? profiles.current() : options.profile;
  if (name.empty()) {
    return std::optional<Profile>();
  }
  VERGER_TRY(auto found, profiles.find(name));
  return std::optional(std::move(found));
}

int run_chosen(const Command& chosen, CommonOptions options, std::ostream& out, std::ostream& err) {
  const auto profile = profile_of(options);
  if (!profile) {
    err << "verger: " << profile.error().message << '\n';
    return kUsage;
  }
  if (*profile) {
    options.urls = (*profile)->controllers;
    options.ca_file = options.ca_file.empty() ? (*profile)->ca_file : options.ca_file;
  } else if (options.urls.empty()) {
    options.urls.emplace_back(kDefaultController);
  }
  const auto& ca_file = options.ca_file;
  auto controllers = controllers_of(options.urls);
  if (!controllers) {
    err << "verger: --controller: " << controllers.error() << '\n';
    return kUsage;
  }
  ApiAccess access{.controllers = *std::move(controllers), .reason = options.reason};
  const auto secured = std::ranges::find_if(access.controllers, &http::Endpoint::tls);
  if (secured != access.controllers.end() && ca_file.empty()) {
    err << "verger: --ca-file (or VERGER_CA_FILE) is missing: the roots that the certificate of "
        << secured->url() << " chains to; verger login stores them\n";
    return kUsage;
  }
  if (secured != access.controllers.end()) {
    auto loaded = http::TlsContext::client({.trusted_roots = ca_file});
    if (!loaded) {
      err << "verger: --ca-file " << loaded.error().message << '\n';
      return kUsage;
    }
    access.tls = *std::move(loaded);
  }
  const auto token = token_of_environment(err);
  if (!token) {
    err << "verger: " << token.error().message << '\n';
    return kUsage;
  }
  access.token = *token;
  if (access.token.empty() && *profile) {
    auto stored = token_in_file((*profile)->token_file, err);
    if (!stored) {
      err << "verger: " << stored.error().message << "; log in again: verger login URL\n";
      return kUsage;
    }
    access.token = *std::move(stored);
  }
  ApiClient api(std::move(access), err);
  const CliContext context{.api = api,
                           .out = out,
                           .err = err,
                           .json = options.format == "json",
                           .width = terminal_width(out)};
  if (!options.watch_seconds) {
    return chosen(context);
  }
  return watch(chosen, context,
               std::chrono::milliseconds(static_cast<int>(*options.watch_seconds * 1000)),
               options.watch_times);
}

/// What only shows: to do anything else again and again would be no watching.
bool only_shows(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  const auto* noun = parsed.empty() ? nullptr : parsed.front();
  const auto below = noun == nullptr ? std::vector<CLI::App*>() : noun->get_subcommands();
  const auto verb = below.empty() ? std::string() : below.front()->get_name();
  return verb == "list" || verb == "show" || verb == "next" || verb == "status" ||
         verb == "repositories";
}

/// Of an option or argument that nothing takes.
std::string unexpected_text(const CLI::App& command, const std::string& path,
                            const std::vector<std::string>& words) {
  const auto option = std::ranges::find_if(
      words, [](const std::string& word) { return word.starts_with('-') && word.size() > 1; });
  if (option == words.end()) {
    return fmt::format("{} does not take \"{}\"", path, words.front());
  }
  const auto name = option->substr(0, option->find('='));
  std::vector<std::string> known;
  for (const auto* each : command.get_options()) {
    for (const auto& long_name : each->get_lnames()) {
      known.push_back("--" + long_name);
    }
  }
  const auto near = nearest_name(name, known);
  return fmt::format("{} has no option {}{}", path, name,
                     near.empty() ? "" : fmt::format("; did you mean {}?", near));
}

/// What is wrong with a value, or that it is missing.
std::string value_text(const CLI::App& command, const CLI::ParseError& error) {
  std::string message = error.what();
  constexpr std::string_view kNotConverted = "Could not convert: ";  // "--days = x"
  const auto equals = message.find(" = ");
  const bool not_converted = message.starts_with(kNotConverted) && equals != std::string::npos;
  const auto name = not_converted
                        ? message.substr(kNotConverted.size(), equals - kNotConverted.size())
                        : message.substr(0, message.find(": "));
  const auto* option = command.get_option_no_throw(name);
  if (option == nullptr) {
    return message;
  }
  if (not_converted) {
    return fmt::format(
        "{} takes {}, not \"{}\"", name,
        option->get_type_name().starts_with("INT") ? "a whole number" : option->get_type_name(),
        message.substr(equals + 3));
  }
  return message.ends_with(" missing")
             ? fmt::format("{} needs a value ({})", name, option->get_type_name())
             : message;
}

/// What is wrong with the command line, and where its help is.
int wrong_usage(const CLI::App& app, const CLI::ParseError& error, std::ostream& err) {
  const CLI::App* understood = &app;
  std::string path = "verger";
  while (!understood->get_subcommands().empty()) {
    understood = understood->get_subcommands().front();
    path += " " + understood->get_name();
  }
  const auto unknown = app.remaining(true);
  std::string message = error.what();
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError) &&
      !understood->get_subcommands([](const CLI::App*) { return true; }).empty()) {
    std::vector<std::string> known;
    for (const auto* sub : understood->get_subcommands(
             [](const CLI::App* each) { return !each->get_group().empty(); })) {
      known.push_back(sub->get_name());
    }
    message = fmt::format("{} takes {}", path, fmt::join(known, ", "));
    if (!unknown.empty()) {
      const auto near = nearest_name(unknown.front(), known);
      const auto* const kind = unknown.front().starts_with('-') ? "option" : "command";
      message = near.empty() ? fmt::format("unknown {} \"{}\"; {}", kind, unknown.front(), message)
                             : fmt::format("unknown {} \"{}\"; did you mean {}?", kind,
                                           unknown.front(), near);
    }
  } else if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) &&
             !unknown.empty()) {
    message = unexpected_text(*understood, path, unknown);
  } else {
    message = value_text(*understood, error);
  }
  err << fmt::format("verger: {}; its help: {} --help\n", message, path);
  return kUsage;
}

}  // namespace

int run_verger(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  CLI::App app("Maintenance of event-database clusters: the command line of vergerd", "verger");
  app.require_subcommand(1);
  app.fallthrough();
  CommonOptions common;
  app.add_option("--controller", common.urls,
                 "URL of vergerd; of a pair both, with a comma between or as two options")
      ->envname("VERGER_CONTROLLER")
      ->default_str(std::string(kDefaultController) + ", or the profile in use")
      ->allow_extra_args(false);
  app.add_option("--profile", common.profile, "Of those that `verger login` has stored")
      ->envname("VERGER_PROFILE");
  app.add_option("--ca-file", common.ca_file,
                 "Trusted roots of vergerd's certificate, for https: a file or a directory")
      ->envname("VERGER_CA_FILE");
  app.add_option("--reason", common.reason,
                 "Why something is changed, for the audit and for others")
      ->envname("VERGER_REASON");
  app.add_option("-o,--output", common.format,
                 "table, or json: one object, or one a line for lists")
      ->check(CLI::IsMember({"table", "json"}));
  auto* watching = app.add_option("--watch", common.watch_seconds,
                                  "With list, show and next: again every so many seconds (2)")
                       ->expected(0, 1)
                       ->default_str("2")
                       ->check(CLI::Range(0.1, 86'400.0));
  app.add_option("--watch-times", common.watch_times, "End after so many times (0: never)")
      ->group("");
  app.set_version_flag("--version", std::string("verger ") + VERGER_VERSION);

  Command chosen;
  add_cluster_commands(app, chosen);
  add_plan_commands(app, chosen);
  add_restore_commands(app, chosen);
  add_redaction_commands(app, chosen);
  add_verify_command(app, chosen);
  add_heal_command(app, chosen);
  add_run_commands(app, chosen);
  add_policy_commands(app, chosen);
  add_notify_commands(app, chosen);
  add_agent_commands(app, chosen);
  add_backup_commands(app, chosen);
  add_journal_commands(app, chosen);
  add_token_commands(app, chosen);
  add_audit_commands(app, chosen);
  LocalCommand chosen_local;
  add_cert_commands(app, chosen_local, chosen);
  add_doctor_command(app, chosen);
  add_login_commands(app, chosen_local, common.ca_file);
  add_version_command(app, chosen_local, chosen);
  add_completion_command(app, chosen);
  add_man_command(app, chosen_local);
  try {
    auto arguments = with_two_hyphens({argv + 1, argv + argc});
    std::ranges::reverse(arguments);  // as CLI11 takes them
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error, out, err) : wrong_usage(app, error, err);
  }
  if (watching->count() > 0 && !common.watch_seconds) {
    common.watch_seconds = 2;
  }
  if (common.watch_seconds && !only_shows(app)) {
    err << "verger: --watch goes with list, show, next and status; a run is followed by `verger "
           "run "
           "watch`\n";
    return kUsage;
  }
  if (chosen_local) {
    return chosen_local(LocalContext{
        .out = out, .err = err, .json = common.format == "json", .width = terminal_width(out)});
  }
  const auto is_flag = [&](const std::string& name) {
    return std::any_of(argv + 1, argv + argc, [&name](const std::string& word) {
      return word == name || word.starts_with(name + "=");
    });
  };
  common.controller_named = is_flag("--controller");
  common.profile_named = is_flag("--profile");
  return run_chosen(chosen, std::move(common), out, err);
}

}  // namespace verger::cli
