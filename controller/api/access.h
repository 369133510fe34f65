#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/api/routes.h"
#include "controller/journal/journal.h"
#include "engine/base/random.h"
#include "engine/base/secret.h"
#include "nodeagent/http/message.h"

namespace verger::controller {

/// Types of the events in the streams "token/<id>" and "audit".
namespace events {
inline constexpr std::string_view kTokenCreated =
    "token-created";  ///< {name, role, salt, hash, by}
inline constexpr std::string_view kTokenRevoked = "token-revoked";  ///< {by}
/// {by, role, from, method, target, route, reason, plan}: written before anything is done.
inline constexpr std::string_view kAuditAsked = "audit-asked";
inline constexpr std::string_view kAuditAnswered = "audit-answered";  ///< {asked, status}
}  // namespace events

inline constexpr std::string_view kAuditStream = "audit";
/// Of answers that are kept for an Idempotency-Key, each in a stream of its own.
inline constexpr std::string_view kAnswerStreams = "idempotency/";

/// Who asks.
struct Principal {
  std::string name;
  ApiRole role = ApiRole::kNobody;
};

struct Token {
  std::string id;
  std::string name;
  ApiRole role = ApiRole::kNobody;
  std::string created_by;
  Ticks created_at;
  bool revoked = false;
  SaltedHash kept;  ///< the secret itself is nowhere
};

/// Tokens, roles and the audit trail. One thread; the journal outlives it.
///
/// There is no default secret. Until the first token is created, whoever asks from a loopback
/// address is "local" and may do all, and nobody else anything; from then on nobody without a token
/// may do anything but ask for health. The last admin's token cannot be revoked.
class Access {
 public:
  Access(Journal& journal, Random& random, ControllerEpoch epoch, Log& log)
      : journal_(journal), random_(random), epoch_(epoch), log_(log) {}
  /// Replays the journal. Call once.
  Result<void> load();

  /// Errors: kUnauthorized (no token, an unknown or revoked one).
  [[nodiscard]] Result<Principal> who(const http::Request& request) const;

  struct Created {
    Token token;
    std::string secret;  ///< "verger_<id>_<secret>"; shown once
  };
  /// Errors: kInvalidArgument (name, role; the first one must be an admin's), the journal's.
  Result<Created> create(std::string name, std::string_view role, std::string by);
  /// Errors: kNotFound, kRefused (the last admin's), the journal's.
  Result<void> revoke(std::string_view id, std::string by);
  [[nodiscard]] std::vector<Token> tokens() const;

  /// Before a request that may change something is carried out. Errors: the journal's; then it must
  /// not be.
  Result<Sequence> asked(const Principal& principal, const http::Request& request,
                         std::string_view route);
  /// Afterwards. A failure changes nothing: what was asked is on record.
  void answered(Sequence asked, int status);

 private:
  Result<void> append(const std::string& id, Revision folded, std::string_view type,
                      std::string data);
  Result<void> fold(const JournalEvent& event);

  Journal& journal_;
  Random& random_;
  ControllerEpoch epoch_;
  Log& log_;
  std::map<std::string, Token, std::less<>> tokens_;
};

}  // namespace verger::controller
