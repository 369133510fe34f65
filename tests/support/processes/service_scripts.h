#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace verger::test {

/// Shell scripts that start and stop a server as a service manager would.
struct ServiceScripts {
  std::filesystem::path start;
  std::filesystem::path stop;
  std::filesystem::path pid;         ///< the file with the id of its process
  std::filesystem::path log;         ///< its output is appended
  std::vector<std::string> command;  ///< of the server
  std::string environment{};         ///< in front of the command: "NAME=VALUE "
};

/// A start does nothing while the process that it started before runs.
void write_service_scripts(const ServiceScripts& scripts);

}  // namespace verger::test
