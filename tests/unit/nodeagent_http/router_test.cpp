#include "nodeagent/http/router.h"

#include <gtest/gtest.h>

namespace verger::http {
namespace {

RouteHandler nothing() {
  return [](RoutedRequest) -> net::awaitable<Response> { co_return Response{}; };
}

struct Routes {
  Router router;
  Routes() {
    router.add("GET", "/admin/scavenge/current", nothing());
    router.add("DELETE", "/admin/scavenge/{id}", nothing());
    router.add("POST", "/admin/scavenge", nothing());
    router.add("GET", "/ui/{file*}", nothing());
    router.add("GET", "/", nothing());
  }
  Router::Match find(std::string_view method, std::string_view target) const {
    return router.find(method, *parse_target(target));
  }
};

TEST(Router, TakesParametersDecoded) {
  const Routes routes;
  const auto match = routes.find("DELETE", "/admin/scavenge/a%2Fb");
  ASSERT_EQ(match.verdict, Router::Verdict::kFound);
  EXPECT_EQ(match.parameters, (std::vector<std::pair<std::string, std::string>>{{"id", "a/b"}}));
}

TEST(Router, TakesTheRestOfAPath) {
  const Routes routes;
  const auto match = routes.find("GET", "/ui/js/app.js");
  ASSERT_EQ(match.verdict, Router::Verdict::kFound);
  EXPECT_EQ(match.parameters[0].second, "js/app.js");
  EXPECT_EQ(routes.find("GET", "/ui/").verdict, Router::Verdict::kNoPath);
  EXPECT_EQ(routes.find("GET", "/").verdict, Router::Verdict::kFound);
}

TEST(Router, SaysWhichMethodsAPathHas) {
  const Routes routes;
  const auto match = routes.find("PUT", "/admin/scavenge/current");
  EXPECT_EQ(match.verdict, Router::Verdict::kNoMethod);
  EXPECT_EQ(match.allow, "GET, DELETE");
  EXPECT_EQ(routes.find("GET", "/nothing").verdict, Router::Verdict::kNoPath);
}

TEST(Router, DoesNotTakeATrailingSlashForAnEmptyParameter) {
  const Routes routes;
  EXPECT_EQ(routes.find("DELETE", "/admin/scavenge/").verdict, Router::Verdict::kNoPath);
  EXPECT_EQ(routes.find("POST", "/admin/scavenge/").verdict, Router::Verdict::kNoPath);
}

TEST(Router, PrefersLiteralsInAnyOrder) {
  for (const bool literal_first : {true, false}) {
    Router router;
    router.add("GET", literal_first ? "/a/b" : "/a/{x}", nothing());
    router.add("GET", literal_first ? "/a/{x}" : "/a/b", nothing());
    EXPECT_TRUE(router.find("GET", *parse_target("/a/b")).parameters.empty());
    EXPECT_EQ(router.find("GET", *parse_target("/a/c")).parameters.size(), 1U);
  }
}

}  // namespace
}  // namespace verger::http
