#include "nodeagent/daemon/controller_guard.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/private_file.h"
#include "nodeagent/api/json_answer.h"
#include "nodeagent/http/request_signature.h"

namespace verger::agent {
namespace {

constexpr std::uint64_t kTokenFileBytes = 4096;
constexpr std::size_t kLeastTokenLength = 20;

net::awaitable<http::Response> refuse(http::Response response) { co_return response; }

net::awaitable<http::Response> answer_signed(std::shared_ptr<http::SignatureCheck> signatures,
                                             std::string token, http::Handler inner, Log* log,
                                             http::Request request) {
  const std::string authorization(request.headers.get("Authorization").value_or(""));
  http::Response answer;
  if (const auto checked = signatures->check(request); !checked) {
    log->warning("a request was refused: not the controller's",
                 {{"peer", request.peer.address}, {"why", checked.error().message}});
    auto why = checked.error().message;
    if (checked.error().code == Errc::kUnauthorized) {
      why +=
          "; vergerd's --agents-token-file and the agent's --controller-token-file have to hold "
          "the same token";
    }
    answer = api::problem(401, "unauthorized", why);
  } else {
    answer = co_await inner(std::move(request));
  }
  http::sign_answer(answer, authorization, token);
  co_return answer;
}

}  // namespace

http::Handler only_the_controller_named(std::string name, http::Handler inner, Log& log) {
  return [name = std::move(name), inner = std::move(inner),
          &log](http::Request request) -> net::awaitable<http::Response> {
    const auto& peer = request.peer;
    if (peer.certificate_common_name != std::optional(name) &&
        std::ranges::find(peer.certificate_names, name) == peer.certificate_names.end()) {
      const auto shown = peer.certificate_common_name.value_or("none");
      log.warning("a request was refused: not the controller's certificate",
                  {{"peer", peer.address}, {"common_name", shown}, {"expected", name}});
      return refuse(api::problem(
          403, "wrong_peer",
          fmt::format("this agent answers its controller alone: a certificate with the name {} is "
                      "expected, the one shown has {}",
                      name, shown)));
    }
    return inner(std::move(request));
  };
}

http::Handler only_with_the_token(std::string token, http::Handler inner, Clock& clock, Log& log) {
  return [signatures = std::make_shared<http::SignatureCheck>(token, clock), token,
          inner = std::move(inner), &log](http::Request request) {
    return answer_signed(signatures, token, inner, &log, std::move(request));
  };
}

Result<std::string> read_controller_token(const Path& file) {
  const auto named = [&](Error error, std::string_view advice) {
    error = error.within("--controller-token-file");
    error.message += advice;
    return error;
  };
  if (auto checked = check_private_file(file); !checked) {
    return named(checked.error(), checked.error().code == Errc::kNotFound
                                      ? "; vergerd makes it at its first start, as agents-token in "
                                        "its data directory: start that first, or copy the file"
                                      : "");
  }
  const auto bytes = read_file(posix_file_system(), file, kTokenFileBytes);
  if (!bytes) {
    return named(bytes.error(), "");
  }
  const auto text = as_text(*bytes);
  std::string token(text.substr(0, text.find_first_of("\r\n")));
  if (token.size() < kLeastTokenLength) {
    return named(Error{Errc::kInvalidArgument,
                       fmt::format("{}: its first line has to be a token of {} characters or more",
                                   file.string(), kLeastTokenLength)},
                 "");
  }
  return token;
}

}  // namespace verger::agent
