#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/cli/cert/cert_files.h"
#include "controller/cli/commands.h"
#include "nodeagent/certificates/lint.h"

namespace verger::cli {

struct LintOptions {
  std::string directory{};               ///< one folder per node in it
  std::string roots{};                   ///< of all nodes; empty: DIRECTORY/ca
  std::string current_roots{};           ///< that all nodes trust now
  std::vector<std::string> nodes{};      ///< NAME=URL
  std::vector<std::string> addresses{};  ///< NAME=ADDRESS,...
  std::string version{};
  std::string reserved_common_name{};
  bool no_client_usage = false;
  bool ec_keys = false;
  bool trust_first = false;
  int window_minutes = 10;
  std::string owner{};  ///< user that the servers run as
  PasswordSource key_password{};
};

/// Reads the files, and what nodes show that have a URL. `problems`: what could not be found out.
/// Errors: kInvalidArgument, kNotFound.
Result<certificates::LintInput> gather(const LintOptions& options, Ticks now,
                                       std::vector<std::string>& problems);

/// The report, for people or as JSON.
void print_lint(const LocalContext& context, const certificates::LintReport& report,
                const std::vector<std::string>& problems);

void add_cert_lint(CLI::App& cert, LocalCommand& chosen);

}  // namespace verger::cli
