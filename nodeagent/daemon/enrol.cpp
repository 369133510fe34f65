#include "nodeagent/daemon/enrol.h"

#include <algorithm>
#include <cerrno>
#include <expected>
#include <fmt/format.h>
#include <iostream>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <nlohmann/json.hpp>

#include "engine/base/clock.h"
#include "engine/base/directories.h"
#include "engine/base/exit_code.h"
#include "engine/base/private_file.h"
#include "engine/settings/settings.h"
#include "nodeagent/api/problem.h"
#include "nodeagent/certificates/authority.h"
#include "nodeagent/daemon/identity.h"
#include "nodeagent/http/beast_client.h"
#include "nodeagent/http/served_chain.h"
#include "nodeagent/http/tls.h"

namespace verger::agent {
namespace {

using nlohmann::json;

constexpr std::uint64_t kDraftFileBytes = 64U << 10U;

struct Options {
  std::string controller = "http://127.0.0.1:2115";
  std::string ca_file;
  std::string ca_fingerprint;
  std::string state;
  std::string token;
  std::string token_file;
};

/// Why it ends, and with which exit code.
struct Failure {
  int status = kExitFailed;
  std::string text{};
};

void declare(settings::Settings& all, Options& options) {
  all.add("controller", options.controller, "URL of vergerd");
  all.add("ca-file", options.ca_file, "Trusted roots of vergerd's own certificate, for https");
  all.add("ca-fingerprint", options.ca_fingerprint,
          "SHA-256 of such a root, which vergerd then shows in the handshake (default: that of the "
          "authority of the token)");
  all.add("state", options.state, "The agent's state directory, where its identity is kept",
          {.prefix = "VERGER_AGENT_"});
  all.add("token-file", options.token_file,
          "File with the one-time token on its first line; - is the standard input",
          {.prefix = "VERGER_AGENT_"});
  all.add("token", options.token, "The one-time token itself",
          {.prefix = "VERGER_AGENT_", .secret = true});
  all.pass_over_other_keys();  // --config may name the agent's own file
  all.set_footer(
      "--config FILE may be the agent's own file: State is read from it.\n"
      "Example: on vergerd's side    verger agent token orders/n1 > token\n"
      "         beside the node      verger-agent enrol --controller "
      "https://verger.example.com:2115 "
      "\\\n           --state /var/lib/verger/agent --token-file token\n"
      "The whole line, with the token:  verger agent enrol orders/n1");
}

std::expected<std::string, Failure> read_token(const Options& options) {
  auto token = options.token;
  if (!options.token_file.empty()) {
    if (options.token_file == "-") {
      std::getline(std::cin, token);
    } else {
      const auto bytes = read_file(posix_file_system(), options.token_file, 4096);
      if (!bytes) {
        return std::unexpected(Failure{kExitUsage, "--token-file " + bytes.error().message});
      }
      token = std::string(as_text(*bytes));
    }
  }
  token = token.substr(0, token.find_first_of("\r\n"));
  if (token.empty()) {
    return std::unexpected(
        Failure{kExitUsage,
                "no token: --token-file FILE, or the variable VERGER_AGENT_TOKEN; an admin "
                "makes one with: verger agent token CLUSTER/NODE"});
  }
  if (std::ranges::count(token, '_') != 3 || !token.starts_with("vergeragent_")) {
    return std::unexpected(Failure{
        kExitUsage,
        "this is not an agent's token, which begins with vergeragent_ (was it copied in full?); an "
        "admin makes one with: verger agent token CLUSTER/NODE"});
  }
  return token;
}

/// The key of an attempt whose answer was lost, or a new one, kept before it is used.
Result<certificates::KeyAndRequest> key_for(const IdentityFiles& files) {
  VERGER_TRY(const bool begun, posix_file_system().exists(files.draft));
  if (begun) {
    VERGER_TRY(const auto bytes, read_file(posix_file_system(), files.draft, kDraftFileBytes));
    const std::string text(as_text(bytes));
    if (const auto at = text.find("-----BEGIN CERTIFICATE REQUEST"); at != std::string::npos) {
      return certificates::KeyAndRequest{.key = text.substr(0, at), .request = text.substr(at)};
    }
  }
  VERGER_TRY(auto made, certificates::make_key_and_request());
  VERGER_RETURN_IF_ERROR(
      write_private_file(files.draft, made.key + made.request, IfThere::kReplace));
  return made;
}

/// The root that `fingerprint` names, as vergerd shows it, in a file of the state directory.
Result<std::string> fetch_root(const Options& options, const http::Endpoint& controller,
                               std::string fingerprint) {
  net::io_context context{1};
  auto fetched = net::co_spawn(context,
                               http::served_root(context.get_executor(), controller,
                                                 std::move(fingerprint), std::chrono::seconds(15)),
                               net::use_future);
  context.run();
  auto root = fetched.get();
  if (!root) {
    return root.error().code == Errc::kRefused
               ? Error{Errc::kRefused, root.error().message + ": --ca-file"}
               : root.error();
  }
  const auto file = Path(options.state) / "controller-root.pem";
  VERGER_RETURN_IF_ERROR(write_file_durably(posix_file_system(), file, as_bytes(*root)));
  return file.string();
}

Result<http::Response> send(const http::Endpoint& controller, const std::string& ca_file,
                            const json& body) {
  net::io_context context{1};
  http::BeastClientOptions settings{.plain_to_loopback_only = true};
  if (controller.tls) {
    VERGER_TRY(settings.tls, http::TlsContext::client({.trusted_roots = ca_file}));
  }
  http::BeastClient client(context.get_executor(), settings);
  http::Request request{.method = "POST",
                        .target = "/api/v1/agents/enrol",
                        .headers = {{"Content-Type", "application/json"}},
                        .body = body.dump()};
  auto answer =
      net::co_spawn(context, client.send(controller, std::move(request), std::chrono::seconds(30)),
                    net::use_future);
  context.run();
  return answer.get();
}

Failure refusal_of(const http::Response& response, const http::Endpoint& controller) {
  const auto problem = api::parse_problem(response.body);
  if (!problem) {
    return {kExitFailed,
            fmt::format("{} answered {}; is that a vergerd?", controller.url(), response.status)};
  }
  const bool refused = response.status == 401 || response.status == 403 || response.status == 409;
  return {refused ? kExitRefused : kExitFailed, problem->detail};
}

/// Looks at everything before anything is kept.
Result<certificates::Checked> store(const IdentityFiles& files, const json& answer,
                                    const std::string& key, std::string_view expected_root) {
  const auto certificate = answer.value("certificate", std::string());
  const auto authority = answer.value("authority", std::string());
  VERGER_TRY(const auto fingerprint, certificates::fingerprint_of(authority));
  if (fingerprint != expected_root) {
    return Error{Errc::kRefused,
                 fmt::format("the answer is not from the controller that issued the token: its "
                             "authority is {}, the token says {}; nothing was stored",
                             fingerprint, expected_root)};
  }
  VERGER_TRY(auto checked, certificates::check_issued(certificate, key, authority));
  // Which agent this is hangs on the certificate, so it comes last.
  VERGER_RETURN_IF_ERROR(
      write_file_durably(posix_file_system(), files.authority, as_bytes(authority)));
  VERGER_RETURN_IF_ERROR(
      write_private_file(files.certificate, key + certificate, IfThere::kReplace));
  static_cast<void>(posix_file_system().remove(files.draft));
  return checked;
}

/// Root enrols for the agent's user, who owns the state directory.
Result<void> hand_over_to_owner(const std::string& state) {
  struct stat of_state{};
  if (::geteuid() != 0 || ::stat(state.c_str(), &of_state) != 0 || of_state.st_uid == 0) {
    return {};
  }
  const auto files = IdentityFiles::in(state);
  for (const auto& file :
       {files.certificate, files.authority, Path(state) / "controller-root.pem"}) {
    if (::lchown(file.c_str(), of_state.st_uid, of_state.st_gid) != 0 && errno != ENOENT) {
      return Error{Errc::kIo, fmt::format("{}: its owner cannot be set", file.string())};
    }
  }
  return {};
}

std::expected<std::string, Failure> enrol(const Options& options) {
  const auto controller = http::parse_endpoint(options.controller, http::kControllerPort);
  if (!controller) {
    return std::unexpected(Failure{
        kExitUsage, "--controller " + options.controller + ": " + controller.error().message});
  }
  if (options.state.empty()) {
    return std::unexpected(Failure{kExitUsage, "--state is missing: the agent's state directory"});
  }
  const auto token = read_token(options);
  if (!token) {
    return std::unexpected(token.error());
  }
  const auto failed = [](const Error& error) {
    return std::unexpected(
        Failure{error.code == Errc::kRefused ? kExitRefused : kExitFailed, error.message});
  };
  if (auto made = make_directories_durably(posix_file_system(), options.state); !made) {
    return failed(made.error());
  }
  const auto authority = token->substr(token->rfind('_') + 1);
  auto ca_file = options.ca_file;
  if (controller->tls && ca_file.empty()) {
    auto root = fetch_root(options, *controller,
                           options.ca_fingerprint.empty() ? authority : options.ca_fingerprint);
    if (!root) {
      return failed(root.error());
    }
    ca_file = *std::move(root);
  }
  const auto files = IdentityFiles::in(options.state);
  const auto key = key_for(files);
  if (!key) {
    return failed(key.error());
  }
  const auto response = send(*controller, ca_file, {{"token", *token}, {"request", key->request}});
  if (!response) {
    if (response.error().code == Errc::kUnknownOutcome) {
      return std::unexpected(Failure{
          kExitWaiting, response.error().message + "; run the same command again, the token still "
                                                   "counts for this key"});
    }
    return failed(response.error());
  }
  const auto answer = json::parse(response->body, nullptr, false);
  if (response->status != 200 || !answer.is_object()) {
    return std::unexpected(refusal_of(*response, *controller));
  }
  const auto stored = store(files, answer, key->key, authority);
  if (!stored) {
    return failed(stored.error());
  }
  if (const auto owned = hand_over_to_owner(options.state); !owned) {
    return failed(owned.error());
  }
  return fmt::format(
      "enrolled as {}/{}; the certificate (serial {}) is valid until {}, vergerd renews it before "
      "that.\nStart the agent with --state {}, or if it runs, restart it\n",
      answer.value("cluster", ""), answer.value("node", ""), stored->serial,
      format_ticks(stored->not_after), options.state);
}

}  // namespace

int run_enrol(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  settings::Settings all("verger-agent enrol",
                         "gets this agent a certificate of its controller, for a one-time token");
  Options options;
  declare(all, options);
  const auto action = all.parse(argc, argv);
  if (!action) {
    err << "verger-agent enrol: " << action.error().message << '\n';
    return kExitUsage;
  }
  if (*action == settings::Settings::Action::kHelp) {
    out << all.help();
    return kExitDone;
  }
  const auto done = enrol(options);
  if (!done) {
    err << "verger-agent enrol: " << done.error().text << '\n';
    return done.error().status;
  }
  out << *done;
  return kExitDone;
}

}  // namespace verger::agent
