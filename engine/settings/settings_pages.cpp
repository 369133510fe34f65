#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/roff.h"
#include "engine/settings/detail/wrapped.h"
#include "engine/settings/settings.h"

// What is made of a program's options beside its help: an annotated file, and a manual page.
namespace verger::settings {
namespace {

constexpr std::size_t kFileWidth = 100;

bool is_shown(const Effective& option) {
  return !option.hidden && option.deprecated.empty() && option.name != "Config";
}

/// In the order of their first option.
std::vector<std::string> groups_of(const std::vector<Effective>& options) {
  std::vector<std::string> groups;
  for (const auto& option : options) {
    if (is_shown(option) && std::ranges::find(groups, option.group) == groups.end()) {
      groups.push_back(option.group);
    }
  }
  return groups;
}

/// With the words and the unit it takes.
std::string description_of(const Effective& option) {
  auto text = option.description;
  if (!option.choices.empty()) {
    text += fmt::format(" ({})", fmt::join(option.choices, ", "));
  }
  if (!option.unit.empty()) {
    text += fmt::format(" [{}]", option.unit);
  }
  return text;
}

/// What YAML reads as `value` again.
std::string yaml_of(const Effective& option) {
  if (option.type == "boolean") {
    return option.value == "True" || option.value == "true" ? "true" : "false";
  }
  const bool plain = std::ranges::all_of(option.value, [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
           std::string_view("/._-:").contains(letter);
  });
  if (plain && !option.value.ends_with(':') && !option.value.starts_with('-')) {
    return option.value;
  }
  std::string quoted = "\"";
  for (const char letter : option.value) {
    quoted +=
        letter == '"' || letter == '\\' ? fmt::format("\\{}", letter) : std::string(1, letter);
  }
  return quoted + '"';
}

std::string commented(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    out += fmt::format("#{}{}\n", line.empty() ? "" : " ", line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

std::string Settings::annotated_file(std::string_view heading) const {
  const auto options = effective();
  auto out = commented(heading);
  for (const auto& group : groups_of(options)) {
    out += fmt::format("\n# --- {} ---\n", group.empty() ? "General" : group);
    for (const auto& option : options) {
      if (option.group != group || !is_shown(option) || option.secret) {
        continue;
      }
      const auto value = yaml_of(option);
      const auto line = fmt::format("{}:{}{}", option.name, value.empty() ? "" : " ", value);
      out += "\n# " + wrapped(description_of(option), 0, kFileWidth - 2, "# ") + '\n';
      out += option.source == Source::kDefault ? commented(line) : line + '\n';
    }
  }
  return out;
}

std::string Settings::manual_page() const {
  const auto options = effective();
  auto upper = program_;
  std::ranges::transform(upper, upper.begin(), [](unsigned char letter) {
    return static_cast<char>(std::toupper(letter));
  });
  auto page = fmt::format(
      ".\\\" Made by `{0} man`; do not edit.\n.TH {1} 8 \"\" Verger \"Verger\"\n.SH NAME\n{2} \\- "
      "{3}\n.SH SYNOPSIS\n.B {2}\n[\\-\\-config FILE] [\\-\\-OPTION VALUE] ...\n",
      program_, roff_escaped(upper), roff_escaped(program_), roff_escaped(summary_));
  page +=
      ".SH DESCRIPTION\nA flag overrides its environment variable, that overrides the file, and "
      "that "
      "overrides the default. In the file \\-\\-cluster\\-size is written ClusterSize; unknown "
      "keys "
      "are refused.\n";
  if (!commands_.empty()) {
    page += ".SH COMMANDS\n";
    for (const auto& command : commands_) {
      page += fmt::format(".TP\n\\fB{} {}\\fR\n{}\n", roff_escaped(program_),
                          roff_escaped(command.words), roff_escaped(command.description));
    }
  }
  for (const auto& group : groups_of(options)) {
    page += fmt::format(".SH {}\n", group.empty() ? "OPTIONS" : roff_escaped(group));
    for (const auto& option : options) {
      if (option.group != group || !is_shown(option)) {
        continue;
      }
      const bool has_default =
          option.source == Source::kDefault && !option.secret && !option.value.empty();
      page += fmt::format(
          ".TP\n\\fB{}\\fR\n{}{}\n.br\nFile: {}; environment: {}\n",
          roff_escaped(option.secret ? option.name + " (file or environment only)" : option.flag),
          roff_escaped(description_of(option)),
          has_default ? roff_escaped(fmt::format("; default: {}", option.value)) : "",
          roff_escaped(option.name), roff_escaped(option.environment));
    }
  }
  page +=
      ".SH OTHER OPTIONS\n.TP\n\\fB\\-\\-config\\fR\nYAML file with the options that are not "
      "given otherwise\n.TP\n\\fB\\-\\-help\\fR, \\fB\\-\\-version\\fR\n";
  page += "Show the help, or the version.\n";
  if (!footer_.empty()) {
    page += fmt::format(".SH NOTES\n.nf\n{}\n.fi\n", roff_escaped(footer_));
  }
  return page;
}

}  // namespace verger::settings
