#include "nodeagent/client/detail/common.h"

namespace verger::client {
namespace {

constexpr std::size_t kQuotedBytes = 200;

CommonFailure failure(Verdict verdict, std::string code, std::string why) {
  return CommonFailure{
      .verdict = verdict, .code = std::move(code), .why = std::move(why), .retry_after = {}};
}

}  // namespace

std::string describe(const http::Response& response) {
  const std::string_view reason =
      response.reason.empty() ? http::standard_reason(response.status) : response.reason;
  if (response.headers.get("Content-Type").value_or("").starts_with("text/html")) {
    return fmt::format("{} {}, with an HTML page: something between here and the node answered",
                       response.status, reason);
  }
  std::string body = response.body.substr(0, kQuotedBytes);
  for (char& c : body) {
    if (static_cast<unsigned char>(c) < ' ') {
      c = ' ';
    }
  }
  return fmt::format("{} {}{}{}{}", response.status, reason, body.empty() ? "" : ": ", body,
                     response.body.size() > kQuotedBytes ? "..." : "");
}

CommonFailure common_failure(const http::Response& response) {
  const auto text = describe(response);
  std::chrono::seconds retry_after{0};
  if (const auto header = response.headers.get("Retry-After"); header.has_value()) {
    int seconds = 0;
    const auto [end, error] =
        std::from_chars(header->data(), header->data() + header->size(), seconds);
    retry_after = std::chrono::seconds(error == std::errc{} && seconds > 0 ? seconds : 5);
  }
  switch (response.status) {
    case 400:
      return failure(Verdict::kRefused, "invalid", "the node refused it: " + text);
    case 401:
      // 20.10 overwrites the 503 of a user store that is not ready; the header stays.
      if (retry_after.count() > 0) {
        auto out = failure(Verdict::kRefused, "not_ready",
                           "the node cannot check credentials yet: " + text);
        out.retry_after = retry_after;
        return out;
      }
      if (response.headers.get("WWW-Authenticate").has_value()) {
        return failure(Verdict::kRefused, "bad_credentials",
                       "the user or the password is wrong, or the user is disabled: " + text);
      }
      return failure(Verdict::kRefused, "lacks_role",
                     "the user lacks the role for this, or no credentials were given: " + text);
    case 403:
      return failure(
          Verdict::kRefused, "lacks_role",
          "a node never answers 403, so something between here and it forbids this: " + text);
    case 404:
    case 405:
      return failure(Verdict::kRefused, "no_such_route",
                     "the node does not have this route (an option like DisableAdminUi removes it, "
                     "or its version lacks it): " +
                         text);
    case 406:
    case 415:
      return failure(Verdict::kRefused, "not_acceptable", text);
    case 307:
    case 308:
      return failure(Verdict::kUnknown, "redirected",
                     fmt::format("the node names another one, which may be gone: {}",
                                 response.headers.get("Location").value_or("(no Location)")));
    case 408:
      return failure(
          Verdict::kUnknown, "late",
          "the node did not answer in time; the request may still be carried out: " + text);
    case 500:
      if (response.reason.contains("timeout")) {
        return failure(Verdict::kUnknown, "write_timeout", "it may have been written: " + text);
      }
      return failure(Verdict::kUnknown, "server_error", "the node failed: " + text);
    case 503: {
      const bool busy = response.reason.contains("Busy");
      auto out = failure(Verdict::kRefused, busy ? "too_busy" : "not_ready",
                         "the node is not ready: " + text);
      out.retry_after = retry_after;
      return out;
    }
    default:
      return failure(Verdict::kUnknown, "unexpected_answer",
                     "this is not the answer that was promised: " + text);
  }
}

bool from_a_route(const http::Response& response) {
  // A page of something between us and the node, such as a proxy.
  if (response.headers.get("Content-Type").value_or("").starts_with("text/html")) {
    return false;
  }
  return response.headers.get("Content-Type").has_value() ||
         response.headers.get("Access-Control-Allow-Methods").has_value();
}

bool is_guid(std::string_view text) {
  if (text.size() != 36) {
    return false;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const char c = text[i];
    const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (dash ? c != '-' : !hex) {
      return false;
    }
  }
  return true;
}

}  // namespace verger::client
