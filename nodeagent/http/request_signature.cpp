#include "nodeagent/http/request_signature.h"

#include <cstdlib>
#include <fmt/format.h>

#include "engine/base/digest.h"
#include "engine/base/number_from_text.h"
#include "engine/base/secret.h"

namespace verger::http {
namespace {

constexpr std::string_view kSigned = "Verger-Signature ";
constexpr std::string_view kBearer = "Bearer ";

std::int64_t unix_seconds(Ticks at) { return (at.value() - kUnixEpoch.value()) / kTicksPerSecond; }

/// "127.0.0.1:2114", as a client writes it into Host.
std::string authority_of(const Endpoint& to) {
  const auto url = to.url();
  return url.substr(url.find("://") + 3);
}

std::string mac_of(const Request& request, std::string_view authority, std::int64_t at,
                   std::string_view secret) {
  return hmac_sha256(secret, fmt::format("{}\n{}\n{}\n{}\n{}", at, authority, request.method,
                                         request.target, to_hex(sha256(as_bytes(request.body)))));
}

Error refused(std::string why) { return {Errc::kUnauthorized, std::move(why)}; }

}  // namespace

void sign_request(Request& request, const Endpoint& to, std::string_view secret, Ticks now) {
  const auto at = unix_seconds(now);
  request.headers.set("Authorization", fmt::format("{}{} {}", kSigned, at,
                                                   mac_of(request, authority_of(to), at, secret)));
}

Result<void> check_signature(const Request& request, std::string_view secret, Ticks now) {
  const auto header = request.headers.get("Authorization").value_or("");
  if (header.starts_with(kBearer)) {
    if (equal_in_constant_time(header.substr(kBearer.size()), secret)) {
      return {};
    }
    return refused("the token is not the one in the agent's controller token file");
  }
  if (!header.starts_with(kSigned)) {
    return refused("the request is not signed with the controller token");
  }
  const auto words = header.substr(kSigned.size());
  const auto space = words.find(' ');
  const auto at = number_from_text<std::int64_t>(words.substr(0, space));
  if (!at || space == std::string_view::npos ||
      !equal_in_constant_time(
          words.substr(space + 1),
          mac_of(request, request.headers.get("Host").value_or(""), *at, secret))) {
    return refused("the signature is not made with the token in the agent's controller token file");
  }
  const auto now_seconds = unix_seconds(now);
  if (*at < now_seconds - kSignatureValidity.count() ||
      *at > now_seconds + kSignatureValidity.count()) {
    return refused(
        fmt::format("the signature is {} seconds off this machine's clock; at most {} "
                    "are accepted",
                    std::abs(now_seconds - *at), kSignatureValidity.count()));
  }
  return {};
}

net::awaitable<Result<Response>> SigningClient::send(Endpoint to, Request request,
                                                     std::chrono::milliseconds deadline) {
  if (!to.tls) {
    sign_request(request, to, secret_, clock_.now());
  }
  co_return co_await inner_.send(std::move(to), std::move(request), deadline);
}

}  // namespace verger::http
