#include "controller/api/routes.h"

namespace verger::controller {
namespace {

net::awaitable<http::Response> answered(http::Response response) { co_return response; }

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
  return later_ != nullptr ? later_(parts, std::move(call)) : answered(now_(parts, call));
}

const std::vector<Route>& api_routes() {
  static const auto kRoutes = [] {
    std::vector<Route> all;
    for (const auto routes :
         {cluster_routes(), cluster_overview_routes(), cluster_update_routes(), plan_routes(),
          run_routes(), policy_routes(), event_routes(), access_routes(), journal_routes(),
          agent_routes(), certificate_routes(), backup_routes()}) {
      all.insert(all.end(), routes.begin(), routes.end());
    }
    return all;
  }();
  return kRoutes;
}

}  // namespace verger::controller
