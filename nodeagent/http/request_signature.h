#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "engine/base/result.h"
#include "nodeagent/http/client.h"
#include "nodeagent/http/message.h"

namespace verger::http {

/// How old or how new a signature may be. Both ends are on one machine, so it need not allow for
/// clocks that differ.
inline constexpr std::chrono::seconds kSignatureValidity{60};

/// Signs a request with a secret that both ends have, for plain HTTP between processes of one
/// machine: a process in the receiver's place learns nothing that another receiver accepts.
/// Sets `Authorization: Verger-Signature TIME NONCE MAC`: TIME in milliseconds since 1970, NONCE
/// a random number in hexadecimal, MAC = hmac_sha256(secret, TIME, NONCE, host and port of `to`,
/// method, target, SHA-256 of the body, a line each).
void sign_request(Request& request, const Endpoint& to, std::string_view secret, Ticks now,
                  Random& random);

/// Accepts signed requests, on the side that receives them. One executor.
class SignatureCheck {
 public:
  /// `clock` outlives it.
  SignatureCheck(std::string secret, Clock& clock);

  /// Also accepts `Authorization: Bearer SECRET`, for a person with curl, who knows the receiver.
  /// A command counts once: what an attacker records on the way, or in place of the receiver, does
  /// nothing when it is sent again. Reads may come again, as clients repeat them on a new
  /// connection. kUnauthorized: no signature, or one with another secret or for another request.
  /// kRefused: an old one, one from before this object was made, or a command's second one. The
  /// request must have arrived whole, with its Host.
  Result<void> check(const Request& request);

 private:
  std::string secret_;
  Clock& clock_;
  std::int64_t made_at_;  ///< milliseconds since 1970
  Monotonic made_;
  std::map<std::int64_t, std::set<std::string>> used_;  ///< MACs of commands, by their TIME
};

/// Signs the answer to a signed request: `Verger-Signature: MAC`, where MAC is hmac_sha256(secret,
/// "answer", the request's Authorization, status, SHA-256 of the body, a line each). So a process
/// that listens in place of the receiver cannot say what it did, nor give an old answer to a new
/// request.
void sign_answer(Response& answer, std::string_view authorization, std::string_view secret);

/// Signs what goes to plain HTTP endpoints, and takes no answer that is not signed for that
/// request: kUnknownOutcome. https proves both ends by their certificates.
class SigningClient final : public Client {
 public:
  /// All but `secret` outlive it.
  SigningClient(Client& inner, std::string secret, Clock& clock, Random& random)
      : inner_(inner), secret_(std::move(secret)), clock_(clock), random_(random) {}
  net::awaitable<Result<Response>> send(Endpoint to, Request request,
                                        std::chrono::milliseconds deadline) override;

 private:
  Client& inner_;
  std::string secret_;
  Clock& clock_;
  Random& random_;
};

}  // namespace verger::http
