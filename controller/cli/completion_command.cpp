#include <algorithm>
#include <fmt/format.h>
#include <ostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/json_text.h"

// completion, and the names that it requests.
namespace verger::cli {
namespace {

using nlohmann::json;

/// How long a person waits for a name to be completed.
constexpr std::chrono::seconds kNamesDeadline{3};

/// Names that only the server knows, by what the arguments and options of commands are called.
struct Names {
  std::string_view argument;
  std::string_view option;  ///< that takes one; empty: none
  std::string_view kind;    ///< of `verger complete KIND [CLUSTER]`
  std::string_view path;
  std::string_view of_cluster;  ///< behind "/clusters/NAME", in place of `path`
  const char* list;
  const char* member;
};
constexpr Names kNames[] = {{"CLUSTER", "", "clusters", "/clusters", "", "clusters", "name"},
                            {"RUN", "", "runs", "/runs", "", "runs", "id"},
                            {"POLICY", "--policy", "policies", "/policies", "", "policies", "name"},
                            {"HASH", "", "plans", "", "/plans", "plans", "hash"},
                            {"TOKEN", "", "tokens", "/tokens", "", "tokens", "name"},
                            {"REPOSITORY", "--repository", "repositories", "",
                             "/backup-repositories", "repositories", "name"},
                            {"BACKUP", "--generation", "backups", "", "/backups", "backups", "id"}};

/// One a line, for a shell; what cannot be had is nothing to complete. Those that are a cluster's:
/// of `cluster`, or of all of them where it is empty.
int print_names(const CliContext& context, const std::string& kind, const std::string& cluster) {
  const auto print = [&](const std::string& path, const Names& names) {
    const auto answer = context.api.get(path, kNamesDeadline);
    for (const auto& each : answer ? list_of(*answer, names.list) : json::array()) {
      context.out << text_of(each, names.member) << '\n';
    }
  };
  for (const auto& names : kNames) {
    if (names.kind != kind) {
      continue;
    }
    const auto print_of = [&](const std::string& name) {
      print(fmt::format("/clusters/{}{}", http::percent_encode(name), names.of_cluster), names);
    };
    if (!names.path.empty()) {
      print(std::string(names.path), names);
    } else if (!cluster.empty()) {
      print_of(cluster);
    } else {
      const auto clusters = context.api.get("/clusters", kNamesDeadline);
      for (const auto& each : clusters ? list_of(*clusters, "clusters") : json::array()) {
        print_of(text_of(each, "name"));
      }
    }
  }
  return kDone;
}

/// What may follow "plan", "plan show" ....
struct Follows {
  std::string path;
  std::string commands{};
  std::string options{};
  std::vector<std::pair<std::string, std::string>> choices{};  ///< of options that take few words
  std::vector<std::pair<std::string, std::string>> kinds{};    ///< of options that take names
  bool files = false;
  std::vector<std::string> arguments{};  ///< kinds of names, by position; empty: no such name
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

/// "CLUSTER" -> "clusters"
std::string kind_of(const std::string& argument) {
  const auto found = std::ranges::find(kNames, argument, &Names::argument);
  return found == std::end(kNames) ? std::string() : std::string(found->kind);
}

/// "--repository" -> "repositories"
std::string kind_of_option(const std::string& name) {
  const auto found = std::ranges::find(kNames, name, &Names::option);
  return name.empty() || found == std::end(kNames) ? std::string() : std::string(found->kind);
}

/// Not one that is there for the completion alone.
bool is_shown(const CLI::App* app) { return !app->get_group().empty(); }

void collect(const CLI::App& app, const std::string& path, std::vector<Follows>& out) {
  Follows here{.path = path};
  const auto add = [](std::string& words, const std::string& word) {
    words += (words.empty() ? "" : " ") + word;
  };
  for (const auto* sub : app.get_subcommands(is_shown)) {
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
      here.arguments.push_back(kind_of(option->get_name()));
      add(here.commands, choices);
    }
    for (const auto& name : names) {
      if (!choices.empty()) {
        here.choices.emplace_back(name, choices);
      } else if (const auto kind = kind_of_option(name); !kind.empty()) {
        here.kinds.emplace_back(name, kind);
      }
    }
  }
  out.push_back(std::move(here));
  for (const auto* sub : app.get_subcommands(is_shown)) {
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
  local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} path="" word words kind cluster=""
  local -i given=0
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
      -*) ;;
      *) case " $(_verger_words "$path" commands) " in
           *" $word "*) path="${path:+$path }$word" ;;
           *) [ "$given" -gt 0 ] || cluster=$word
              given+=1 ;;
         esac ;;
    esac
  done
  words=$(_verger_words "$path" "$before")
  case $cur in
    -*) words=$(_verger_words "$path" options) ;;
    *) kind=$(_verger_words "$path" "$before names")
       if [ -z "$kind$words" ]; then
         words=$(_verger_words "$path" commands)
         kind=$(_verger_words "$path" "argument$given")
       fi
       [ -z "$kind" ] || words="$words $(verger complete "$kind" $cluster 2>/dev/null)" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
_verger_words() {
  case "$1:$2" in
)sh";
  for (const auto& each : all_that_follow(app)) {
    out += fmt::format("    \"{}:commands\") echo \"{}\" ;;\n", each.path, each.commands);
    out += fmt::format("    \"{}:options\") echo \"{}\" ;;\n", each.path, each.options);
    for (std::size_t i = 0; i < each.arguments.size(); ++i) {
      if (!each.arguments[i].empty()) {
        out +=
            fmt::format("    \"{}:argument{}\") echo \"{}\" ;;\n", each.path, i, each.arguments[i]);
      }
    }
    for (const auto& [option, choices] : each.choices) {
      out += fmt::format("    \"{}:{}\") echo \"{}\" ;;\n", each.path, option, choices);
    }
    for (const auto& [option, kind] : each.kinds) {
      out += fmt::format("    \"{}:{} names\") echo \"{}\" ;;\n", each.path, option, kind);
    }
  }
  // Names of files where there is nothing else to say.
  return out + "  esac\n}\ncomplete -o default -F _verger verger\n";
}

/// Works by `eval` and as the file _verger in a directory of zsh's fpath. From there its first call
/// defines the functions, and has to complete, too.
std::string zsh_completion(const CLI::App& app) {
  return "#compdef verger\nautoload -U +X bashcompinit && bashcompinit\n" + bash_completion(app) +
         "if [ \"${funcstack[1]}\" = _verger ]; then\n"
         "  _bash_complete -o default -F _verger\n"
         "fi\n";
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
    // The cluster is the first word behind the command's own.
    const auto names = [words = std::ranges::count(path, ' ')](const std::string& kind) {
      return fmt::format("(verger complete {} (commandline -opc)[{}] 2>/dev/null)", kind,
                         words + 3);
    };
    for (const auto& kind : each.arguments) {
      if (!kind.empty()) {
        out += fmt::format("complete -c verger -n '{}' -a '{}'\n", condition, names(kind));
      }
    }
    for (const auto& [option, kind] : each.kinds) {
      out += fmt::format("complete -c verger -n '{}' -l {} -xa '{}'\n", condition, option.substr(2),
                         names(kind));
    }
    for (const auto& [option, choices] : each.choices) {
      const bool is_long = option.starts_with("--");
      out += fmt::format("complete -c verger -n '{}' -{} {} -xa '{}'\n", condition,
                         is_long ? "l" : "s", option.substr(is_long ? 2 : 1), choices);
    }
  }
  return out;
}

}  // namespace

void add_completion_command(CLI::App& app, Command& chosen) {
  auto kind = std::make_shared<std::string>();
  auto cluster = std::make_shared<std::string>();
  auto* names = app.add_subcommand("complete", "Names for a shell's completion")->group("");
  names->add_option("KIND", *kind)->required();
  names->add_option("OF", *cluster);
  names->callback([kind, cluster, &chosen] {
    chosen = [kind, cluster](const CliContext& context) {
      return print_names(context, *kind, *cluster);
    };
  });
  auto shell = std::make_shared<std::string>();
  auto* completion = app.add_subcommand("completion", "A shell's completion of these commands");
  completion->footer("Example: verger completion bash > /etc/bash_completion.d/verger");
  completion->add_option("SHELL", *shell)
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->callback([shell, &app, &chosen] {
    const auto text = *shell == "fish"  ? fish_completion(app)
                      : *shell == "zsh" ? zsh_completion(app)
                                        : bash_completion(app);
    chosen = [text](const CliContext& context) {
      context.out << text;
      return static_cast<int>(kDone);
    };
  });
}

}  // namespace verger::cli
