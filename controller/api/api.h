#pragma once

#include <expected>
#include <string>

#include "controller/api/api_parts.h"
#include "controller/api/kept_answers.h"
#include "controller/api/routes.h"
#include "nodeagent/http/router.h"

namespace verger::controller {

/// Answers /api/v1 and /metrics: finds the route, checks the caller's token and role, puts on
/// record what may change something, and hands the call to the route's own function. All calls on
/// the executor's thread.
class Api {
 public:
  explicit Api(ApiParts parts);
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;
  /// May be called as often as wanted; the handler refers to this object.
  http::Handler handler();

 private:
  net::awaitable<http::Response> answer(http::Request request);
  net::awaitable<http::Response> metrics(http::RoutedRequest request);
  /// Token, role; then the route's answer, on record where something may change.
  net::awaitable<http::Response> admit(const Route& route, http::RoutedRequest request);
  /// The caller, if allowed; anonymous where no identity is needed. The error is the answer.
  [[nodiscard]] std::expected<Principal, http::Response> principal_of(const http::Request& request,
                                                                      const std::string& path,
                                                                      ApiRole needed) const;
  /// With audit, and once only for one Idempotency-Key.
  net::awaitable<http::Response> answer_on_record(const Route& route, Call call);

  ApiParts parts_;
  KeptAnswers kept_;
  http::Router router_;
};

}  // namespace verger::controller
