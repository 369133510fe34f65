#include "engine/tool/man_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "engine/manual/man_pages.h"

namespace verger::tool {
namespace {

Result<int> write(ToolContext& tool, const CLI::App& program, const Path& directory) {
  const auto pages = man_pages(program, "verger-db man");
  VERGER_RETURN_IF_ERROR(write_man_pages(tool.files, pages, directory));
  tool.out << fmt::format("{} manual pages written to {}\n", pages.size(), directory.string());
  return kExitDone;
}

}  // namespace

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
