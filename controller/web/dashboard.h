#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "controller/web/sessions.h"
#include "nodeagent/http/message.h"

namespace verger::controller::web {

/// Header with the session's csrf value, for every request of a session that is not a GET.
inline constexpr std::string_view kCsrfHeader = "Verger-Csrf";

struct DashboardParts {
  http::Handler api;  ///< answers all that is not the dashboard's own
  Random& random;
  Clock& clock;
  /// Served over https: then a browser sends the cookie by https alone.
  bool secure = false;
};

/// The dashboard around the API:
///
///   GET /ui/…            the embedded assets, with a strict Content-Security-Policy
///   POST /ui/session     {"token"}: log in; sets the cookie, answers SESSION
///   GET /ui/session      SESSION: {"name", "role", "csrf"}, or 401
///   DELETE /ui/session   log out
///
/// A request to /api/v1 without a token but with a session's cookie gets the session's token. The
/// cookie is HttpOnly and SameSite=Strict; a request that is not a GET also needs kCsrfHeader, and
/// none that a browser marks as coming from another site is taken (403 `csrf`). Who may do what,
/// and what is audited, is the API's matter. All calls on the API's thread; it outlives its
/// handler.
class Dashboard {
 public:
  explicit Dashboard(DashboardParts parts);
  Dashboard(const Dashboard&) = delete;
  Dashboard& operator=(const Dashboard&) = delete;
  http::Handler handler();
  /// `head` with its session's token, if it has a session and no token of its own. Nothing is
  /// checked beyond that: for what depends on the caller alone, such as limits of a connection.
  [[nodiscard]] http::Request identified(http::Request head) const;

 private:
  net::awaitable<http::Response> answer(http::Request request);
  net::awaitable<http::Response> answer_session(http::Request request);
  net::awaitable<http::Response> log_in(http::Request request);
  net::awaitable<http::Response> show_session(http::Request request);
  http::Response log_out(const http::Request& request);
  net::awaitable<http::Response> call_api(http::Request request);
  http::Response asset(const http::Request& request, std::string_view name);
  [[nodiscard]] std::string_view cookie_name() const;
  [[nodiscard]] std::string_view cookie_of(const http::Request& request) const;
  /// `value` empty: the browser forgets it.
  [[nodiscard]] std::string set_cookie(std::string_view value) const;
  /// The API's answer to who the bearer of `token` is.
  net::awaitable<http::Response> who_is(std::string token, http::Peer peer);

  DashboardParts parts_;
  Sessions sessions_;
  std::map<std::string, std::string, std::less<>> compressed_;  ///< assets, once they were wanted
};

}  // namespace verger::controller::web
