#include "nodeagent/operations/permits.h"

#include <gtest/gtest.h>

#include "tests/support/manual_clock.h"

namespace verger::agent {
namespace {

api::OperationRequest request(std::int64_t epoch, std::string step = "s") {
  return {
      .id = "o", .run = "r", .step = std::move(step), .controller_epoch = epoch, .kind = "resign"};
}

api::Permit permit(std::int64_t epoch, std::string step = "s") {
  return {.controller_epoch = epoch, .run = "r", .step = std::move(step), .valid_for_ms = 1000};
}

TEST(Permits, NothingActsWithoutOne) {
  test::ManualClock clock;
  Permits permits(clock);
  EXPECT_FALSE(permits.check(request(1)).has_value());
  permits.grant(permit(1));
  EXPECT_TRUE(permits.check(request(1)).has_value());
  EXPECT_FALSE(permits.check(request(1, "another")).has_value());
}

TEST(Permits, RunOutOnTheAgentsOwnClock) {
  test::ManualClock clock;
  Permits permits(clock);
  permits.grant(permit(1));
  clock.advance_seconds(0);
  EXPECT_TRUE(permits.check(request(1)).has_value());
  clock.advance_seconds(1);
  const auto late = permits.check(request(1));
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Errc::kRefused);
}

TEST(Permits, AreRevokedByOneThatLastsNoTime) {
  test::ManualClock clock;
  Permits permits(clock);
  permits.grant(permit(1));
  const auto back =
      api::parse_permit(R"({"controllerEpoch":1,"run":"r","step":"s","validForMs":0})");
  ASSERT_TRUE(back.has_value()) << back.error().message;
  permits.grant(*back);
  EXPECT_FALSE(permits.check(request(1)).has_value());
}

TEST(Permits, ANewerControllerEndsTheOlderOnes) {
  test::ManualClock clock;
  Permits permits(clock);
  permits.grant(permit(1));
  permits.grant(permit(2, "another"));
  EXPECT_FALSE(permits.check(request(1)).has_value());
  EXPECT_TRUE(permits.check(request(2, "another")).has_value());
}

}  // namespace
}  // namespace verger::agent
