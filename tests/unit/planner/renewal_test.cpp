// When certificates are to be renewed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "engine/base/clock.h"
#include "planner/certificates/certificates_policy.h"
#include "planner/operations.h"
#include "tests/unit/planner/clusters.h"

namespace verger::planner {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kDay = 86'400 * kTicksPerSecond;

Policy renewing(int jitter = 0) {
  Policy policy;
  policy.operation = CertificatesPolicy();
  certificates_of(policy).renew_at_percent = 66;
  certificates_of(policy).renew_jitter_percent = jitter;
  return policy;
}

/// The leaf of each node is `age` days old and lives for 100; n2's is a day older.
ClusterSnapshot aged(int age, const std::string& name = "prod") {
  auto out = testing::cluster();
  out.cluster = name;
  for (auto& node : out.nodes) {
    const int older = node.name == "n2" ? 1 : 0;
    const Ticks begin(out.taken_at.value() - (age + older) * kDay);
    ServedCertificate served{
        .serial = "0A", .of = "node", .not_after = Ticks(begin.value() + 100 * kDay)};
    served.chain.push_back({.not_before = begin, .not_after = served.not_after});
    node.certificates = {served};
  }
  return out;
}

Need need_of(const ClusterSnapshot& snapshot, const Policy& policy) {
  return operation_of(policy)->need(snapshot, policy);
}

TEST(Renewal, IsNeededOnceItsShareOfTheFirstLifetimeHasPassed) {
  const auto early = need_of(aged(64), renewing());
  EXPECT_THAT(early.not_yet, HasSubstr("the certificate of n2 is the first"));
  ASSERT_TRUE(early.needed_at.has_value());
  EXPECT_EQ((early.needed_at->value() - aged(64).taken_at.value()) / kDay, 1);
  EXPECT_EQ(need_of(aged(65), renewing()).not_yet, "");
  EXPECT_EQ(need_of(aged(99), renewing()).not_yet, "");
}

TEST(Renewal, HasTheFirstEndAsItsDeadline) {
  const auto snapshot = aged(10);
  const auto need = need_of(snapshot, renewing());
  ASSERT_TRUE(need.deadline.has_value());
  EXPECT_EQ((need.deadline->value() - snapshot.taken_at.value()) / kDay, 89);
  EXPECT_EQ(need.ends, "the certificate of n2");
}

TEST(Renewal, OfManyClustersIsSpreadAndOfOneAlwaysAtTheSameTime) {
  std::set<std::int64_t> times;
  for (int i = 0; i < 20; ++i) {
    const auto snapshot = aged(0, "orders-" + std::to_string(i));
    const auto need = need_of(snapshot, renewing(5));
    ASSERT_TRUE(need.needed_at.has_value());
    EXPECT_EQ(need.needed_at, need_of(snapshot, renewing(5)).needed_at);
    const auto hours = (need.needed_at->value() - snapshot.taken_at.value()) * 24 / kDay;
    EXPECT_GE(hours, (61 - 1) * 24 - 1);
    EXPECT_LE(hours, 66 * 24);
    times.insert(hours / 12);
  }
  EXPECT_GE(times.size(), 6U) << "within five days, not in the same half day";
}

TEST(Renewal, WithoutAShareOrWithoutAKnownCertificateIsNeededEachTime) {
  auto always = renewing();
  certificates_of(always).renew_at_percent = 0;
  EXPECT_EQ(need_of(aged(1), always).not_yet, "");
  const auto unknown = need_of(testing::cluster(), renewing());
  EXPECT_EQ(unknown.not_yet, "") << "the plan says what is in the way";
  EXPECT_EQ(unknown.deadline, std::nullopt);
}

}  // namespace
}  // namespace verger::planner
