#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace verger::controller {

/// What the operator of this controller configured for operations. Never in a plan, the journal or
/// an answer of the API.
struct OperationSettings {
  /// With CAs that sign requests: NAME.crt, NAME.key, and NAME.password for an encrypted key.
  std::filesystem::path authorities_directory{};
  /// By name, what a plan may let sign requests: program and arguments; the request is its input,
  /// the certificate chain its output.
  std::map<std::string, std::vector<std::string>> signing_commands{};
};

}  // namespace verger::controller
