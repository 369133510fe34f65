#include <exception>
#include <iostream>

#include "engine/base/database_files.h"
#include "engine/base/exit_code.h"
#include "engine/logging/spdlog_log.h"
#include "nodeagent/redaction/redact_program.h"

int main(int argc, char** argv) {
  try {
    verger::LogOptions options;
    options.level = verger::LogLevel::kWarning;
    auto log = verger::make_log("verger-redact", options);
    if (!log) {
      std::cerr << "verger-redact: " << log.error().message << '\n';
      return verger::kExitFailed;
    }
    return verger::online::run_redact_program(argc, argv,
                                              {.files = verger::database_file_system(),
                                               .random = verger::system_random(),
                                               .log = **log,
                                               .out = std::cout,
                                               .err = std::cerr});
  } catch (const std::exception& error) {
    std::cerr << "verger-redact: " << error.what() << '\n';
    return verger::kExitFailed;
  }
}
