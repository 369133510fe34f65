#include "controller/api/routes.h"

#include <utility>

#include "controller/api/answers.h"

namespace verger::controller {
namespace {

http::Response response_of(http::Response response) { return response; }

http::Response response_of(Result<http::Response> response) {
  return response ? *std::move(response) : problem_of(response.error());
}

template <class Answer>
net::awaitable<http::Response> response_later(net::awaitable<Answer> answer) {
  co_return response_of(co_await std::move(answer));
}

net::awaitable<http::Response> answered(http::Response response) { co_return response; }

/// Calls each form of a route's function.
struct RouteCall {
  const ApiParts& parts;
  Call& call;

  template <class Answer>
  net::awaitable<http::Response> operator()(RouteAnswer::Later<Answer> later) const {
    return response_later(later(parts, std::move(call)));
  }
  template <class Answer>
  net::awaitable<http::Response> operator()(RouteAnswer::Now<Answer> now) const {
    return answered(response_of(now(parts, call)));
  }
};

}  // namespace

std::string_view to_string(ApiRole role) {
  switch (role) {
    case ApiRole::kNobody:
      return "nobody";
    case ApiRole::kViewer:
      return "viewer";
    case ApiRole::kOperator:
      return "operator";
    case ApiRole::kAdmin:
      return "admin";
  }
  return "";
}

net::awaitable<http::Response> RouteAnswer::operator()(const ApiParts& parts, Call call) const {
  return std::visit(RouteCall{parts, call}, answer_);
}

const std::vector<Route>& api_routes() {
  static const auto kRoutes = [] {
    std::vector<Route> all;
    for (const auto routes :
         {cluster_routes(), cluster_overview_routes(), cluster_update_routes(), plan_routes(),
          run_routes(), policy_routes(), event_routes(), access_routes(), journal_routes(),
          agent_routes(), certificate_routes(), backup_routes(), discovery_routes()}) {
      all.insert(all.end(), routes.begin(), routes.end());
    }
    return all;
  }();
  return kRoutes;
}

}  // namespace verger::controller
