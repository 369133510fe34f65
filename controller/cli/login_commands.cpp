#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <termios.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/json_text.h"
#include "controller/cli/profiles.h"
#include "controller/cli/table.h"
#include "engine/base/private_file.h"
#include "nodeagent/http/served_chain.h"
#include "nodeagent/http/tls.h"

// login; profile list | use | remove
namespace verger::cli {
namespace {

using nlohmann::json;

constexpr std::uint64_t kLoginFileBytes = 1U << 20U;

struct LoginOptions {
  std::vector<std::string> urls;
  std::string name;
  std::string token_file;
  std::string ca_fingerprint;
};

int wrong_login(const LocalContext& context, const std::string& text, int status = kUsage) {
  context.err << "verger: " << text << '\n';
  return status;
}

/// Typed by a person, without showing it.
std::string ask_for_token(std::ostream& err) {
  err << "token: " << std::flush;
  termios before{};
  const bool is_terminal = ::tcgetattr(STDIN_FILENO, &before) == 0;
  if (is_terminal) {
    auto quiet = before;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &quiet);
  }
  std::string token;
  std::getline(std::cin, token);
  if (is_terminal) {
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before);
  }
  err << '\n';
  return token;
}

Result<std::string> token_for_login(const LocalContext& context, const LoginOptions& options) {
  std::string token;
  if (options.token_file == "-") {
    std::getline(std::cin, token);
  } else if (!options.token_file.empty()) {
    const auto bytes = read_file(posix_file_system(), options.token_file, kLoginFileBytes);
    if (!bytes) {
      return Error{bytes.error().code, "--token-file " + bytes.error().message};
    }
    token = std::string(as_text(*bytes));
  } else {
    VERGER_TRY(token, token_of_environment(context.err));
    if (token.empty() && ::isatty(STDIN_FILENO) == 1) {
      token = ask_for_token(context.err);
    }
  }
  token = token.substr(0, token.find_first_of("\r\n"));
  if (token.empty()) {
    return Error{Errc::kInvalidArgument,
                 "no token: --token-file FILE (- is the standard input), or VERGER_TOKEN; an admin "
                 "makes one with `verger token create`, the first one is made by `vergerd init`"};
  }
  return token;
}

/// The root with this fingerprint, as one of them shows it.
Result<std::string> root_by_fingerprint(const std::vector<http::Endpoint>& controllers,
                                        const std::string& fingerprint) {
  Error last{Errc::kUnavailable, "none answers"};
  for (const auto& controller : controllers) {
    net::io_context context{1};
    auto fetched = net::co_spawn(context,
                                 http::served_root(context.get_executor(), controller, fingerprint,
                                                   std::chrono::seconds(15)),
                                 net::use_future);
    context.run();
    auto root = fetched.get();
    if (root || root.error().code == Errc::kRefused) {
      return root;
    }
    last = root.error();
  }
  return last;
}

/// What https needs: a copy of the roots for the profile, or the directory that has them.
struct LoginTrust {
  std::string root{};  ///< PEM, to copy; empty: `path` alone
  std::string path{};
};

Result<LoginTrust> trust_for_login(const std::vector<http::Endpoint>& controllers,
                                   const LoginOptions& options, const std::string& ca_file) {
  LoginTrust out;
  if (!ca_file.empty()) {
    std::error_code ignored;
    out.path = std::filesystem::absolute(ca_file, ignored).string();
    if (!std::filesystem::is_directory(out.path, ignored)) {
      VERGER_TRY(const auto bytes, read_file(posix_file_system(), ca_file, kLoginFileBytes));
      out.root = std::string(as_text(bytes));
    }
    return out;
  }
  if (options.ca_fingerprint.empty()) {
    return Error{Errc::kInvalidArgument,
                 "https needs the root of vergerd's certificate: --ca-file FILE, or "
                 "--ca-fingerprint with what `vergerd init` printed"};
  }
  VERGER_TRY(out.root, root_by_fingerprint(controllers, options.ca_fingerprint));
  return out;
}

Result<Profiles> profiles_of_user() {
  const auto directory = Profiles::directory_of_environment();
  if (!directory) {
    return Error{Errc::kInvalidArgument, "neither HOME nor XDG_CONFIG_HOME is set"};
  }
  return Profiles::load(*directory);
}

/// A client over what is stored.
Result<json> who_is(const Profile& profile, const std::vector<http::Endpoint>& controllers,
                    const std::string& token, std::ostream& err, int& status) {
  ApiAccess access{.controllers = controllers, .token = token};
  if (!profile.ca_file.empty()) {
    VERGER_TRY(access.tls, http::TlsContext::client({.trusted_roots = profile.ca_file}));
  }
  ApiClient api(std::move(access), err);
  auto who = api.get("/whoami");
  if (!who) {
    status = who.error().exit_code;
    return Error{Errc::kRefused, who.error().message};
  }
  return *std::move(who);
}

int log_in(const LocalContext& context, const LoginOptions& options, const std::string& ca_file) {
  std::vector<http::Endpoint> controllers;
  bool secured = false;
  for (const auto& url : options.urls) {
    const auto parsed = http::parse_endpoint(url, http::kControllerPort);
    if (!parsed) {
      return wrong_login(context, url + ": " + parsed.error().message);
    }
    secured = secured || parsed->tls;
    controllers.push_back(*parsed);
  }
  auto profiles = profiles_of_user();
  if (!profiles) {
    return wrong_login(context, profiles.error().message);
  }
  const auto token = token_for_login(context, options);
  if (!token) {
    return wrong_login(context, token.error().message);
  }
  LoginTrust trust;
  if (secured) {
    auto found = trust_for_login(controllers, options, ca_file);
    if (!found) {
      return wrong_login(context, found.error().message,
                         found.error().code == Errc::kInvalidArgument ? kUsage : kFailed);
    }
    trust = *std::move(found);
  }
  // Under a name of its own until vergerd has accepted the token: a former profile stays as it is.
  const auto name = options.name.empty() ? controllers.front().host : options.name;
  Profile profile;
  for (const auto& controller : controllers) {
    profile.controllers.push_back(controller.url());
  }
  profile.ca_file = trust.path;
  std::optional<std::string> draft;
  if (!trust.root.empty()) {
    draft = (std::filesystem::temp_directory_path() /
             fmt::format("verger-login-{}.pem", static_cast<long>(::getpid())))
                .string();
    if (const auto written = write_private_file(*draft, trust.root, IfThere::kReplace); !written) {
      return wrong_login(context, written.error().message, kFailed);
    }
  }
  auto tried = profile;
  if (draft) {
    tried.ca_file = *draft;
  }
  int status = kFailed;
  const auto who = who_is(tried, controllers, *token, context.err, status);
  if (draft) {
    static_cast<void>(posix_file_system().remove(*draft));
  }
  if (!who) {
    return wrong_login(context, who.error().message, status);
  }
  if (const auto stored = profiles->log_in(name, std::move(profile), *token, trust.root); !stored) {
    return wrong_login(context, stored.error().message,
                       stored.error().code == Errc::kInvalidArgument ? kUsage : kFailed);
  }
  if (context.json) {
    context.out << json{{"profile", name},
                        {"controllers", profiles->all().at(name).controllers},
                        {"name", text_of(*who, "name")},
                        {"role", text_of(*who, "role")}}
                       .dump()
                << '\n';
  } else {
    context.out << fmt::format("{} is {} ({}) from now on; profile {} is in use\n",
                               controllers.front().url(), text_of(*who, "name"),
                               text_of(*who, "role"), name);
  }
  return kDone;
}

int list_profiles(const LocalContext& context) {
  const auto profiles = profiles_of_user();
  if (!profiles) {
    return wrong_login(context, profiles.error().message);
  }
  if (context.json) {
    for (const auto& [name, each] : profiles->all()) {
      context.out << json{{"profile", name},
                          {"current", name == profiles->current()},
                          {"controllers", each.controllers},
                          {"ca_file", each.ca_file},
                          {"token_file", each.token_file}}
                         .dump()
                  << '\n';
    }
    return kDone;
  }
  if (profiles->all().empty()) {
    context.out << "no profile is stored; make one with: verger login URL\n";
    return kDone;
  }
  Table table({{"profile"}, {"in use"}, {"vergerd", Table::Align::kWrap}});
  for (const auto& [name, each] : profiles->all()) {
    table.add({name, name == profiles->current() ? "yes" : "-",
               fmt::format("{}", fmt::join(each.controllers, " "))});
  }
  table.print(context.out, context.width);
  return kDone;
}

int change_profiles(const LocalContext& context, const std::string& name,
                    Result<void> (Profiles::*change)(const std::string&), const char* done) {
  auto profiles = profiles_of_user();
  if (!profiles) {
    return wrong_login(context, profiles.error().message);
  }
  if (const auto changed = ((*profiles).*change)(name); !changed) {
    return wrong_login(context, changed.error().message,
                       changed.error().code == Errc::kNotFound ? kUsage : kFailed);
  }
  context.out << (context.json ? json{{"profile", name}, {"state", done}}.dump()
                               : fmt::format("profile {} is {}", name, done))
              << '\n';
  return kDone;
}

}  // namespace

void add_login_commands(CLI::App& app, LocalCommand& chosen_local, const std::string& ca_file) {
  auto options = std::make_shared<LoginOptions>();
  auto* login = app.add_subcommand("login", "Store where vergerd is, and a token for it");
  login->footer(
      "Example: verger login https://verger.example.com:2115 --token-file token \\\n"
      "           --ca-fingerprint 3f1c...");
  login->add_option("URL", options->urls, "URL of vergerd; of a pair both")->required();
  login->add_option("--name", options->name, "Name of the profile (default: the host)");
  login->add_option("--token-file", options->token_file,
                    "File with the token on its first line; - is the standard input");
  login->add_option("--ca-fingerprint", options->ca_fingerprint,
                    "SHA-256 of the root of vergerd's certificate, in place of --ca-file");
  login->callback([options, &chosen_local, &ca_file] {
    chosen_local = [options, &ca_file](const LocalContext& context) {
      return log_in(context, *options, ca_file);
    };
  });

  auto* profile = app.add_subcommand("profile", "What `verger login` has stored");
  profile->require_subcommand(1);
  profile->add_subcommand("list", "The profiles, and which one is in use")
      ->callback([&chosen_local] { chosen_local = list_profiles; });
  auto name = std::make_shared<std::string>();
  auto* use = profile->add_subcommand("use", "Use this profile from now on");
  use->add_option("PROFILE", *name)->required();
  use->callback([name, &chosen_local] {
    chosen_local = [name](const LocalContext& context) {
      return change_profiles(context, *name, &Profiles::use, "in use");
    };
  });
  auto* remove = profile->add_subcommand("remove", "Forget a profile and its token");
  remove->add_option("PROFILE", *name)->required();
  remove->callback([name, &chosen_local] {
    chosen_local = [name](const LocalContext& context) {
      return change_profiles(context, *name, &Profiles::remove, "removed");
    };
  });
}

}  // namespace verger::cli
