#include "engine/settings/settings.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include "engine/base/assert.h"
#include "engine/base/nearest_name.h"
#include "engine/base/number_from_text.h"
#include "engine/settings/detail/wrapped.h"

namespace verger::settings {
namespace {

constexpr std::string_view kMask = "********";
constexpr std::size_t kHelpWidth = 100;
constexpr std::size_t kCommandIndent = 11;

/// "--ClusterSize", "cluster_size" -> "clustersize"
std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != '-' && c != '_') {
      out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return out;
}

/// "cluster-size" -> "ClusterSize"
std::string key_of(std::string_view name) {
  std::string out;
  bool upper = true;
  for (const char c : name) {
    if (c == '-') {
      upper = true;
    } else {
      out += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
      upper = false;
    }
  }
  return out;
}

/// "VERGER_AGENT_" and "agent-port" -> "VERGER_AGENT_PORT"
std::string variable_of(const std::string& prefix, std::string_view name) {
  std::string upper;
  for (const char c : name) {
    upper += c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  if (prefix == "VERGER_AGENT_" && upper.starts_with("AGENT_")) {
    upper.erase(0, 6);
  }
  return prefix + upper;
}

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

Settings::Settings(std::string program, std::string summary)
    : program_(std::move(program)), summary_(std::move(summary)) {
  add("config", config_, "YAML file with the options that are not given otherwise");
}

Result<void> Settings::parse_bool(std::string_view text, bool& into) {
  const auto value = folded(text);
  if (value == "true" || value == "1" || value == "yes" || value == "on") {
    into = true;
  } else if (value == "false" || value == "0" || value == "no" || value == "off") {
    into = false;
  } else {
    return Error{Errc::kInvalidArgument, "true or false is expected"};
  }
  return {};
}

Result<void> Settings::parse_integer(std::string_view text, std::int64_t& into) {
  const auto number = number_from_text<std::int64_t>(text);
  if (!number) {
    return Error{Errc::kInvalidArgument, "a whole number is expected"};
  }
  into = *number;
  return {};
}

void Settings::declare(Option option) {
  VERGER_ASSERT(find(option.name) == nullptr);
  options_.push_back(std::move(option));
}

Settings::Option* Settings::find(std::string_view name) {
  const auto wanted = folded(name);
  for (auto& option : options_) {
    if (folded(option.name) == wanted ||
        std::ranges::any_of(option.traits.aliases,
                            [&](const auto& alias) { return folded(alias) == wanted; })) {
      return &option;
    }
  }
  return nullptr;
}

Error Settings::unknown(std::string_view what, std::string_view name,
                        std::string_view prefix) const {
  const auto wanted = folded(name);
  const Option* nearest = nullptr;
  std::size_t best = wanted.size();
  for (const auto& option : options_) {
    if (const auto far = distance(wanted, folded(option.name)); far < best) {
      best = far;
      nearest = &option;
    }
  }
  std::string hint;
  if (nearest != nullptr && best <= 2 + wanted.size() / 3) {
    hint = fmt::format("; did you mean {}{}?", prefix,
                       prefix.empty() ? key_of(nearest->name) : nearest->name);
  }
  return {Errc::kInvalidArgument,
          fmt::format("{} is not known{} `{} --help` lists all options", what,
                      hint.empty() ? std::string(";") : hint, program_)};
}

Result<void> Settings::take(Option& option, std::string_view text, Source source,
                            std::string where) {
  auto taken = option.set(text);
  if (taken && !option.traits.choices.empty() &&
      std::ranges::find(option.traits.choices, text) == option.traits.choices.end()) {
    taken = Error{Errc::kInvalidArgument,
                  fmt::format("one of {} is expected", fmt::join(option.traits.choices, ", "))};
  }
  if (!taken) {
    return Error{Errc::kInvalidArgument,
                 option.traits.secret
                     ? fmt::format("{}: {}", where, taken.error().message)
                     : fmt::format("{}: \"{}\": {}", where, text, taken.error().message)};
  }
  option.value = std::string(text);
  option.source = source;
  if (!option.traits.deprecated.empty()) {
    warnings_.push_back(fmt::format("{}: {}", where, option.traits.deprecated));
  }
  option.where = std::move(where);
  return {};
}

Result<Settings::Action> Settings::read_flags(const std::vector<std::string>& arguments,
                                              std::vector<std::pair<Option*, std::string>>& found) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      return Action::kHelp;
    }
    if (argument == "--version") {
      return Action::kVersion;
    }
    if (!argument.starts_with("--")) {
      std::vector<std::string> commands;
      commands.reserve(commands_.size());
      for (const auto& command : commands_) {
        commands.push_back(command.words.substr(0, command.words.find(' ')));
      }
      const auto meant = nearest_name(argument, commands);
      return Error{
          Errc::kInvalidArgument,
          fmt::format("\"{}\": an option is expected, such as --config FILE{}; `{} --help` "
                      "lists all options",
                      argument, meant.empty() ? "" : fmt::format("; did you mean {}?", meant),
                      program_)};
    }
    const auto equals = argument.find('=');
    const auto flag = argument.substr(0, equals);
    auto* option = find(flag.substr(2));
    if (option == nullptr) {
      return unknown(flag, flag, "--");
    }
    if (option->traits.secret) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("{}: secrets are not taken from the command line, where every user "
                               "on the machine can read them; use the variable {} or the file",
                               flag, variable_of(option->traits.prefix, option->name))};
    }
    std::string value;
    const bool next_is_value =
        i + 1 < arguments.size() && !std::string_view(arguments[i + 1]).starts_with("--");
    if (equals != std::string_view::npos) {
      value = argument.substr(equals + 1);
    } else if (next_is_value) {
      value = arguments[++i];
    } else if (option->type == "boolean") {
      value = "true";
    } else {
      return Error{Errc::kInvalidArgument, fmt::format("{}: its value is missing", flag)};
    }
    found.emplace_back(option, std::move(value));
  }
  return Action::kRun;
}

Result<void> Settings::read_environment(const std::map<std::string, std::string>& environment) {
  std::set<std::string> known;
  for (auto& option : options_) {
    const auto variable = variable_of(option.traits.prefix, option.name);
    known.insert(variable);
    const auto found = environment.find(variable);
    if (found != environment.end() && option.source < Source::kEnvironment) {
      VERGER_RETURN_IF_ERROR(take(option, found->second, Source::kEnvironment, variable));
    }
  }
  // Only a warning: container platforms put variables of their own beside ours.
  for (const auto& [name, value] : environment) {
    const bool ours = name.starts_with("VERGER_NODE_") || name.starts_with("VERGER_AGENT_");
    if (ours && !known.contains(name) && std::ranges::any_of(options_, [&](const Option& option) {
          return name.starts_with(option.traits.prefix) && option.traits.prefix != "VERGER_";
        })) {
      warnings_.push_back(fmt::format("the environment variable {} is not known", name));
    }
  }
  return {};
}

Result<void> Settings::read_file(const std::string& path) {
  YAML::Node root;
  try {
    root = YAML::LoadFile(path);
  } catch (const YAML::BadFile&) {
    return Error{Errc::kNotFound, fmt::format("--config {}: the file cannot be read", path)};
  } catch (const YAML::Exception& error) {
    return Error{Errc::kInvalidArgument, fmt::format("--config {}: {}", path, error.what())};
  }
  if (root.IsNull()) {
    return {};
  }
  if (!root.IsMap()) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("--config {}: lines such as \"ClusterSize: 3\" are expected", path)};
  }
  std::set<const Option*> seen;
  try {
    for (const auto& entry : root) {
      const auto key = entry.first.as<std::string>();
      const auto where = fmt::format("{}:{}: {}", path, entry.first.Mark().line + 1, key);
      auto* option = find(key);
      if (option == nullptr && other_keys_) {
        continue;
      }
      if (option == nullptr || option->name == "config") {
        return unknown(where, key, "");
      }
      if (!seen.insert(option).second) {
        return Error{Errc::kInvalidArgument, where + ": the option is there twice"};
      }
      std::string text;
      if (entry.second.IsSequence()) {
        for (const auto& element : entry.second) {
          text += (text.empty() ? "" : ",") + element.as<std::string>();
        }
      } else if (entry.second.IsScalar()) {
        text = entry.second.as<std::string>();
      } else if (!entry.second.IsNull()) {
        return Error{Errc::kInvalidArgument, where + ": a value or a list is expected"};
      }
      if (option->source < Source::kFile) {
        VERGER_RETURN_IF_ERROR(take(*option, text, Source::kFile, where));
      }
    }
  } catch (const YAML::Exception& error) {
    return Error{Errc::kInvalidArgument, fmt::format("--config {}: {}", path, error.what())};
  }
  return {};
}

Result<Settings::Action> Settings::parse(const std::vector<std::string>& arguments,
                                         const std::map<std::string, std::string>& environment) {
  std::vector<std::pair<Option*, std::string>> flags;
  VERGER_TRY(const auto action, read_flags(arguments, flags));
  if (action != Action::kRun) {
    return action;
  }
  for (auto& [option, value] : flags) {
    VERGER_RETURN_IF_ERROR(take(*option, value, Source::kFlag, "--" + option->name));
  }
  VERGER_RETURN_IF_ERROR(read_environment(environment));
  if (!config_.empty()) {
    VERGER_RETURN_IF_ERROR(read_file(config_));
  }
  return action;
}

std::map<std::string, std::string> environment_of_this_process() {
  std::map<std::string, std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals != std::string_view::npos) {
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return environment;
}

Result<Settings::Action> Settings::parse(int argc, const char* const* argv) {
  return parse(std::vector<std::string>(argv + std::min(argc, 1), argv + argc),
               environment_of_this_process());
}

std::vector<Effective> Settings::effective() const {
  std::vector<Effective> out;
  for (const auto& option : options_) {
    const bool masked = option.traits.secret;
    out.push_back({.name = key_of(option.name),
                   .flag = "--" + option.name,
                   .environment = variable_of(option.traits.prefix, option.name),
                   .description = option.description,
                   .group = option.traits.group,
                   .value = masked ? std::string(kMask) : option.value,
                   .type = option.type,
                   .unit = option.traits.unit,
                   .deprecated = option.traits.deprecated,
                   .choices = option.traits.choices,
                   .source = option.source,
                   .where = option.where,
                   .hidden = option.traits.hidden,
                   .secret = masked});
  }
  return out;
}

bool Settings::given(std::string_view name) const {
  return std::ranges::any_of(options_, [&](const Option& option) {
    return option.name == name && option.source != Source::kDefault;
  });
}

std::string Settings::help() const {
  std::string out = fmt::format("{}: {}\n\nusage: {} [--config FILE] [--OPTION VALUE] ...\n",
                                program_, summary_, program_);
  for (const auto& command : commands_) {
    out += fmt::format("       {} {}\n           {}\n", program_, command.words,
                       wrapped(command.description, kCommandIndent, kHelpWidth));
  }
  out +=
      "A flag beats its environment variable, that beats the file, that beats the default.\n"
      "In the file --cluster-size is written ClusterSize.\n";
  std::vector<std::string> groups;
  for (const auto& option : options_) {
    if (std::ranges::find(groups, option.traits.group) == groups.end()) {
      groups.push_back(option.traits.group);
    }
  }
  for (const auto& group : groups) {
    out += fmt::format("\n{}\n", group.empty() ? "General" : group);
    for (const auto& option : options_) {
      if (option.traits.group != group || option.traits.hidden ||
          !option.traits.deprecated.empty()) {
        continue;
      }
      auto text = option.description;
      if (!option.traits.choices.empty()) {
        text += fmt::format(" ({})", fmt::join(option.traits.choices, ", "));
      }
      if (!option.value.empty() && option.source == Source::kDefault && !option.traits.secret) {
        text += fmt::format(" [{}{}]", option.value,
                            option.traits.unit.empty() ? "" : " " + option.traits.unit);
      }
      const auto variable = variable_of(option.traits.prefix, option.name);
      out += option.traits.secret ? fmt::format("  {} (variable or file only)\n      {}\n",
                                                variable, wrapped(text, 6, kHelpWidth))
                                  : fmt::format("  --{}  {}\n      {}\n", option.name, variable,
                                                wrapped(text, 6, kHelpWidth));
    }
  }
  out += "\n  --help, --version\n";
  if (!footer_.empty()) {
    out += "\n" + footer_ + "\n";
  }
  return out;
}

}  // namespace verger::settings
