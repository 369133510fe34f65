#pragma once

#include <chrono>
#include <expected>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "engine/base/exit_code.h"
#include "engine/base/result.h"
#include "nodeagent/http/client.h"

namespace verger::http {
class TlsContext;
}  // namespace verger::http

namespace verger::cli {

/// Exit codes of every command (docs/operations/command-line.md).
enum ExitCode : int {
  kDone = kExitDone,
  kFailed = kExitFailed,
  kRefused = kExitRefused,
  kStopped = kExitStopped,
  kStillWaiting = kExitWaiting,
  kUsage = kExitUsage,
};

/// Why a call did not work, ready for stderr.
struct CallFailure {
  int exit_code = kFailed;
  std::string message;
  nlohmann::json problem;  ///< the problem details; null when the controller did not answer
};

/// The controller's API, one call after the other; blocks.
class ApiClient {
 public:
  /// An empty token: none is sent. `tls`: for https; null: that is unavailable.
  explicit ApiClient(http::Endpoint controller, std::string token = {},
                     std::shared_ptr<http::TlsContext> tls = nullptr);
  ~ApiClient();
  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  /// `path` begins after "/api/v1". The answer's JSON; null for an answer without body.
  std::expected<nlohmann::json, CallFailure> get(
      const std::string& path, std::chrono::seconds deadline = std::chrono::seconds(30));
  /// The same for a list: all its pages, as the first one with all items in `member`.
  std::expected<nlohmann::json, CallFailure> get_all(const std::string& path,
                                                     const std::string& member);
  std::expected<nlohmann::json, CallFailure> post(const std::string& path,
                                                  const nlohmann::json& body);
  std::expected<nlohmann::json, CallFailure> put(const std::string& path,
                                                 const nlohmann::json& body);
  std::expected<nlohmann::json, CallFailure> remove(const std::string& path);
  const http::Endpoint& controller() const;
  /// False after a call that the controller did not answer.
  [[nodiscard]] bool answered() const;
  /// Between two tries of something that is not there yet.
  void wait(std::chrono::milliseconds duration);

 private:
  struct State;
  std::expected<nlohmann::json, CallFailure> call(const std::string& method,
                                                  const std::string& path,
                                                  const nlohmann::json* body,
                                                  std::chrono::seconds deadline);
  std::unique_ptr<State> state_;
};

/// VERGER_TOKEN, or the first line of the file that VERGER_TOKEN_FILE names; empty where neither is
/// set. Errors: kInvalidArgument.
Result<std::string> token_of_environment();

/// What every command works with.
struct CliContext {
  ApiClient& api;
  std::ostream& out;
  std::ostream& err;
  bool json = false;

  /// Prints the failure and gives its exit code.
  int fail(const CallFailure& failure) const;
  /// Prints an answer that has a token, which is shown this once: the secret alone goes to `out`,
  /// so that it can go straight into a file, and `about` to `err`. Gives the exit code.
  int show_secret(const nlohmann::json& answer, std::string_view about) const;
};

}  // namespace verger::cli
