#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/json_text.h"
#include "controller/cli/table.h"
#include "controller/cli/times.h"
#include "engine/base/clock.h"
#include "engine/base/private_file.h"

// token create | list | revoke
namespace verger::cli {
namespace {

using nlohmann::json;

struct NewTokenOptions {
  std::string name;
  std::string role = "viewer";
  std::string out;      ///< file; empty: stdout
  std::string expires;  ///< empty: never
};

int create_token(const CliContext& context, const NewTokenOptions& options) {
  json body{{"name", options.name}, {"role", options.role}};
  if (!options.expires.empty()) {
    const auto until = parse_until(options.expires, system_clock().now());
    if (!until) {
      context.err << "verger: --expires " << options.expires << ": " << until.error().message
                  << '\n';
      return kUsage;
    }
    body["expires_at"] = format_ticks(*until);
  }
  if (const auto free = check_secret_file(options.out); !free) {
    context.err << "verger: --out " << free.error().message << '\n';
    return kUsage;
  }
  const auto token = context.api.post("/tokens", body);
  if (!token) {
    return context.fail(token.error());
  }
  const auto expires = text_of(*token, "expires_at");
  const auto about = fmt::format(
      "token {} of {} ({}{}); it is shown this once. {}\n", text_of(*token, "id"),
      text_of(*token, "name"), text_of(*token, "role"),
      expires.empty() ? "" : ", until " + to_the_second(expires),
      options.out.empty()
          ? "Keep it in a file that only you can read (--out FILE makes one), and name the file in "
            "VERGER_TOKEN_FILE"
          : fmt::format("It is in {}: export VERGER_TOKEN_FILE={}", options.out, options.out));
  return context.show_secret(*token, about, options.out);
}

std::string state_of(const json& token) {
  return token.value("revoked", false)   ? "revoked"
         : token.value("expired", false) ? "expired"
                                         : "active";
}

int list_tokens(const CliContext& context) {
  const auto answer = context.api.get_all("/tokens", "tokens");
  if (!answer) {
    return context.fail(answer.error());
  }
  Table table({{"token"}, {"name"}, {"role"}, {"made"}, {"by"}, {"expires"}, {"state"}});
  for (const auto& token : list_of(*answer, "tokens")) {
    if (context.json) {
      context.out << token.dump() << '\n';
      continue;
    }
    table.add({text_of(token, "id"), text_of(token, "name"), text_of(token, "role"),
               time_of(token, "created_at"), text_of(token, "created_by"),
               text_of(token, "expires_at").empty() ? "never" : time_of(token, "expires_at"),
               state_of(token)});
  }
  if (!context.json) {
    context.print(table);
  }
  return kDone;
}

/// The ids of active tokens that `text` means: by id, by name, or by the beginning of either.
std::vector<std::string> meant_by(const std::string& text, const json& tokens) {
  std::vector<std::string> exact;
  std::vector<std::string> begins;
  for (const auto& token : tokens) {
    if (state_of(token) == "revoked") {
      continue;
    }
    const auto id = text_of(token, "id");
    const auto name = text_of(token, "name");
    if (id == text || name == text) {
      exact.push_back(id);
    } else if (id.starts_with(text) || name.starts_with(text)) {
      begins.push_back(id);
    }
  }
  return exact.empty() ? begins : exact;
}

int revoke_token(const CliContext& context, const std::string& text) {
  const auto all = context.api.get_all("/tokens", "tokens");
  if (!all) {
    return context.fail(all.error());
  }
  const auto ids = meant_by(text, list_of(*all, "tokens"));
  if (ids.size() != 1) {
    context.err << (ids.empty()
                        ? fmt::format("verger: there is no token {} that is not revoked; see "
                                      "`verger token list`\n",
                                      text)
                        : fmt::format(
                              "verger: {} may mean several tokens: {}; nothing was revoked\n", text,
                              fmt::join(ids, ", ")));
    return kFailed;
  }
  const auto answer = context.api.remove("/tokens/" + http::percent_encode(ids.front()));
  if (!answer) {
    return context.fail(answer.error());
  }
  if (context.json) {
    context.out << json{{"id", ids.front()}, {"revoked", true}}.dump() << '\n';
  } else {
    context.out << fmt::format("token {} is revoked\n", ids.front());
  }
  return kDone;
}

}  // namespace

void add_token_commands(CLI::App& app, Command& chosen) {
  auto* token = app.add_subcommand("token", "Who may ask the controller for what");
  token->require_subcommand(1);
  auto options = std::make_shared<NewTokenOptions>();
  auto* create = token->add_subcommand("create", "A new token; its secret is shown once");
  create->footer("Example: verger token create ann --role admin --out ~/.verger-token");
  create->add_option("NAME", options->name, "Who uses it, unique; shown in the audit trail")
      ->required();
  create->add_option("--role", options->role)
      ->check(CLI::IsMember({"viewer", "operator", "admin"}));
  create->add_option("--out", options->out,
                     "A new file for it, which only you can read (mode 0600)");
  create->add_option("--expires", options->expires,
                     "From then on it is refused: 90d, 2027-01-01T00:00:00Z (default: never)");
  create->callback([options, &chosen] {
    chosen = [options](const CliContext& context) { return create_token(context, *options); };
  });
  token->add_subcommand("list", "The tokens, without their secrets")->callback([&chosen] {
    chosen = list_tokens;
  });
  auto text = std::make_shared<std::string>();
  auto* revoke = token->add_subcommand("revoke", "Revoke a token: it is refused from then on");
  revoke->add_option("TOKEN", *text, "Its name or id, or the beginning of one that is unique")
      ->required();
  revoke->callback([text, &chosen] {
    chosen = [text](const CliContext& context) { return revoke_token(context, *text); };
  });
}

}  // namespace verger::cli
