#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller_api/api_harness.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using testing::ApiHarness;
using ::testing::HasSubstr;

json policy_with(const std::string& notification) {
  return {{"yaml", "name: nightly\nclusters: [prod]\nnotifications: [" + notification + "]\n"}};
}

TEST(NotificationRoutes, TestEachRecipientAndSayWhy) {
  ApiHarness a;
  ASSERT_EQ(a.call("PUT", "/policies/nightly",
                   policy_with("{on: failed, command: [notify]}, {on: done, webhook: "
                               "'http://127.0.0.1:1/secret', format: slack}"))
                .status,
            200);
  const auto tested =
      ApiHarness::json_of(a.call("POST", "/policies/nightly/notifications/test", json::object()));
  ASSERT_EQ(tested["recipients"].size(), 2U) << tested.dump();
  EXPECT_EQ(tested["recipients"][0]["to"], "notify");
  EXPECT_EQ(tested["recipients"][0]["delivered"], false);
  EXPECT_THAT(tested["recipients"][0]["problem"].get<std::string>(), HasSubstr("not run here"));
  EXPECT_EQ(tested["recipients"][1]["to"], "http://127.0.0.1:1");
  EXPECT_EQ(a.call("POST", "/policies/none/notifications/test", json::object()).status, 404);
}

TEST(NotificationRoutes, RefuseMailWithoutAMailServer) {
  ApiHarness a;
  const auto refused =
      a.call("PUT", "/policies/nightly", policy_with("{on: failed, email: ops@example.com}"));
  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(refused.body, HasSubstr("--smtp-url"));
  EXPECT_EQ(
      a.call("PUT", "/policies/nightly", policy_with("{on: failed, email: 'ops@x\\nDATA'}")).status,
      422);
  EXPECT_EQ(
      a.call("PUT", "/policies/nightly", policy_with("{on: failed, command: [x], format: slack}"))
          .status,
      422);
}

}  // namespace
}  // namespace verger::controller
