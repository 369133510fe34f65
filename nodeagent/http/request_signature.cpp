#include "nodeagent/http/request_signature.h"

#include <cstdlib>
#include <fmt/format.h>
#include <optional>

#include "engine/base/digest.h"
#include "engine/base/number_from_text.h"
#include "engine/base/secret.h"

namespace verger::http {
namespace {

constexpr std::string_view kSigned = "Verger-Signature ";
constexpr std::string_view kBearer = "Bearer ";
constexpr std::string_view kAnswerHeader = "Verger-Signature";
constexpr std::int64_t kValidityMs =
    std::chrono::duration_cast<std::chrono::milliseconds>(kSignatureValidity).count();

std::int64_t unix_milliseconds(Ticks at) {
  return (at.value() - kUnixEpoch.value()) / (kTicksPerSecond / 1000);
}

/// "127.0.0.1:2114", as a client writes it into Host.
std::string authority_of(const Endpoint& to) {
  const auto url = to.url();
  return url.substr(url.find("://") + 3);
}

std::string request_mac(const Request& request, std::string_view authority, std::int64_t at,
                        std::string_view nonce, std::string_view secret) {
  return hmac_sha256(secret,
                     fmt::format("{}\n{}\n{}\n{}\n{}\n{}", at, nonce, authority, request.method,
                                 request.target, to_hex(sha256(as_bytes(request.body)))));
}

/// A request's lines begin with a number, so that neither passes for the other.
std::string answer_mac(const Response& answer, std::string_view authorization,
                       std::string_view secret) {
  return hmac_sha256(secret, fmt::format("answer\n{}\n{}\n{}", authorization, answer.status,
                                         to_hex(sha256(as_bytes(answer.body)))));
}

bool only_reads(const Request& request) {
  return request.method == "GET" || request.method == "HEAD";
}

/// The three words of a signature.
struct Signature {
  std::int64_t at = 0;
  std::string_view nonce{};
  std::string_view mac{};
};

std::optional<Signature> signature_from(std::string_view words) {
  const auto first = words.find(' ');
  const auto second = first == std::string_view::npos ? first : words.find(' ', first + 1);
  if (second == std::string_view::npos) {
    return std::nullopt;
  }
  const auto at = number_from_text<std::int64_t>(words.substr(0, first));
  if (!at) {
    return std::nullopt;
  }
  return Signature{.at = *at,
                   .nonce = words.substr(first + 1, second - first - 1),
                   .mac = words.substr(second + 1)};
}

Error not_ours(std::string why) { return {Errc::kUnauthorized, std::move(why)}; }
Error not_now(std::string why) { return {Errc::kRefused, std::move(why)}; }

}  // namespace

void sign_request(Request& request, const Endpoint& to, std::string_view secret, Ticks now,
                  Random& random) {
  const auto at = unix_milliseconds(now);
  const auto nonce = fmt::format("{:016x}{:016x}", random.next(), random.next());
  request.headers.set("Authorization",
                      fmt::format("{}{} {} {}", kSigned, at, nonce,
                                  request_mac(request, authority_of(to), at, nonce, secret)));
}

SignatureCheck::SignatureCheck(std::string secret, Clock& clock)
    : secret_(std::move(secret)),
      clock_(clock),
      made_at_(unix_milliseconds(clock.now())),
      made_(clock.monotonic()) {}

Result<void> SignatureCheck::check(const Request& request) {
  const auto header = request.headers.get("Authorization").value_or("");
  if (header.starts_with(kBearer)) {
    if (equal_in_constant_time(header.substr(kBearer.size()), secret_)) {
      return {};
    }
    return not_ours("the token is not the one in the agent's controller token file");
  }
  if (!header.starts_with(kSigned)) {
    return not_ours("the request is not signed with the controller token");
  }
  const auto shown = signature_from(header.substr(kSigned.size()));
  if (!shown || !equal_in_constant_time(
                    shown->mac, request_mac(request, request.headers.get("Host").value_or(""),
                                            shown->at, shown->nonce, secret_))) {
    return not_ours(
        "the signature is not made with the token in the agent's controller token file");
  }
  const auto now = unix_milliseconds(clock_.now());
  if (shown->at < now - kValidityMs || shown->at > now + kValidityMs) {
    return not_now(
        fmt::format("the signature is {} seconds off this machine's clock; at most {} "
                    "are accepted",
                    std::abs(now - shown->at) / 1000, kSignatureValidity.count()));
  }
  // Later a signature from before is too old, or the clock was set back.
  if (shown->at <= made_at_ && clock_.monotonic() - made_ < kSignatureValidity) {
    return not_now("the signature was made before this agent started");
  }
  if (!only_reads(request)) {
    while (!used_.empty() && used_.begin()->first < now - kValidityMs) {
      used_.erase(used_.begin());
    }
    if (!used_[shown->at].emplace(shown->mac).second) {
      return not_now("this very request came before");
    }
  }
  return {};
}

void sign_answer(Response& answer, std::string_view authorization, std::string_view secret) {
  if (authorization.starts_with(kSigned)) {
    answer.headers.set(kAnswerHeader, answer_mac(answer, authorization, secret));
  }
}

net::awaitable<Result<Response>> SigningClient::send(Endpoint to, Request request,
                                                     std::chrono::milliseconds deadline) {
  if (to.tls) {
    co_return co_await inner_.send(std::move(to), std::move(request), deadline);
  }
  sign_request(request, to, secret_, clock_.now(), random_);
  const std::string authorization(*request.headers.get("Authorization"));
  const auto what = fmt::format("{} {}{}", request.method, to.url(),
                                request.target.substr(0, request.target.find('?')));
  const bool read = only_reads(request);
  // This object may be gone when the answer is there.
  const auto secret = secret_;
  VERGER_CO_TRY(auto answer, co_await inner_.send(std::move(to), std::move(request), deadline));
  const auto shown = answer.headers.get(kAnswerHeader).value_or("");
  if (!equal_in_constant_time(shown, answer_mac(answer, authorization, secret))) {
    co_return Error{
        Errc::kUnknownOutcome,
        fmt::format("{}: the answer ({}) is not signed with the agents' token, so it does not count"
                    "{}: it is not the agent that answers, or vergerd's --agents-token-file and "
                    "the agent's --controller-token-file do not hold the same token, or the two "
                    "programs are of different versions",
                    what, answer.status, read ? "" : "; the request may have been carried out")};
  }
  co_return answer;
}

}  // namespace verger::http
