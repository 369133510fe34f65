#include "engine/tool/man_command.h"

#include <algorithm>

#include <CLI/CLI.hpp>

namespace verger::tool {
namespace {

/// Text as it stands: what roff takes for commands is escaped.
std::string escaped(std::string_view text) {
  std::string result;
  bool line_start = true;
  for (const char letter : text) {
    if (line_start && (letter == '.' || letter == '\'')) {
      result += "\\&";
    }
    if (letter == '\\') {
      result += "\\e";
    } else if (letter == '-') {
      result += "\\-";
    } else {
      result += letter;
    }
    line_start = letter == '\n';
  }
  return result;
}

std::string joined(std::string_view name, char between) {
  std::string result(name);
  std::ranges::replace(result, ' ', between);
  return result;
}

/// "INT:POSITIVE" is checked for more than a reader has to know.
std::string value_name(const CLI::Option& option) {
  const auto type = option.get_type_name();
  return type.substr(0, type.find_first_of(": "));
}

void add_options(const CLI::App& command, std::string& page) {
  std::string text;
  for (const auto* option : command.get_options()) {
    if (option->get_group().empty()) {
      continue;
    }
    const bool flag = option->get_expected_max() == 0;
    const bool positional = option->get_positional();
    const auto name = positional ? option->get_name(true) : option->get_name(false, true);
    text += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", escaped(name),
                        flag || positional ? "" : fmt::format(" \\fI{}\\fR", value_name(*option)),
                        escaped(option->get_description()));
  }
  if (!text.empty()) {
    page += ".SH OPTIONS\n" + text;
  }
}

std::string synopsis(const CLI::App& command) {
  std::string positionals;
  for (const auto* option : command.get_options()) {
    if (option->get_positional()) {
      const auto name = option->get_name(true);
      positionals += option->get_required() ? " " + name : " [" + name + "]";
    }
  }
  return "[OPTIONS]" + positionals;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); });
}

void add_page(const CLI::App& command, const std::string& name,
              std::map<std::string, std::string>& pages) {
  const auto file = joined(name, '-');
  auto upper = file;
  std::ranges::transform(upper, upper.begin(), [](unsigned char letter) {
    return static_cast<char>(std::toupper(letter));
  });
  const auto commands = commands_of(command);
  auto page = fmt::format(
      ".\\\" Made by `verger-db man`; do not edit.\n.TH {} 1 \"\" Verger \"Verger\"\n.SH NAME\n{} "
      "\\- {}\n.SH SYNOPSIS\n.B {}\n{}\n",
      escaped(upper), escaped(file), escaped(command.get_description()), escaped(name),
      escaped(commands.empty() ? synopsis(command) : "COMMAND [OPTIONS] ..."));
  if (!commands.empty()) {
    page += ".SH COMMANDS\n";
    for (const auto* one : commands) {
      page += fmt::format(".TP\n\\fB{}\\fR\n{}; see\n.BR {} (1)\n", escaped(one->get_name()),
                          escaped(one->get_description()), escaped(file + "-" + one->get_name()));
      add_page(*one, name + " " + one->get_name(), pages);
    }
  }
  add_options(command, page);
  if (const auto footer = command.get_footer(); !footer.empty()) {
    const auto example = footer.find("Example:");
    const auto before = footer.substr(0, example);
    if (!before.empty()) {
      page += ".SH NOTES\n.nf\n" + escaped(before) + (before.ends_with('\n') ? "" : "\n") + ".fi\n";
    }
    if (example != std::string::npos) {
      const auto text = footer.substr(example + std::string_view("Example:").size());
      const auto begin = text.find_first_not_of('\n');
      page += ".SH EXAMPLE\n.nf\n" + escaped(text.substr(std::min(begin, text.size()))) + "\n.fi\n";
    }
  }
  if (name.contains(' ')) {
    page += fmt::format(".SH SEE ALSO\n.BR {} (1)\n",
                        escaped(joined(name.substr(0, name.rfind(' ')), '-')));
  }
  pages.emplace(file + ".1", std::move(page));
}

Result<int> write(ToolContext& tool, const CLI::App& program, const Path& directory) {
  VERGER_RETURN_IF_ERROR(tool.files.make_directories(directory));
  const auto pages = man_pages(program);
  for (const auto& [file, page] : pages) {
    VERGER_RETURN_IF_ERROR(write_file_durably(tool.files, directory / file, as_bytes(page)));
  }
  tool.out << fmt::format("{} manual pages written to {}\n", pages.size(), directory.string());
  return kExitDone;
}

}  // namespace

std::map<std::string, std::string> man_pages(const CLI::App& program) {
  std::map<std::string, std::string> pages;
  add_page(program, program.get_name(), pages);
  return pages;
}

void add_man_command(CLI::App& program, Action& chosen) {
  auto directory = std::make_shared<std::string>();
  auto* command = program.add_subcommand("man", "Write the manual pages of all commands");
  command->add_option("DIR", *directory, "Directory of the pages; made when missing")->required();
  command->footer("Example:\n  verger-db man /usr/local/share/man/man1");
  command->callback([directory, &program, &chosen] {
    chosen = [directory, &program](ToolContext& tool) { return write(tool, program, *directory); };
  });
}

}  // namespace verger::tool
