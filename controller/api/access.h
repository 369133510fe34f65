#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/api/bootstrap_token.h"
#include "controller/api/role.h"
#include "controller/journal/journal.h"
#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "engine/base/secret.h"
#include "nodeagent/http/message.h"

namespace verger::controller {

/// Types of the events in the streams "token/<id>" and "audit".
namespace events {
inline constexpr std::string_view kTokenCreated =
    "token-created";  ///< {name, role, salt, hash, by, expires_at if it does}
inline constexpr std::string_view kTokenRevoked = "token-revoked";  ///< {by}
/// {by, role, from, method, target, route, reason, plan}: written before anything is done.
inline constexpr std::string_view kAuditRequest = "audit-asked";
inline constexpr std::string_view kAuditOutcome = "audit-answered";  ///< {asked, status}
}  // namespace events

inline constexpr std::string_view kAuditStream = "audit";
/// Of answers that are kept for an Idempotency-Key, each in a stream of its own.
inline constexpr std::string_view kAnswerStreams = "idempotency/";

/// The caller.
struct Principal {
  std::string name;
  ApiRole role = ApiRole::kNobody;
  std::optional<Ticks> expires_at{};  ///< of its token; nullopt: never
};

struct Token {
  std::string id;
  std::string name;
  ApiRole role = ApiRole::kNobody;
  std::string created_by;
  Ticks created_at;
  std::optional<Ticks> expires_at{};  ///< from then on it is refused; nullopt: never
  bool revoked = false;
  SaltedHash kept;  ///< the secret itself is nowhere
};

/// Tokens, roles and the audit trail. One thread; the journal outlives it.
///
/// There is no default secret. Until the first token exists, the holder of the bootstrap token is
/// "bootstrap" and may do all, from any address, and no other caller anything. A token that was
/// prepared (BootstrapToken::first) is the first one, and no bootstrap token is made. Then on a
/// caller without a token may only ask for health. The last admin's token cannot be revoked.
class Access {
 public:
  /// `bootstrap`: null: without a token in the journal all are refused.
  Access(Journal& journal, Random& random, ControllerEpoch epoch, Clock& clock, Log& log,
         BootstrapToken* bootstrap = nullptr)
      : journal_(journal),
        random_(random),
        epoch_(epoch),
        clock_(clock),
        log_(log),
        bootstrap_(bootstrap) {}
  /// Replays the journal, and takes the bootstrap token where that has no token. Call once. Errors:
  /// the journal's, the bootstrap token's.
  Result<void> load();

  /// Errors: kUnauthorized (no token, an unknown or revoked one).
  [[nodiscard]] Result<Principal> authenticate(const http::Request& request) const;

  /// Where a client of this machine finds the bootstrap token, and that this controller knows it.
  struct BootstrapHint {
    std::string file;
    std::string proof;  ///< see kBootstrapNonceHeader; empty where no nonce came
  };
  /// nullopt: there is none, or the caller is not on this machine.
  [[nodiscard]] std::optional<BootstrapHint> bootstrap_hint(const http::Request& request) const;

  struct Created {
    Token token;
    std::string secret;  ///< "verger_<id>_<secret>"; shown once
  };
  /// Names are unique among the tokens that are good. Errors: kInvalidArgument (name, role, a time
  /// that is over; the first one must be an admin's that does not expire), kExists (the name), the
  /// journal's.
  Result<Created> create(std::string name, std::string_view role, std::string by,
                         std::optional<Ticks> expires_at = std::nullopt);
  [[nodiscard]] bool has_expired(const Token& token) const;
  /// Errors: kNotFound, kRefused (the last admin's that does not expire), the journal's.
  Result<void> revoke(std::string_view id, std::string by);
  [[nodiscard]] std::vector<Token> tokens() const;

  /// Before a request that may change something is carried out. Errors: the journal's; then it must
  /// not be.
  Result<Sequence> record_request(const Principal& principal, const http::Request& request,
                                  std::string_view route);
  /// Afterwards. A failure changes nothing: the request is on record.
  void record_outcome(Sequence request, int status);

 private:
  /// The token that `vergerd init` made.
  Result<void> adopt(const FirstToken& first);
  /// Errors: kInvalidArgument.
  static Result<void> check_name(std::string_view name);
  Result<void> append(const std::string& id, Revision folded, std::string_view type,
                      std::string data);
  Result<void> fold(const JournalEvent& event);

  Journal& journal_;
  Random& random_;
  ControllerEpoch epoch_;
  Clock& clock_;
  Log& log_;
  BootstrapToken* bootstrap_;
  std::string bootstrap_secret_;  ///< empty: there is a token, or no bootstrap token
  std::map<std::string, Token, std::less<>> tokens_;
};

}  // namespace verger::controller
