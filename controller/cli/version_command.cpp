#include <fmt/format.h>
#include <ostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/json_text.h"

// version
namespace verger::cli {
namespace {

using nlohmann::json;

int print_versions(const CliContext& context) {
  const auto health = context.api.get("/health");
  const auto controller = health ? text_of(*health, "version") : std::string();
  if (context.json) {
    context.out << json{{"verger", VERGER_VERSION},
                        {"vergerd", controller.empty() ? json() : json(controller)}}
                       .dump()
                << '\n';
  } else {
    context.out << fmt::format("verger {}\n", VERGER_VERSION);
    if (health) {
      context.out << fmt::format("vergerd {}\n", controller);
    }
  }
  return health ? static_cast<int>(kDone) : context.fail(health.error());
}

int print_own_version(const LocalContext& context) {
  context.out << (context.json ? json{{"verger", VERGER_VERSION}}.dump()
                               : fmt::format("verger {}", VERGER_VERSION))
              << '\n';
  return kDone;
}

}  // namespace

void add_version_command(CLI::App& app, LocalCommand& chosen_local, Command& chosen) {
  auto own = std::make_shared<bool>(false);
  auto* version = app.add_subcommand("version", "The versions of this program and of vergerd");
  version->add_flag("--client", *own, "Of this program alone, without vergerd");
  version->footer("Example: verger version");
  version->callback([own, &chosen_local, &chosen] {
    if (*own) {
      chosen_local = print_own_version;
    } else {
      chosen = print_versions;
    }
  });
}

}  // namespace verger::cli
