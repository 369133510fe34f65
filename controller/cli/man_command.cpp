#include <fmt/format.h>
#include <ostream>

#include <CLI/CLI.hpp>

#include "controller/cli/commands.h"
#include "engine/manual/man_pages.h"

// man
namespace verger::cli {

void add_man_command(CLI::App& app, LocalCommand& chosen_local) {
  auto directory = std::make_shared<std::string>();
  auto* command = app.add_subcommand("man", "Write the manual pages of all commands");
  command->add_option("DIR", *directory, "Directory of the pages; made when missing")->required();
  command->footer("Example: verger man /usr/local/share/man/man1");
  command->callback([directory, &app, &chosen_local] {
    chosen_local = [directory, pages = man_pages(app, "verger man")](const LocalContext& context) {
      if (const auto written = write_man_pages(posix_file_system(), pages, *directory); !written) {
        context.err << "verger: " << written.error().message << '\n';
        return static_cast<int>(kFailed);
      }
      context.out << fmt::format("{} manual pages written to {}\n", pages.size(), *directory);
      return static_cast<int>(kDone);
    };
  });
}

}  // namespace verger::cli
