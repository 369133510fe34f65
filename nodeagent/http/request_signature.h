#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "engine/base/clock.h"
#include "engine/base/result.h"
#include "nodeagent/http/client.h"
#include "nodeagent/http/message.h"

namespace verger::http {

/// How old or how new a signature may be. Both ends are on one machine, so it need not allow for
/// clocks that differ.
inline constexpr std::chrono::seconds kSignatureValidity{60};

/// Signs a request with a secret that both ends have, for plain HTTP between processes of one
/// machine: a process in the receiver's place learns nothing that another receiver accepts.
/// Sets `Authorization: Verger-Signature TIME MAC`, where TIME is in seconds since 1970 and MAC is
/// hmac_sha256(secret, TIME, host and port of `to`, method, target, SHA-256 of the body, a line
/// each).
void sign_request(Request& request, const Endpoint& to, std::string_view secret, Ticks now);

/// Also accepts `Authorization: Bearer SECRET`, for a person with curl, who knows the receiver.
/// kUnauthorized, with what is missing: no signature, one with another secret or for another
/// request, or an old one. The request must have arrived whole, with its Host.
Result<void> check_signature(const Request& request, std::string_view secret, Ticks now);

/// Signs what goes to plain HTTP endpoints; https proves the sender by its certificate.
class SigningClient final : public Client {
 public:
  /// `inner` and `clock` outlive it.
  SigningClient(Client& inner, std::string secret, Clock& clock)
      : inner_(inner), secret_(std::move(secret)), clock_(clock) {}
  net::awaitable<Result<Response>> send(Endpoint to, Request request,
                                        std::chrono::milliseconds deadline) override;

 private:
  Client& inner_;
  std::string secret_;
  Clock& clock_;
};

}  // namespace verger::http
