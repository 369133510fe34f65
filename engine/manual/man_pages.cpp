#include "engine/manual/man_pages.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "engine/base/roff.h"

namespace verger {
namespace {

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
    text += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff_escaped(name),
                        flag || positional ? "" : fmt::format(" \\fI{}\\fR", value_name(*option)),
                        roff_escaped(option->get_description()));
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

struct Origin {
  std::string_view made_by;
  int section;
};

void add_page(const CLI::App& command, const std::string& name, const Origin& origin,
              ManPages& pages) {
  const auto file = joined(name, '-');
  auto upper = file;
  std::ranges::transform(upper, upper.begin(), [](unsigned char letter) {
    return static_cast<char>(std::toupper(letter));
  });
  const auto commands = commands_of(command);
  auto page = fmt::format(
      ".\\\" Made by `{}`; do not edit.\n.TH {} {} \"\" Verger \"Verger\"\n.SH NAME\n{} "
      "\\- {}\n.SH SYNOPSIS\n.B {}\n{}\n",
      origin.made_by, roff_escaped(upper), origin.section, roff_escaped(file),
      roff_escaped(command.get_description()), roff_escaped(name),
      roff_escaped(commands.empty() ? synopsis(command) : "COMMAND [OPTIONS] ..."));
  if (!commands.empty()) {
    page += ".SH COMMANDS\n";
    for (const auto* one : commands) {
      page += fmt::format(".TP\n\\fB{}\\fR\n{}; see\n.BR {} ({})\n", roff_escaped(one->get_name()),
                          roff_escaped(one->get_description()),
                          roff_escaped(file + "-" + one->get_name()), origin.section);
      add_page(*one, name + " " + one->get_name(), origin, pages);
    }
  }
  add_options(command, page);
  if (const auto footer = command.get_footer(); !footer.empty()) {
    const auto example = footer.find("Example:");
    const auto before = footer.substr(0, example);
    if (!before.empty()) {
      page += ".SH NOTES\n.nf\n" + roff_escaped(before) + (before.ends_with('\n') ? "" : "\n") +
              ".fi\n";
    }
    if (example != std::string::npos) {
      const auto text = footer.substr(example + std::string_view("Example:").size());
      const auto begin = text.find_first_not_of('\n');
      page += ".SH EXAMPLE\n.nf\n" + roff_escaped(text.substr(std::min(begin, text.size()))) +
              "\n.fi\n";
    }
  }
  if (name.contains(' ')) {
    page += fmt::format(".SH SEE ALSO\n.BR {} ({})\n",
                        roff_escaped(joined(name.substr(0, name.rfind(' ')), '-')), origin.section);
  }
  pages.emplace(fmt::format("{}.{}", file, origin.section), std::move(page));
}

}  // namespace

ManPages man_pages(const CLI::App& program, std::string_view made_by, int section) {
  ManPages pages;
  add_page(program, program.get_name(), {.made_by = made_by, .section = section}, pages);
  return pages;
}

Result<void> write_man_pages(FileSystem& files, const ManPages& pages, const Path& directory) {
  VERGER_RETURN_IF_ERROR(files.make_directories(directory));
  for (const auto& [file, page] : pages) {
    VERGER_RETURN_IF_ERROR(write_file_durably(files, directory / file, as_bytes(page)));
  }
  return {};
}

}  // namespace verger
