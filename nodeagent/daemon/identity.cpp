#include "nodeagent/daemon/identity.h"

#include <filesystem>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/clock.h"
#include "engine/base/private_file.h"
#include "nodeagent/api/json_answer.h"
#include "nodeagent/certificates/authority.h"

namespace verger::agent {
namespace {

using api::problem;
using nlohmann::json;

constexpr std::uint64_t kIdentityFileBytes = 64U << 10U;

Result<std::string> text_of(const Path& path) {
  VERGER_TRY(const auto bytes, read_file(posix_file_system(), path, kIdentityFileBytes));
  return std::string(as_text(bytes));
}

net::awaitable<http::Response> answer(http::Response response) { co_return response; }

}  // namespace

IdentityFiles IdentityFiles::in(const Path& state_directory) {
  return {.certificate = state_directory / "identity.pem",
          .authority = state_directory / "authority.pem",
          .draft = state_directory / "identity.draft.pem"};
}

bool IdentityFiles::there() const {
  std::error_code ignored;
  return std::filesystem::exists(certificate, ignored);
}

http::TlsFiles IdentityFiles::tls() const {
  return {.certificate = certificate.string(),
          .private_key = certificate.string(),
          .trusted_roots = authority.string()};
}

http::Handler Identity::with_renewal(http::Handler inner) {
  return [this, inner = std::move(inner)](http::Request request) -> net::awaitable<http::Response> {
    const auto path = std::string_view(request.target).substr(0, request.target.find('?'));
    if (path == "/agent/v1/certificate/request" && request.method == "POST") {
      return answer(make_request());
    }
    if (path == "/agent/v1/certificate" && request.method == "PUT") {
      return answer(install(request));
    }
    return inner(std::move(request));
  };
}

http::Response Identity::make_request() {
  auto made = certificates::make_key_and_request();
  if (!made) {
    return problem(503, "unavailable", made.error().message);
  }
  pending_key_ = std::move(made->key);
  return {.status = 200,
          .headers = {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}},
          .body = json{{"request", made->request}}.dump() + "\n"};
}

http::Response Identity::install(const http::Request& request) {
  const auto body = json::parse(request.body, nullptr, false);
  if (!body.is_object() || !body.value("certificate", json()).is_string()) {
    return problem(400, "bad_request", "the body must be {\"certificate\": PEM}");
  }
  if (pending_key_.empty()) {
    return problem(409, "conflict",
                   "no certificate was requested since this agent started: request one first");
  }
  const auto certificate = body.at("certificate").get<std::string>();
  const auto stored = [&]() -> Result<certificates::Checked> {
    VERGER_TRY(const auto root, text_of(files_.authority));
    VERGER_TRY(const auto before, text_of(files_.certificate));
    VERGER_TRY(const auto own, certificates::check_issued(before, before, root));
    VERGER_TRY(auto checked, certificates::check_issued(certificate, pending_key_, root));
    if (checked.identity != own.identity) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("the certificate is for {}, this agent is {}", checked.identity,
                               own.identity)};
    }
    VERGER_RETURN_IF_ERROR(
        write_private_file(files_.certificate, pending_key_ + certificate, IfThere::kReplace));
    VERGER_RETURN_IF_ERROR(reload_());
    return checked;
  }();
  if (!stored) {
    log_.error("a renewed certificate was not taken", {{"error", stored.error().message}});
    return stored.error().code == Errc::kInvalidArgument
               ? problem(400, "bad_request", stored.error().message)
               : problem(503, "unavailable", stored.error().message);
  }
  pending_key_.clear();
  log_.info("the agent's certificate was renewed",
            {{"serial", stored->serial}, {"valid_until", format_ticks(stored->not_after)}});
  return {.status = 204};
}

}  // namespace verger::agent
