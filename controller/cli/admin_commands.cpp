#include <algorithm>
#include <fmt/format.h>
#include <ostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/json_text.h"
#include "controller/cli/table.h"
#include "controller/cli/times.h"

// token, audit, completion.
namespace verger::cli {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kVerifyDeadline{600};

int create_token(const CliContext& context, const std::string& name, const std::string& role) {
  const auto token = context.api.post("/tokens", {{"name", name}, {"role", role}});
  if (!token) {
    return context.fail(token.error());
  }
  const auto about = fmt::format(
      "token {} of {} ({}); it is shown this once. Keep it in a file that only you can read, and "
      "name the file in VERGER_TOKEN_FILE\n",
      text_of(*token, "id"), text_of(*token, "name"), text_of(*token, "role"));
  return context.show_secret(*token, about);
}

int list_tokens(const CliContext& context) {
  const auto answer = context.api.get_all("/tokens", "tokens");
  if (!answer) {
    return context.fail(answer.error());
  }
  Table table({{"token"}, {"name"}, {"role"}, {"made"}, {"by"}, {"state"}});
  for (const auto& token : list_of(*answer, "tokens")) {
    if (context.json) {
      context.out << token.dump() << '\n';
      continue;
    }
    table.add({text_of(token, "id"), text_of(token, "name"), text_of(token, "role"),
               time_of(token, "created_at"), text_of(token, "created_by"),
               token.value("revoked", false) ? "revoked" : "active"});
  }
  if (!context.json) {
    context.print(table);
  }
  return kDone;
}

int revoke_token(const CliContext& context, const std::string& id) {
  const auto answer = context.api.remove("/tokens/" + http::percent_encode(id));
  if (!answer) {
    return context.fail(answer.error());
  }
  if (context.json) {
    context.out << json{{"id", id}, {"revoked", true}}.dump() << '\n';
  } else {
    context.out << fmt::format("token {} is revoked\n", id);
  }
  return kDone;
}

int verify_audit(const CliContext& context) {
  const auto answer = context.api.get("/audit/verify", kVerifyDeadline);
  if (!answer) {
    return context.fail(answer.error());
  }
  if (context.json) {
    context.out << answer->dump() << '\n';
  } else {
    context.out << fmt::format(
        "{} events: each is what was written, in its order\nthe last one has the hash {}\n",
        with_separators(number_of(*answer, "verified")), text_of(*answer, "last_hash"));
  }
  return kDone;
}

/// One JSON object a line, whatever -o says: an export is for machines. What is not what was
/// written is exported, too, but not without saying so.
int export_audit(const CliContext& context) {
  std::int64_t after = 0;
  for (;;) {
    const auto answer = context.api.get(fmt::format("/audit?after={}", after));
    if (!answer) {
      return context.fail(answer.error());
    }
    for (const auto& entry : list_of(*answer, "entries")) {
      context.out << entry.dump() << '\n';
    }
    const auto next = number_of(*answer, "next");
    if (next <= after) {
      break;
    }
    after = next;
  }
  const auto verified = context.api.get("/audit/verify", kVerifyDeadline);
  return verified ? kDone : context.fail(verified.error());
}

/// What may follow "plan", "plan scavenge" ....
struct Follows {
  std::string path;
  std::string commands{};
  std::string options{};
  std::vector<std::pair<std::string, std::string>> choices{};  ///< of options that take few words
  bool files = false;
};

/// "TEXT:{rolling,concurrent}" -> "rolling concurrent"
std::string choices_of(const CLI::Option& option) {
  const auto type = option.get_type_name();
  const auto begin = type.find('{');
  const auto end = type.find('}', begin == std::string::npos ? 0 : begin);
  auto words = begin == std::string::npos || end == std::string::npos
                   ? std::string()
                   : type.substr(begin + 1, end - begin - 1);
  std::ranges::replace(words, ',', ' ');
  return words;
}

void collect(const CLI::App& app, const std::string& path, std::vector<Follows>& out) {
  Follows here{.path = path};
  const auto add = [](std::string& words, const std::string& word) {
    words += (words.empty() ? "" : " ") + word;
  };
  for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    add(here.commands, sub->get_name());
  }
  for (const auto* option : app.get_options()) {
    if (option->get_group().empty()) {
      continue;  // hidden
    }
    const auto choices = choices_of(*option);
    std::vector<std::string> names;
    for (const auto& name : option->get_lnames()) {
      add(here.options, "--" + name);
      names.push_back("--" + name);
    }
    for (const auto& name : option->get_snames()) {
      names.push_back("-" + name);
    }
    if (option->get_positional() && names.empty()) {
      here.files = here.files || option->get_name().contains("FILE");
      add(here.commands, choices);
    }
    for (const auto& name : names) {
      if (!choices.empty()) {
        here.choices.emplace_back(name, choices);
      }
    }
  }
  out.push_back(std::move(here));
  for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    collect(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), out);
  }
}

/// The options of the whole program may stand anywhere.
std::vector<Follows> all_that_follow(const CLI::App& app) {
  std::vector<Follows> all;
  collect(app, "", all);
  const auto common = all.front();
  for (auto& each : all) {
    if (!each.path.empty()) {
      each.options += " " + common.options.substr(common.options.find(' ') + 1);  // one --help
      each.choices.insert(each.choices.end(), common.choices.begin(), common.choices.end());
    }
  }
  return all;
}

std::string bash_completion(const CLI::App& app) {
  std::string out = R"sh(_verger() {
  local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} path="" word words
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
      -*) ;;
      *) case " $(_verger_words "$path" commands) " in *" $word "*) path="${path:+$path }$word" ;; esac ;;
    esac
  done
  words=$(_verger_words "$path" "$before")
  case $cur in
    -*) words=$(_verger_words "$path" options) ;;
    *) [ -n "$words" ] || words=$(_verger_words "$path" commands) ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
_verger_words() {
  case "$1:$2" in
)sh";
  for (const auto& each : all_that_follow(app)) {
    out += fmt::format("    \"{}:commands\") echo \"{}\" ;;\n", each.path, each.commands);
    out += fmt::format("    \"{}:options\") echo \"{}\" ;;\n", each.path, each.options);
    for (const auto& [option, choices] : each.choices) {
      out += fmt::format("    \"{}:{}\") echo \"{}\" ;;\n", each.path, option, choices);
    }
  }
  // Names of files where there is nothing else to say.
  return out + "  esac\n}\ncomplete -o default -F _verger verger\n";
}

std::string fish_completion(const CLI::App& app) {
  std::string out = "complete -c verger -f\n";
  for (const auto& each : all_that_follow(app)) {
    const auto& path = each.path;
    std::string condition = path.empty() ? "__fish_use_subcommand" : "";
    for (std::size_t begin = 0; begin < path.size();) {
      const auto end = std::min(path.find(' ', begin), path.size());
      condition += fmt::format("{}__fish_seen_subcommand_from {}", begin == 0 ? "" : "; and ",
                               path.substr(begin, end - begin));
      begin = end + 1;
    }
    out += fmt::format("complete -c verger -n '{}' {}-a '{} {}'\n", condition,
                       each.files ? "-F " : "", each.commands, each.options);
    for (const auto& [option, choices] : each.choices) {
      const bool is_long = option.starts_with("--");
      out += fmt::format("complete -c verger -n '{}' -{} {} -xa '{}'\n", condition,
                         is_long ? "l" : "s", option.substr(is_long ? 2 : 1), choices);
    }
  }
  return out;
}

}  // namespace

void add_admin_commands(CLI::App& app, Command& chosen) {
  auto* token = app.add_subcommand("token", "Who may ask the controller for what");
  token->require_subcommand(1);
  auto name = std::make_shared<std::string>();
  auto role = std::make_shared<std::string>("viewer");
  auto* create = token->add_subcommand("create", "A new token; its secret is shown once");
  create->footer("Example: verger token create ann --role admin > ~/.verger-token");
  create->add_option("NAME", *name, "Who uses it; shown in the audit trail")->required();
  create->add_option("--role", *role)->check(CLI::IsMember({"viewer", "operator", "admin"}));
  create->callback([name, role, &chosen] {
    chosen = [name, role](const CliContext& context) {
      return create_token(context, *name, *role);
    };
  });
  token->add_subcommand("list", "The tokens, without their secrets")->callback([&chosen] {
    chosen = list_tokens;
  });
  auto id = std::make_shared<std::string>();
  auto* revoke = token->add_subcommand("revoke", "Revoke a token: it is refused from then on");
  revoke->add_option("TOKEN", *id, "Its id, from `verger token list`")->required();
  revoke->callback([id, &chosen] {
    chosen = [id](const CliContext& context) { return revoke_token(context, *id); };
  });

  auto* audit = app.add_subcommand("audit", "Who asked for what, from where, and why");
  audit->require_subcommand(1);
  audit->add_subcommand("verify", "Walk the hash chain of the journal")->callback([&chosen] {
    chosen = verify_audit;
  });
  audit->add_subcommand("export", "Every entry with its hash, one JSON object a line")
      ->callback([&chosen] { chosen = export_audit; });

  auto shell = std::make_shared<std::string>();
  auto* completion = app.add_subcommand("completion", "A shell's completion of these commands");
  completion->footer("Example: verger completion bash > /etc/bash_completion.d/verger");
  completion->add_option("SHELL", *shell)
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->callback([shell, &app, &chosen] {
    const auto text =
        *shell == "fish"
            ? fish_completion(app)
            : (*shell == "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : "") +
                  bash_completion(app);
    chosen = [text](const CliContext& context) {
      context.out << text;
      return static_cast<int>(kDone);
    };
  });
}

}  // namespace verger::cli
