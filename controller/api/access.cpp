#include "controller/api/access.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/journal/append_and_fold.h"
#include "engine/base/secret.h"
#include "nodeagent/api/json_view.h"
#include "nodeagent/api/json_writer.h"
#include "nodeagent/http/loopback.h"

namespace verger::controller {
namespace {

using nlohmann::json;

constexpr std::string_view kPrefix = "token/";
constexpr std::string_view kBearer = "Bearer ";
constexpr std::string_view kMark = "verger_";

std::optional<ApiRole> parse_role(std::string_view text) {
  for (const auto role : {ApiRole::kViewer, ApiRole::kOperator, ApiRole::kAdmin}) {
    if (text == to_string(role)) {
      return role;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<void> Access::load() {
  tokens_.clear();
  VERGER_TRY(const auto streams, journal_.streams(kPrefix));
  for (const auto& stream : streams) {
    VERGER_TRY(const auto events, journal_.read(stream));
    for (const auto& event : events) {
      VERGER_RETURN_IF_ERROR(fold(event));
    }
  }
  if (bootstrap_ == nullptr) {
    return {};
  }
  if (tokens_.empty()) {
    VERGER_TRY(const auto first, bootstrap_->first());
    if (first) {
      VERGER_RETURN_IF_ERROR(adopt(*first));
    }
  }
  if (tokens_.empty()) {
    VERGER_TRY(bootstrap_secret_, bootstrap_->take());
  } else {
    bootstrap_->drop();  // of a time before: a crash, or the other one of a pair
  }
  return {};
}

Result<void> Access::fold(const JournalEvent& event) {
  const auto id = event.stream.substr(kPrefix.size());
  const auto data = json::parse(event.data, nullptr, false);
  if (event.type == events::kTokenRevoked) {
    tokens_[id].revoked = true;
    return {};
  }
  const auto role = data.is_object() ? parse_role(data.value("role", std::string())) : std::nullopt;
  if (event.type != events::kTokenCreated || !role) {
    return Error{Errc::kCorruption, fmt::format("{}: unknown event {}", event.stream, event.type)};
  }
  const auto expires = data.value("expires_at", std::string());
  const auto expires_at = parse_ticks(expires);
  if (!expires.empty() && !expires_at) {
    return Error{Errc::kCorruption, fmt::format("{}: expires_at", event.stream)};
  }
  tokens_[id] = Token{.id = id,
                      .name = data.value("name", std::string()),
                      .role = *role,
                      .created_by = data.value("by", std::string()),
                      .created_at = event.at,
                      .expires_at = expires_at ? std::optional(*expires_at) : std::nullopt,
                      .revoked = false,
                      .kept = {.salt = data.value("salt", std::string()),
                               .hash = data.value("hash", std::string())}};
  return {};
}

std::optional<Access::BootstrapHint> Access::bootstrap_hint(const http::Request& request) const {
  if (bootstrap_secret_.empty() || !http::is_loopback(request.peer.address)) {
    return std::nullopt;
  }
  const auto nonce = request.headers.get(kBootstrapNonceHeader);
  const bool proves = nonce && !nonce->empty() && nonce->size() <= kBootstrapNonceLimit;
  return BootstrapHint{.file = bootstrap_->place(),
                       .proof = proves ? hmac_sha256(bootstrap_secret_, *nonce) : std::string()};
}

Result<Principal> Access::authenticate(const http::Request& request) const {
  const auto header = request.headers.get("Authorization");
  if (tokens_.empty()) {
    if (!bootstrap_secret_.empty() && header && header->starts_with(kBearer) &&
        equal_in_constant_time(header->substr(kBearer.size()), bootstrap_secret_)) {
      return Principal{"bootstrap", ApiRole::kAdmin};
    }
    const auto hint = bootstrap_hint(request);
    return Error{Errc::kUnauthorized,
                 fmt::format("no token has been created yet, and until then the bootstrap token "
                             "alone is accepted: as vergerd's user or root on its machine, `verger "
                             "token create NAME --role admin` finds it by itself, in {}",
                             hint ? hint->file : "bootstrap-token of vergerd's data directory")};
  }
  if (!header || !header->starts_with(kBearer)) {
    return Error{
        Errc::kUnauthorized,
        "this controller asks for a token: Authorization: Bearer TOKEN (verger reads "
        "VERGER_TOKEN_FILE or VERGER_TOKEN); an admin makes one with `verger token create`"};
  }
  auto text = header->substr(kBearer.size());
  if (text.starts_with(kMark)) {
    text.remove_prefix(kMark.size());
    const auto end = text.find('_');
    const auto token = tokens_.find(text.substr(0, end));
    if (end != std::string_view::npos && token != tokens_.end() && !token->second.revoked &&
        token->second.kept.matches(text.substr(end + 1))) {
      if (has_expired(token->second)) {
        return Error{Errc::kUnauthorized,
                     fmt::format("the token of {} expired at {}; an admin makes another with "
                                 "`verger token create`",
                                 token->second.name, format_ticks(*token->second.expires_at))};
      }
      return Principal{token->second.name, token->second.role, token->second.expires_at};
    }
  }
  return Error{Errc::kUnauthorized, "the token is not known, or was revoked"};
}

bool Access::has_expired(const Token& token) const {
  return token.expires_at && *token.expires_at <= clock_.now();
}

Result<void> Access::check_name(std::string_view name) {
  const bool good = !name.empty() && name.size() <= 100 && std::ranges::all_of(name, [](char c) {
    return static_cast<unsigned char>(c) > 0x20U && static_cast<unsigned char>(c) < 0x7FU;
  });
  return good ? Result<void>()
              : Error{Errc::kInvalidArgument,
                      "a token's name takes 1 to 100 printable characters without spaces"};
}

Result<void> Access::adopt(const FirstToken& first) {
  VERGER_RETURN_IF_ERROR(check_name(first.name));
  const auto kept = salted_hash(first.secret, random_);
  VERGER_RETURN_IF_ERROR(append(first.id, Revision(0), events::kTokenCreated,
                                json{{"name", first.name},
                                     {"role", to_string(ApiRole::kAdmin)},
                                     {"salt", kept.salt},
                                     {"hash", kept.hash},
                                     {"by", "vergerd init"}}
                                    .dump()));
  log_.info("the token that `vergerd init` made is the first one", {{"name", first.name}});
  return {};
}

Result<Access::Created> Access::create(std::string name, std::string_view role, std::string by,
                                       std::optional<Ticks> expires_at) {
  const auto parsed = parse_role(role);
  if (!parsed) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("role \"{}\" is not known; it takes viewer, operator, admin", role)};
  }
  VERGER_RETURN_IF_ERROR(check_name(name));
  if (tokens_.empty() && (*parsed != ApiRole::kAdmin || expires_at)) {
    return Error{Errc::kInvalidArgument,
                 "the first token must be an admin's that does not expire: from then on nothing "
                 "gets in without one"};
  }
  if (expires_at && *expires_at <= clock_.now()) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("expires_at {} is over", format_ticks(*expires_at))};
  }
  for (const auto& [id, token] : tokens_) {
    if (token.name == name && !token.revoked && !has_expired(token)) {
      return Error{Errc::kExists,
                   fmt::format("there is a token {} already ({}); the audit would not tell them "
                               "apart: take another name, or revoke it first",
                               name, id)};
    }
  }
  const auto made = make_secret(random_);
  json data{{"name", name},
            {"role", to_string(*parsed)},
            {"salt", made.kept.salt},
            {"hash", made.kept.hash},
            {"by", std::move(by)}};
  if (expires_at) {
    data["expires_at"] = format_ticks(*expires_at);
  }
  VERGER_RETURN_IF_ERROR(append(made.id, Revision(0), events::kTokenCreated, data.dump()));
  if (!bootstrap_secret_.empty()) {
    bootstrap_secret_.clear();
    bootstrap_->drop();
  }
  return Created{tokens_.at(made.id), fmt::format("{}{}_{}", kMark, made.id, made.secret)};
}

Result<void> Access::append(const std::string& id, Revision folded, std::string_view type,
                            std::string data) {
  return append_and_fold(journal_, fmt::format("{}{}", kPrefix, id), epoch_, folded,
                         {NewEvent{std::string(type), std::move(data)}},
                         [this](const auto& event) { return fold(event); });
}

Result<void> Access::revoke(std::string_view id, std::string by) {
  const auto found = tokens_.find(id);
  if (found == tokens_.end() || found->second.revoked) {
    return Error{Errc::kNotFound, fmt::format("there is no token {}; see `verger token list`", id)};
  }
  const auto keeps = [](const Token& token) {
    return !token.revoked && token.role == ApiRole::kAdmin && !token.expires_at;
  };
  const auto admins =
      std::ranges::count_if(tokens_, [&](const auto& each) { return keeps(each.second); });
  if (keeps(found->second) && admins == 1) {
    return Error{
        Errc::kRefused,
        "it is the last admin's token that does not expire: no token could create another; "
        "create one first"};
  }
  return append(found->first, Revision(1), events::kTokenRevoked,
                json{{"by", std::move(by)}}.dump());
}

std::vector<Token> Access::tokens() const {
  std::vector<Token> out;
  out.reserve(tokens_.size());
  for (const auto& [id, token] : tokens_) {
    out.push_back(token);
  }
  return out;
}

Result<Sequence> Access::record_request(const Principal& principal, const http::Request& request,
                                        std::string_view route) {
  const auto body = api::JsonDocument::parse(request.body, "body");
  const auto reason = body ? body->root().find("reason") : std::nullopt;
  const auto target = http::parse_target(request.target);
  auto why = reason && reason->is_string() ? reason->string() : std::string();
  if (const auto given = request.headers.get("Verger-Reason"); given && why.empty()) {
    why = http::percent_decode(*given).value_or(std::string(*given));
  }
  const bool is_of_plan = target && target->segments.size() == 5 && target->segments[2] == "plans";
  auto data = api::JsonWriter()
                  .begin_object()
                  .member("by", principal.name)
                  .member("from", request.peer.address)
                  .member("method", request.method)
                  .member("plan", is_of_plan ? target->segments[3] : std::string())
                  .member("reason", why)
                  .member("role", to_string(principal.role))
                  .member("route", route)
                  .member("target", target ? target->path : std::string())
                  .end_object()
                  .take();
  VERGER_TRY(
      const auto written,
      journal_.append(kAuditStream, kAnyRevision,
                      {NewEvent{std::string(events::kAuditRequest), std::move(data)}}, epoch_));
  return written.back().sequence;
}

void Access::record_outcome(Sequence request, int status) {
  auto data = api::JsonWriter()
                  .begin_object()
                  .member("asked", request.value())
                  .member("status", status)
                  .end_object()
                  .take();
  if (const auto noted =
          journal_.append(kAuditStream, kAnyRevision,
                          {NewEvent{std::string(events::kAuditOutcome), std::move(data)}}, epoch_);
      !noted) {
    log_.warning("the outcome of a request was not recorded in the audit trail",
                 {{"audit", std::to_string(request.value())},
                  {"status", std::to_string(status)},
                  {"error", noted.error().message}});
  }
}

}  // namespace verger::controller
