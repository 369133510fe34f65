#include "controller/web/dashboard.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/web/assets.h"
#include "nodeagent/api/json_answer.h"
#include "nodeagent/http/compress.h"

namespace verger::controller::web {
namespace {

using api::json_answer;
using api::problem;
using nlohmann::json;

constexpr std::string_view kRoot = "/ui/";
constexpr std::string_view kSessionPath = "/ui/session";
constexpr std::string_view kApiRoot = "/api/v1/";
constexpr std::string_view kStartPage = "index.html";
constexpr std::size_t kLongestToken = 512;

/// What the pages may do: load and call what this host serves. Scripts cannot make markup of text
/// (trusted types), and no other page can frame these.
constexpr std::string_view kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";
/// Of answers that are no pages.
constexpr std::string_view kDataPolicy = "default-src 'none'; frame-ancestors 'none'";

std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

void protect(http::Response& response, std::string_view policy) {
  response.headers.set("Content-Security-Policy", std::string(policy));
  response.headers.set("X-Content-Type-Options", "nosniff");
  response.headers.set("X-Frame-Options", "DENY");
  response.headers.set("Referrer-Policy", "no-referrer");
  response.headers.set("Cross-Origin-Opener-Policy", "same-origin");
  response.headers.set("Cross-Origin-Resource-Policy", "same-origin");
}

void protect_data(http::Response& response) {
  protect(response, kDataPolicy);
  if (!response.headers.get("Cache-Control")) {
    response.headers.set("Cache-Control", "private, no-cache");
  }
}

http::Response redirect_to(std::string_view place) {
  http::Response response{.status = 302};
  response.headers.set("Location", std::string(place));
  protect(response, kPagePolicy);
  return response;
}

http::Response not_allowed(std::string_view allow) {
  auto response =
      problem(405, "method_not_allowed", fmt::format("the dashboard takes {} here", allow));
  response.headers.set("Allow", std::string(allow));
  return response;
}

/// Whether the browser says that a page of another site made the request. Old browsers say
/// nothing: the cookie's SameSite and the csrf value hold there, too.
bool is_from_elsewhere(const http::Request& request) {
  if (const auto site = request.headers.get("Sec-Fetch-Site"); site) {
    return *site != "same-origin" && *site != "none";
  }
  const auto origin = request.headers.get("Origin");
  if (!origin) {
    return false;
  }
  const auto scheme_end = origin->find("://");
  return scheme_end == std::string_view::npos ||
         origin->substr(scheme_end + 3) != request.headers.get("Host").value_or("");
}

http::Response csrf_refusal() {
  return problem(403, "csrf",
                 "the request did not come from a page of this dashboard, or from one of an "
                 "earlier login: reload the page");
}

/// "a=1; b=2"
std::string_view value_of(std::string_view cookies, std::string_view name) {
  while (!cookies.empty()) {
    const auto end = cookies.find(';');
    auto each = cookies.substr(0, end);
    cookies = end == std::string_view::npos ? "" : cookies.substr(end + 1);
    each.remove_prefix(std::min(each.find_first_not_of(' '), each.size()));
    if (each.size() > name.size() && each.starts_with(name) && each[name.size()] == '=') {
      return each.substr(name.size() + 1);
    }
  }
  return {};
}

bool takes_gzip(const http::Request& request) {
  return request.headers.get("Accept-Encoding").value_or("").contains("gzip");
}

bool could_be_token(std::string_view text) {
  return !text.empty() && text.size() <= kLongestToken &&
         std::ranges::all_of(text, [](char letter) { return letter > ' ' && letter < '\x7f'; });
}

json session_view(const http::Response& caller, std::string_view csrf) {
  auto out = json::parse(caller.body);
  out["csrf"] = csrf;
  return out;
}

}  // namespace

Dashboard::Dashboard(DashboardParts parts)
    : parts_(std::move(parts)), sessions_(parts_.random, parts_.clock) {}

http::Handler Dashboard::handler() {
  return [this](http::Request request) { return answer(std::move(request)); };
}

// With the prefix a browser refuses the cookie from another host of the same domain; the prefix
// needs https.
std::string_view Dashboard::cookie_name() const {
  return parts_.secure ? "__Host-verger-session" : "verger-session";
}

std::string_view Dashboard::cookie_of(const http::Request& request) const {
  return value_of(request.headers.get("Cookie").value_or(""), cookie_name());
}

std::string Dashboard::set_cookie(std::string_view value) const {
  return fmt::format(
      "{}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}{}", cookie_name(), value,
      value.empty() ? 0
                    : std::chrono::duration_cast<std::chrono::seconds>(kSessionLifetime).count(),
      parts_.secure ? "; Secure" : "");
}

http::Request Dashboard::identified(http::Request head) const {
  if (!head.headers.get("Authorization")) {
    if (const auto session = sessions_.find(cookie_of(head))) {
      head.headers.set("Authorization", "Bearer " + session->token);
    }
  }
  return head;
}

net::awaitable<http::Response> Dashboard::answer(http::Request request) {
  const auto path = std::string(path_of(request.target));
  if (path == "/" || path == "/ui") {
    co_return request.method == "GET" ? redirect_to(kRoot) : not_allowed("GET");
  }
  if (path == kSessionPath) {
    auto response = co_await answer_session(std::move(request));
    response.headers.set("Cache-Control", "no-store");
    protect(response, kDataPolicy);
    co_return response;
  }
  if (path.starts_with(kRoot)) {
    co_return asset(request, path.substr(kRoot.size()));
  }
  if (path.starts_with(kApiRoot) && !request.headers.get("Authorization") &&
      !cookie_of(request).empty()) {
    co_return co_await call_api(std::move(request));
  }
  co_return co_await parts_.api(std::move(request));
}

http::Response Dashboard::asset(const http::Request& request, std::string_view name) {
  const auto wanted = name.empty() ? kStartPage : name;
  const auto found = std::ranges::find(assets(), wanted, &Asset::name);
  if (found == assets().end()) {
    auto response = problem(404, "not_found",
                            fmt::format("the dashboard has no {}; it starts at /ui/", wanted));
    protect(response, kDataPolicy);
    return response;
  }
  if (request.method != "GET") {
    return not_allowed("GET");
  }
  http::Response response;
  response.headers.set("Content-Type", std::string(found->content_type));
  response.headers.set("ETag", std::string(found->etag));
  // Asked for each time, and sent only when another vergerd has other pages.
  response.headers.set("Cache-Control", "no-cache");
  response.headers.set("Vary", "Accept-Encoding");
  protect(response, kPagePolicy);
  if (request.headers.get("If-None-Match").value_or("").contains(found->etag)) {
    response.status = 304;
    return response;
  }
  if (!takes_gzip(request)) {
    response.body = found->text;
    return response;
  }
  auto& kept = compressed_[std::string(found->name)];
  if (kept.empty()) {
    kept = http::compressed(found->text, http::ContentEncoding::kGzip);
  }
  response.headers.set("Content-Encoding", "gzip");
  response.body = kept;
  return response;
}

net::awaitable<http::Response> Dashboard::answer_session(http::Request request) {
  if (is_from_elsewhere(request)) {
    co_return csrf_refusal();
  }
  if (request.method == "POST") {
    co_return co_await log_in(std::move(request));
  }
  if (request.method == "GET") {
    co_return co_await show_session(std::move(request));
  }
  if (request.method == "DELETE") {
    co_return log_out(request);
  }
  co_return not_allowed("GET, POST, DELETE");
}

net::awaitable<http::Response> Dashboard::log_in(http::Request request) {
  // A form of another site cannot send this type unless this server allowed it to.
  if (!request.headers.get("Content-Type").value_or("").starts_with("application/json")) {
    co_return problem(415, "bad_request", "a login is application/json: {\"token\": TEXT}");
  }
  const auto body = json::parse(request.body, nullptr, false);
  if (!body.is_object() || !body.contains("token") || !body["token"].is_string()) {
    co_return problem(400, "bad_request", "the body must be {\"token\": TEXT}");
  }
  auto token = body["token"].get<std::string>();
  if (!could_be_token(token)) {
    co_return problem(401, "unauthorized",
                      "this is not a token: it takes printable characters without spaces");
  }
  const auto caller = co_await who_is(token, request.peer);
  if (caller.status != 200) {
    co_return caller;
  }
  sessions_.close(cookie_of(request));
  const auto opened = sessions_.open(std::move(token));
  auto response = json_answer(200, session_view(caller, opened.csrf));
  response.headers.set("Set-Cookie", set_cookie(opened.cookie));
  co_return response;
}

net::awaitable<http::Response> Dashboard::show_session(http::Request request) {
  const std::string cookie(cookie_of(request));
  const auto session = sessions_.find(cookie);
  if (!session) {
    co_return problem(401, "unauthorized", "log in with a token of the API");
  }
  auto caller = co_await who_is(session->token, request.peer);
  if (caller.status == 401) {
    sessions_.close(cookie);
    caller.headers.set("Set-Cookie", set_cookie(""));
  }
  co_return caller.status == 200 ? json_answer(200, session_view(caller, session->csrf)) : caller;
}

http::Response Dashboard::log_out(const http::Request& request) {
  const auto cookie = cookie_of(request);
  if (const auto session = sessions_.find(cookie)) {
    if (!equal_in_constant_time(request.headers.get(kCsrfHeader).value_or(""), session->csrf)) {
      return csrf_refusal();
    }
    sessions_.close(cookie);
  }
  http::Response response{.status = 204};
  response.headers.set("Set-Cookie", set_cookie(""));
  return response;
}

net::awaitable<http::Response> Dashboard::call_api(http::Request request) {
  const auto session = sessions_.find(cookie_of(request));
  http::Response response;
  if (!session) {
    response = problem(401, "unauthorized", "the login is over: log in again");
  } else if (is_from_elsewhere(request) ||
             (request.method != "GET" &&
              !equal_in_constant_time(request.headers.get(kCsrfHeader).value_or(""),
                                      session->csrf))) {
    response = csrf_refusal();
  } else {
    request.headers.set("Authorization", "Bearer " + session->token);
    response = co_await parts_.api(std::move(request));
  }
  protect_data(response);
  co_return response;
}

net::awaitable<http::Response> Dashboard::who_is(std::string token, http::Peer peer) {
  http::Request request{.method = "GET", .target = "/api/v1/whoami", .peer = std::move(peer)};
  request.headers.set("Authorization", "Bearer " + token);
  co_return co_await parts_.api(std::move(request));
}

}  // namespace verger::controller::web
