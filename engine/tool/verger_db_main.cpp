#include <exception>
#include <iostream>
#include <unistd.h>

#include "engine/base/database_files.h"
#include "engine/logging/spdlog_log.h"
#include "engine/tool/program.h"

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  try {
    verger::LogOptions options;
    options.level = verger::LogLevel::kWarning;
    auto log = verger::make_log("verger-db", options);
    if (!log) {
      std::cerr << "verger-db: " << log.error().message << '\n';
      return verger::tool::kExitFailed;
    }
    verger::tool::ToolContext tool{verger::database_file_system(),
                                   verger::system_clock(),
                                   verger::system_random(),
                                   **log,
                                   std::cout,
                                   std::cerr,
                                   /*json=*/false,
                                   /*terminal=*/isatty(STDERR_FILENO) == 1};
    return verger::tool::run_program(argc, argv, tool);
  } catch (const std::exception& error) {
    std::cerr << "verger-db: " << error.what() << '\n';
    return verger::tool::kExitFailed;
  }
}
