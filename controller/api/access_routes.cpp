#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/api_parts.h"
#include "controller/api/members.h"
#include "controller/api/routes.h"
#include "controller/journal/chain.h"
#include "engine/base/number_from_text.h"

// /tokens, /whoami and /audit.
namespace verger::controller {
namespace {

using nlohmann::json;

constexpr std::size_t kVerifiedAtOnce = 200;

json view_of(const Token& token, bool expired) {
  return {{"id", token.id},
          {"name", token.name},
          {"role", to_string(token.role)},
          {"created_by", token.created_by},
          {"created_at", format_ticks(token.created_at)},
          {"expires_at", token.expires_at ? json(format_ticks(*token.expires_at)) : json()},
          {"expired", expired},
          {"revoked", token.revoked}};
}

/// Removes secrets and, unless everything is wanted, what is large.
void leave_out(json& data, std::string_view stream, bool all) {
  if (stream.starts_with("token/") || stream.starts_with("agent/") || !all) {
    data.erase("salt");
    data.erase("hash");
  }
  if (stream.starts_with("idempotency/")) {
    data.erase("body");
  }
  if (!all) {
    data.erase("plan");
    data.erase("yaml");
  }
}

http::Response list_tokens(const ApiParts& parts, const Call& call) {
  const auto list = parts.access.tokens();
  std::vector<std::string> keys;
  keys.reserve(list.size());
  for (const auto& token : list) {
    keys.push_back(token.id);
  }
  return paged_answer("tokens", keys, call.target, [&](std::size_t i) {
    return view_of(list[i], parts.access.has_expired(list[i]));
  });
}

Result<http::Response> create_token(const ApiParts& parts, const Call& call) {
  VERGER_TRY(const auto body, parse_body(call.body()));
  Members members(body);
  const auto name = members.text("name");
  const auto role = members.text("role", "viewer");
  const auto expires = members.text("expires_at");
  VERGER_RETURN_IF_ERROR(members.finish());
  std::optional<Ticks> expires_at;
  if (!expires.empty()) {
    const auto parsed = parse_ticks(expires);
    if (!parsed) {
      return problem_of(parsed.error().within("expires_at"));
    }
    expires_at = *parsed;
  }
  const auto created = parts.access.create(name, role, call.by(), expires_at);
  if (!created) {
    return created.error().code == Errc::kExists
               ? problem(409, "token_exists", created.error().message)
               : problem_of(created.error());
  }
  auto out = view_of(created->token, false);
  out["token"] = created->secret;
  auto answer = json_answer(201, out);
  answer.headers.set("Cache-Control", "no-store");
  return answer;
}

http::Response who_am_i(const ApiParts& /*parts*/, const Call& call) {
  const auto& expires = call.caller.expires_at;
  return json_answer(200, {{"name", call.by()},
                           {"role", to_string(call.caller.role)},
                           {"expires_at", expires ? json(format_ticks(*expires)) : json()}});
}

http::Response revoke_token(const ApiParts& parts, const Call& call) {
  if (const auto revoked = parts.access.revoke(call.named("id"), call.by()); !revoked) {
    return revoked.error().code == Errc::kRefused
               ? problem(409, "last_admin", revoked.error().message)
               : problem_of(revoked.error());
  }
  return no_content();
}

/// In pieces, so that a long journal does not hold up the runs; what is appended meanwhile is
/// walked too.
net::awaitable<http::Response> verify_audit(const ApiParts& parts, Call /*call*/) {
  auto removed = parts.journal.removed();
  if (!removed) {
    co_return problem_of(removed.error());
  }
  ChainCheck check(*std::move(removed));
  std::string last_hash;
  while (true) {
    const auto events = parts.journal.read_all(check.at(), kVerifiedAtOnce);
    if (!events) {
      co_return problem_of(events.error());
    }
    if (events->empty()) {
      if (const auto ended = check.end(); !ended) {
        co_return problem(409, "audit_broken", ended.error().message);
      }
      co_return json_answer(200, {{"verified", check.at().value()},
                                  {"removed", check.missing()},
                                  {"last_hash", last_hash}});
    }
    for (const auto& event : *events) {
      auto checked = check.next(event);
      if (!checked) {
        // Some of what was to come may have been removed since.
        if (auto now = parts.journal.removed()) {
          check.know(*std::move(now));
          checked = check.next(event);
        }
      }
      if (!checked) {
        co_return problem(409, "audit_broken", checked.error().message);
      }
    }
    last_hash = events->back().hash;
    co_await net::post(co_await net::this_coro::executor, net::use_awaitable);
  }
}

net::awaitable<Result<http::Response>> get_audit(const ApiParts& parts, Call call) {
  const auto after = number_from_text<std::int64_t>(call.target.parameter("after").value_or("0"));
  if (!after || *after < 0) {
    co_return problem(400, "bad_request", "after must be a sequence number of the journal");
  }
  const auto wanted = call.target.parameter("all").value_or("false");
  if (wanted != "true" && wanted != "false") {
    co_return problem(400, "bad_request", "all must be true or false");
  }
  const bool all = wanted == "true";
  auto entries = json::array();
  Sequence looked_at(*after);
  while (entries.size() < 500) {
    VERGER_CO_TRY(const auto events, parts.journal.read_all(looked_at, 500));
    if (events.empty()) {
      break;
    }
    looked_at = events.back().sequence;
    for (const auto& event : events) {
      if (!all && event.stream != "audit" && !event.data.contains("\"by\"")) {
        continue;  // most are: a run's
      }
      auto data = json::parse(event.data, nullptr, false);
      const bool by_somebody = data.is_object() && data.contains("by");
      if (!all && event.stream != "audit" && !by_somebody) {
        continue;
      }
      if (data.is_object() && event.stream != "audit") {
        leave_out(data, event.stream, all);
      }
      entries.push_back({{"sequence", event.sequence.value()},
                         {"time", format_ticks(event.at)},
                         {"stream", event.stream},
                         {"type", event.type},
                         {"hash", event.hash},
                         {"data", std::move(data)}});
    }
    // A long journal is no reason to let others wait.
    co_await net::post(co_await net::this_coro::executor, net::use_awaitable);
  }
  co_return json_answer(200, {{"entries", std::move(entries)}, {"next", looked_at.value()}});
}

}  // namespace

std::span<const Route> access_routes() {
  using enum ApiRole;
  static constexpr Route kRoutes[] = {
      {"GET", "/audit", kAdmin, "getAudit", "Who asked for what, from where, and why", 200, "",
       "Audit", "after all", get_audit},
      {"GET", "/audit/verify", kAdmin, "verifyAudit", "Walk the journal's hash chain", 200, "",
       "AuditVerified", "", verify_audit},
      {"GET", "/whoami", kViewer, "whoAmI", "The caller's name and role", 200, "", "Caller", "",
       who_am_i},
      {"GET", "/tokens", kAdmin, "listTokens", "Tokens, without their secrets", 200, "", "Tokens",
       "limit cursor", list_tokens},
      {"POST", "/tokens", kAdmin, "createToken", "A new token; its secret is shown once", 201,
       "NewToken", "TokenSecret", "", create_token, OnRecord::kAudited},
      {"DELETE", "/tokens/{id}", kAdmin, "revokeToken", "Revoke a token", 204, "", "", "",
       revoke_token},
  };
  return kRoutes;
}

}  // namespace verger::controller
