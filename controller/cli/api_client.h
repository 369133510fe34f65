#pragma once

#include <chrono>
#include <expected>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

/// Where the API is, and how to get there.
struct ApiAccess {
  std::vector<http::Endpoint> controllers;  ///< one; or those of a pair, in the order to try them
  std::string token{};                      ///< empty: none is sent
  std::string reason{};  ///< of what is changed, for the audit; empty: none is given
  std::shared_ptr<http::TlsContext> tls{};  ///< for https; null: that is unavailable
  /// How long to wait while none of several acts, as when one of a pair takes over.
  std::chrono::milliseconds retry_for{std::chrono::seconds(20)};
};

/// The controller's API, one call after the other; blocks.
///
/// Of a pair the acting one gets the requests: tries the addresses in turn, and the one that a
/// standby names, where that is no way around TLS. Later calls begin with the one that answered. A
/// request that was sent and not answered goes out once more only where it does no more then: what
/// reads, and what changes under the same idempotency key.
class ApiClient {
 public:
  /// `notices`: what was done to get an answer, a line each.
  ApiClient(ApiAccess access, std::ostream& notices);
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
  /// The same of a file. It may be a secret: it is in no message.
  std::expected<nlohmann::json, CallFailure> put_file(const std::string& path,
                                                      const std::string& content);
  std::expected<nlohmann::json, CallFailure> patch(const std::string& path,
                                                   const nlohmann::json& body);
  std::expected<nlohmann::json, CallFailure> remove(const std::string& path);
  /// False after a call that no controller that acts answered.
  [[nodiscard]] bool answered() const;
  /// As it was given.
  const std::string& reason() const;
  /// Of the controller that answered last; before that of the first one.
  [[nodiscard]] const http::Endpoint& controller() const;
  /// Between two tries of something that is not there yet.
  void wait(std::chrono::milliseconds duration);

 private:
  struct State;
  struct Call;
  struct Round;
  std::expected<nlohmann::json, CallFailure> call(Call what);
  /// Each controller at most once, until one answers that acts.
  Round ask_in_turn(Call& what);
  Result<http::Response> send(const http::Endpoint& controller, const Call& what,
                              bool one_of_several);
  void say_who_answered(const Round& round);
  static CallFailure why_nobody_answered(const Call& what, Round round);
  std::unique_ptr<State> state_;
};

/// The first line of `path`, a token. Errors: kInvalidArgument. `warnings`: where others can read
/// it.
Result<std::string> token_in_file(const std::string& path, std::ostream& warnings);

/// VERGER_TOKEN, or the first line of the file that VERGER_TOKEN_FILE names; empty where neither is
/// set. Errors: kInvalidArgument. `warnings`: where others can read that file.
Result<std::string> token_of_environment(std::ostream& warnings);

}  // namespace verger::cli
