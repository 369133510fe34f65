#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/api.h"
#include "controller/api/members.h"
#include "controller/journal/chain.h"
#include "engine/base/digest.h"
#include "engine/base/number_from_text.h"

// /tokens, /audit, and answers kept for Idempotency-Key.
namespace verger::controller {
namespace {

using nlohmann::json;

constexpr std::size_t kVerifiedAtOnce = 200;
constexpr std::string_view kAnswerKept = "answer-kept";  ///< {request, status, type, body}

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

/// Two requests with one key must be the same.
std::string print_of(const http::Request& request) {
  return to_hex(
      sha256(as_bytes(fmt::format("{} {}\n{}", request.method, request.target, request.body))));
}

}  // namespace

http::Response Api::tokens(const http::Request& request, const http::Target& target,
                           const std::string& by) {
  if (request.method == "GET") {
    const auto list = parts_.access.tokens();
    std::vector<std::string> keys;
    keys.reserve(list.size());
    for (const auto& token : list) {
      keys.push_back(token.id);
    }
    return paged_answer("tokens", keys, target, [&](std::size_t i) {
      return view_of(list[i], parts_.access.has_expired(list[i]));
    });
  }
  if (request.method == "DELETE") {
    if (auto revoked = parts_.access.revoke(target.segments[3], by); !revoked) {
      return revoked.error().code == Errc::kRefused
                 ? problem(409, "last_admin", revoked.error().message)
                 : problem_of(revoked.error());
    }
    http::Response response;
    response.status = 204;
    return response;
  }
  const auto body = parse_body(request.body);
  if (!body) {
    return problem_of(body.error());
  }
  Members members(*body);
  const auto name = members.text("name");
  const auto role = members.text("role", "viewer");
  const auto expires = members.text("expires_at");
  members.refuse_others();
  if (members.wrong()) {
    return problem_of(*members.wrong());
  }
  std::optional<Ticks> expires_at;
  if (!expires.empty()) {
    const auto parsed = parse_ticks(expires);
    if (!parsed) {
      return problem_of(parsed.error().within("expires_at"));
    }
    expires_at = *parsed;
  }
  const auto created = parts_.access.create(name, role, by, expires_at);
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

/// In pieces, so that a long journal does not hold up the runs; what is appended meanwhile is
/// walked too.
net::awaitable<http::Response> Api::verify_audit() {
  auto removed = parts_.journal.removed();
  if (!removed) {
    co_return problem_of(removed.error());
  }
  ChainCheck check(*std::move(removed));
  std::string last_hash;
  while (true) {
    const auto events = parts_.journal.read_all(check.at(), kVerifiedAtOnce);
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
        if (auto now = parts_.journal.removed()) {
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

net::awaitable<http::Response> Api::audit(http::Target target) {
  const auto after = number_from_text<std::int64_t>(target.parameter("after").value_or("0"));
  if (!after || *after < 0) {
    co_return problem(400, "bad_request", "after must be a sequence number of the journal");
  }
  const auto wanted = target.parameter("all").value_or("false");
  if (wanted != "true" && wanted != "false") {
    co_return problem(400, "bad_request", "all must be true or false");
  }
  const bool all = wanted == "true";
  auto entries = json::array();
  Sequence looked_at(*after);
  while (entries.size() < 500) {
    const auto events = parts_.journal.read_all(looked_at, 500);
    if (!events) {
      co_return problem_of(events.error());
    }
    if (events->empty()) {
      break;
    }
    looked_at = events->back().sequence;
    for (const auto& event : *events) {
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

std::optional<http::Response> Api::known_answer(const http::Request& request,
                                                const std::string& stream) {
  if (under_way_.contains(stream)) {
    return problem(409, "in_progress", "a request with this Idempotency-Key is being carried out");
  }
  const auto events = parts_.journal.read(stream);
  if (!events) {
    return problem_of(events.error());
  }
  if (events->empty()) {
    return std::nullopt;
  }
  const auto data = json::parse(events->front().data, nullptr, false);
  if (!data.is_object() || data.value("request", std::string()) != print_of(request)) {
    return problem(422, "idempotency_mismatch",
                   "this Idempotency-Key was used for another request; take a new one");
  }
  http::Response out;
  out.status = data.value("status", 500);
  out.headers.set("Content-Type", data.value("type", std::string()));
  out.headers.set("Idempotency-Replayed", "true");
  out.body = data.value("body", std::string());
  return out;
}

void Api::keep_answer(const http::Request& request, std::string_view route,
                      const std::string& stream, const http::Response& response) {
  // What failed here may be tried again; a secret is shown once.
  if (response.status >= 500 || response.stream || route == "createToken" ||
      route == "createAgentToken") {
    return;
  }
  const json data{{"request", print_of(request)},
                  {"status", response.status},
                  {"type", response.headers.get("Content-Type").value_or("")},
                  {"body", response.body}};
  // What an answer holds may not be UTF-8; it must not make the request fail that it answers.
  const auto text = data.dump(-1, ' ', false, json::error_handler_t::replace);
  if (const auto kept = parts_.journal.append(
          stream, Revision(0), {NewEvent{std::string(kAnswerKept), text}}, parts_.epoch);
      !kept) {
    parts_.log.warning("the answer to a request is not kept for its Idempotency-Key",
                       {{"target", request.target}, {"error", kept.error().message}});
  }
}

}  // namespace verger::controller
