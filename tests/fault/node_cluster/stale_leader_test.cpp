// A leader that has a successor and does not know it yet.
#include <gtest/gtest.h>

#include "nodeagent/node/node.h"
#include "tests/support/nodes/node_cluster.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;

class StaleLeader : public ::testing::Test {
 protected:
  StaleLeader() : world_(1), cluster_(world_) {
    for (std::size_t i = 0; i < 3; ++i) {
      cluster_.options(i).timings.quorum_loss_wait = 8s;  // it clings to its office
    }
    cluster_.boot_all();
  }

  [[nodiscard]] bool leads(std::size_t i) {
    return cluster_.node(i)->inspection().state() == api::NodeState::kLeader;
  }
  /// The status of an append of one event to "s".
  int append(std::size_t i, const std::string& expected_version) {
    http::Request request{.method = "POST", .target = "/streams/s", .body = "{}"};
    request.headers.set("Content-Type", "application/json");
    request.headers.set("ES-EventType", "e");
    request.headers.set("ES-EventId", world_.random().uuid().to_string());
    request.headers.set("ES-ExpectedVersion", expected_version);
    const auto answer = cluster_.request(i, request);
    EXPECT_TRUE(answer.has_value()) << answer.error().message;
    return answer ? answer->status : 0;
  }

  SimWorld world_;
  NodeCluster cluster_;
};

TEST_F(StaleLeader, DoesNotContradictWhatItsSuccessorHasAcknowledged) {
  ASSERT_TRUE(cluster_.run_until_settled());
  const auto old = *cluster_.leader();
  ASSERT_EQ(append(old, "-1"), 201);
  ASSERT_EQ(append(old, "5"), 400) << "with its followers it knows";
  const auto a = (old + 1) % 3;
  const auto b = (old + 2) % 3;
  const auto name = [](std::size_t i) { return "n" + std::to_string(i + 1); };
  world_.cut(name(old), name(a));
  world_.cut(name(old), name(b));
  ASSERT_TRUE(world_.run_until([&] { return leads(a) || leads(b); }, 20s));
  const auto successor = leads(a) ? a : b;
  ASSERT_EQ(append(successor, "0"), 201);
  ASSERT_TRUE(leads(old)) << "it knows already";
  EXPECT_EQ(append(old, "1"), 503) << "400 would deny the event that was just acknowledged";
  ASSERT_TRUE(leads(old)) << "it was its end that answered";
  world_.heal();
  ASSERT_TRUE(cluster_.run_until_level());
  EXPECT_EQ(append(old, "1"), 201);
}

}  // namespace
}  // namespace verger::testing
