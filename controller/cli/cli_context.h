#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "controller/cli/api_client.h"

namespace verger::cli {

class Table;

/// Whether a secret can be put into the new file `path`, before it is requested; an empty path is
/// good. Errors: kExists, kNotFound (no such directory).
Result<void> check_secret_file(const std::string& path);

/// What every command works with.
struct CliContext {
  ApiClient& api;
  std::ostream& out;
  std::ostream& err;
  bool json = false;
  std::optional<std::size_t> width{};  ///< of the terminal; nullopt: `out` is none

  /// To `out`, as wide as that is.
  void print(const Table& table) const;

  /// Prints the failure and gives its exit code.
  int fail(const CallFailure& failure) const;
  /// Prints an answer that has a token, which is shown this once: the secret alone goes to `out`,
  /// so that it can go straight into a file, and `about` to `err`. Gives the exit code.
  /// With `file`, the secret goes to that new file instead, mode 0600.
  int show_secret(const nlohmann::json& answer, std::string_view about,
                  const std::string& file = {}) const;
};

}  // namespace verger::cli
