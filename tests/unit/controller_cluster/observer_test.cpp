#include "controller/cluster/observer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "nodeagent/http/tls.h"
#include "planner/gates.h"
#include "planner/plan.h"
#include "tests/support/controller/fake_cluster.h"

namespace verger::controller {
namespace {

using planner::ClusterSnapshot;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OpsCredentials final : public CredentialStore {
 public:
  Result<Credentials> find(std::string_view) override {
    return Credentials{
        .user = "ops", .password = "x", .hosts = {"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}};
  }
};

class ObserverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    config_.name = "prod";
    for (int i = 1; i <= 3; ++i) {
      config_.nodes.push_back({fmt::format("n{}", i), fmt::format("http://10.0.0.{}:2113", i),
                               fmt::format("http://10.0.0.{}:2114", i)});
    }
  }
  ClusterSnapshot take() { return result_of(observer_.take(config_)); }
  ClusterSnapshot result_of(net::awaitable<ClusterSnapshot> look) {
    std::optional<ClusterSnapshot> out;
    net::co_spawn(context_, std::move(look), [&out](std::exception_ptr, ClusterSnapshot snapshot) {
      out = std::move(snapshot);
    });
    EXPECT_TRUE(time_.run(context_, [&out] { return out.has_value(); }, std::chrono::minutes(1)));
    return *std::move(out);
  }
  test::VirtualTime time_;
  test::FakeCluster cluster_{time_};
  OpsCredentials credentials_;
  net::io_context context_;
  ClusterConfig config_;
  Observer observer_{Network{.client = cluster_,
                             .timers = time_,
                             .clock = time_,
                             .credentials = credentials_,
                             .log = null_log()}};
};

TEST_F(ObserverTest, APasswordIsSentToNoOtherHostThanItsOwn) {
  config_.credentials = "ops";
  EXPECT_TRUE(observer_.check_credentials(config_).has_value());
  config_.nodes[2].url = "http://10.0.0.3:9999";
  const auto refused = observer_.check_credentials(config_);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("not for http://10.0.0.3:9999"));
  const auto snapshot = take();
  EXPECT_THAT(snapshot.nodes[2].problem, HasSubstr("are not sent there"));
  EXPECT_FALSE(snapshot.nodes[2].answered);
  EXPECT_TRUE(snapshot.nodes[0].answered);
}

TEST_F(ObserverTest, LooksAtCertificatesAgainOnceTheyAreForgotten) {
  int serial = 1;
  Observer observer(Network{.client = cluster_,
                            .timers = time_,
                            .clock = time_,
                            .credentials = credentials_,
                            .log = null_log(),
                            .served_certificate = [&serial](http::Endpoint)
                                -> net::awaitable<Result<http::CertificateInfo>> {
                              http::CertificateInfo shown;
                              shown.serial = std::to_string(serial);
                              shown.not_after = format_ticks(Ticks(650'000'000'000'000'000));
                              co_return shown;
                            }});
  for (auto& node : config_.nodes) {
    node.url.replace(0, 4, "https");
    node.agent_url.clear();
  }
  const auto before = result_of(observer.take(config_));
  ASSERT_EQ(before.nodes[1].certificates.size(), 1U);
  EXPECT_EQ(before.nodes[1].certificates[0].serial, "1");
  serial = 2;
  EXPECT_EQ(result_of(observer.take(config_)).nodes[1].certificates[0].serial, "1") << "remembered";
  observer.forget_certificates(config_);
  const auto after = result_of(observer.take(config_));
  EXPECT_EQ(after.nodes[1].certificates[0].serial, "2");
  EXPECT_THAT(planner::diff_basis(planner::basis_of(before), planner::basis_of(after)),
              ::testing::Contains("n2: the certificates were node:1, are node:2"));
}

TEST_F(ObserverTest, SeesTheWholeChainOfACertificate) {
  const auto made = [](std::string subject, std::string issuer, const char* not_after) {
    http::CertificateInfo info;
    info.subject = std::move(subject);
    info.issuer = std::move(issuer);
    info.fingerprint = info.subject;
    info.not_before = "2026-01-01T00:00:00Z";
    info.not_after = not_after;
    return info;
  };
  auto leaf = made("CN=n1", "CN=between", "2027-01-01T00:00:00Z");
  leaf.issuers = {made("CN=between", "CN=root", "2028-01-01T00:00:00Z")};
  Observer observer(
      Network{.client = cluster_,
              .timers = time_,
              .clock = time_,
              .credentials = credentials_,
              .log = null_log(),
              .served_certificate = [&leaf](http::Endpoint)
                  -> net::awaitable<Result<http::CertificateInfo>> { co_return leaf; },
              .roots_of =
                  [&made](const std::string&) {
                    return std::vector{made("CN=other", "CN=other", "2029-01-01T00:00:00Z"),
                                       made("CN=root", "CN=root", "2026-12-01T00:00:00Z")};
                  }});
  for (auto& node : config_.nodes) {
    node.url.replace(0, 4, "https");
    node.agent_url.clear();
  }
  const auto snapshot = result_of(observer.take(config_));
  const auto* served = snapshot.nodes[0].served_certificate();
  ASSERT_NE(served, nullptr);
  using Kind = planner::CertificateSeen::Kind;
  std::vector<std::pair<Kind, std::string>> seen;
  for (const auto& each : served->chain) {
    seen.emplace_back(each.kind, each.subject + " " + format_ticks(each.not_after).substr(0, 10));
  }
  EXPECT_THAT(seen, ElementsAre(std::pair(Kind::kLeaf, "CN=n1 2027-01-01"),
                                std::pair(Kind::kIntermediate, "CN=between 2028-01-01"),
                                std::pair(Kind::kRoot, "CN=root 2026-12-01")));
  EXPECT_EQ(served->issuer, "CN=root") << "of those that vouch for it the first to end";

  auto node = snapshot.nodes[0];
  EXPECT_EQ(node.file_differs_from_served(), std::nullopt) << "its files are not known";
  node.certificate_files.emplace().chain = {served->chain.front()};
  EXPECT_EQ(node.file_differs_from_served(), false);
  node.certificate_files->chain.front().fingerprint = "another";
  EXPECT_EQ(node.file_differs_from_served(), true);
}

TEST_F(ObserverTest, WatchesOneNodeAndHearsTheOthers) {
  const auto snapshot = result_of(observer_.watch(config_, "n2"));
  ASSERT_NE(snapshot.leader(), nullptr);
  EXPECT_EQ(snapshot.leader()->name, "n1");
  EXPECT_EQ(snapshot.voters(), 3U);
  for (const auto& node : snapshot.nodes) {
    const bool watched = node.name == "n2";
    EXPECT_TRUE(node.answered && node.alive) << node.problem;
    EXPECT_EQ(node.sees_priorities.size(), 3U);
    EXPECT_EQ(node.agent_answered, watched);
    EXPECT_EQ(node.scavenge_running.has_value(), watched);
  }
}

TEST_F(ObserverTest, DoesNotAskForAutoScavengeWhileItWatches) {
  cluster_.auto_scavenge = "Waiting";
  for (auto& node : cluster_.nodes) {
    node.version = "24.10.0";
  }
  int asked = 0;
  cluster_.dress = [&asked](const auto&, const http::Request& request, auto&) {
    asked += request.target.starts_with("/auto-scavenge/") ? 1 : 0;
  };
  result_of(observer_.watch(config_, "n2"));
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(take().find("n2")->auto_scavenge, planner::AutoScavenge::kWaiting);
  EXPECT_EQ(asked, 3);
}

TEST_F(ObserverTest, AsksEveryMemberAboutItself) {
  cluster_.points = {1'000};
  cluster_.node("n2").last_finished = 0;
  cluster_.node("n3").unfinished = 0;
  const auto snapshot = take();
  ASSERT_NE(snapshot.leader(), nullptr);
  EXPECT_EQ(snapshot.leader()->name, "n1");
  EXPECT_EQ(snapshot.voters(), 3U);
  for (const auto& node : snapshot.nodes) {
    EXPECT_TRUE(node.answered && node.alive && node.agent_answered) << node.problem;
    EXPECT_EQ(node.version, "24.6.0");
    EXPECT_EQ(node.scavenge_running, false);
    EXPECT_EQ(node.auto_scavenge, planner::AutoScavenge::kAbsent);
    EXPECT_EQ(node.sees_leader, snapshot.leader()->instance_id);
    EXPECT_EQ(node.sees_priorities.size(), 3U);
  }
  EXPECT_EQ(snapshot.find("n2")->agent->last_finished->number, 0);
  EXPECT_EQ(snapshot.find("n3")->agent->unfinished->point.number, 0);
  EXPECT_EQ(snapshot.latest_point()->number, 0);
  EXPECT_THAT(snapshot.unregistered, IsEmpty());
}

TEST_F(ObserverTest, AsksAProcessWithoutMetricsOnlyOnceForThem) {
  auto& node = cluster_.node("n2");
  node.has_metrics = false;
  EXPECT_FALSE(take().nodes[1].index_merging.has_value());
  take();
  EXPECT_EQ(node.asked_for_metrics, 1);
  EXPECT_EQ(cluster_.node("n1").asked_for_metrics, 2);
  node.instance = "started anew";
  node.has_metrics = true;
  EXPECT_EQ(take().nodes[1].index_merging, false);
}

TEST_F(ObserverTest, SaysWhatDidNotAnswer) {
  cluster_.node("n3").up = false;
  cluster_.node("n2").agent_up = false;
  const auto snapshot = take();
  EXPECT_FALSE(snapshot.find("n3")->answered);
  EXPECT_THAT(snapshot.find("n3")->problem, HasSubstr("refused"));
  EXPECT_FALSE(snapshot.find("n2")->agent_answered);
  EXPECT_THAT(snapshot.find("n1")->sees_dead, IsEmpty()) << "n3's instance is not known to us";
  EXPECT_THAT(snapshot.unregistered, IsEmpty());
}

TEST_F(ObserverTest, AServerIsStoppedWhereItsAgentKeepsItSo) {
  auto& n2 = cluster_.node("n2");
  n2.up = false;
  const auto silent = take();
  ASSERT_NE(silent.find("n2"), nullptr);
  EXPECT_FALSE(silent.find("n2")->stopped) << "it may run, and not answer";
  EXPECT_THAT(silent.find("n2")->agent_problem, HasSubstr("gets no answer of the node"));
  n2.files.ordered_stop = "o1";
  const auto ordered = take();
  EXPECT_TRUE(ordered.find("n2")->stopped);
  EXPECT_EQ(ordered.find("n2")->agent_problem,
            "its agent keeps the server stopped for operation o1");
}

TEST_F(ObserverTest, RemembersHowLongTheLeaderHasBeenTheSame) {
  EXPECT_EQ(take().leader_stable_ms, 0);
  time_.run(context_, [] { return false; }, std::chrono::seconds(0));
  const auto later = take().leader_stable_ms;
  EXPECT_GT(later, 0);
  cluster_.elect("n2");
  EXPECT_EQ(take().leader_stable_ms, 0);
  cluster_.elect("n2");  // the same node, in another epoch
  EXPECT_EQ(take().leader_stable_ms, 0);
}

TEST_F(ObserverTest, NoticesAnUnregisteredMember) {
  cluster_.add_replica();
  const auto snapshot = take();
  EXPECT_THAT(snapshot.unregistered, ElementsAre("10.0.0.4:2113"));
}

TEST_F(ObserverTest, NoticesAnUnregisteredVoterThatIsDown) {
  config_.nodes.pop_back();
  cluster_.node("n3").up = false;
  const auto snapshot = take();
  EXPECT_THAT(snapshot.unregistered, IsEmpty());
  EXPECT_EQ(snapshot.unregistered_voters, 1U);
  EXPECT_EQ(snapshot.quorum(), 2U);
}

TEST_F(ObserverTest, AReplicaThatIsDownIsNoVoter) {
  cluster_.add_replica();
  config_.nodes.push_back({"n4", "http://10.0.0.4:2113", "http://10.0.0.4:2114"});
  cluster_.node("n4").up = false;
  const auto snapshot = take();
  EXPECT_FALSE(snapshot.find("n4")->answered);
  EXPECT_TRUE(snapshot.find("n4")->read_only_replica);
  EXPECT_EQ(snapshot.voters(), 3U);
}

TEST_F(ObserverTest, TheEntryOfASingleOldServerIsNoClock) {
  config_.nodes.resize(1);
  config_.nodes[0].agent_url.clear();
  cluster_.nodes.resize(1);
  cluster_.node("n1").clock_ahead = std::chrono::hours(-9);  // its last change of state
  EXPECT_FALSE(take().nodes[0].clock.has_value());
  cluster_.node("n1").version = "24.10.0";
  EXPECT_TRUE(take().nodes[0].clock.has_value());
}

TEST_F(ObserverTest, TheLogOfASingleOldServerEndsWhereItsAgentSaysSo) {
  // Its own entry has the positions of its last change of state.
  config_.nodes.resize(1);
  cluster_.nodes.resize(1);
  constexpr auto kAgentSays = std::int64_t{1} << 40U;
  const auto seen = take().nodes[0];
  EXPECT_EQ(seen.writer_checkpoint, kAgentSays);
  EXPECT_EQ(seen.chaser_checkpoint, kAgentSays);
  EXPECT_EQ(seen.last_commit_position, kAgentSays);
  cluster_.node("n1").writer = kAgentSays + 1;  // the agent has looked before that
  EXPECT_EQ(take().nodes[0].writer_checkpoint, kAgentSays + 1);
  cluster_.node("n1").writer = 10'000;
  cluster_.node("n1").version = "24.10.0";
  EXPECT_EQ(take().nodes[0].writer_checkpoint, 10'000);
}

TEST_F(ObserverTest, NoticesOneNodeUnderTwoAddresses) {
  config_.nodes[2].url = config_.nodes[1].url;
  EXPECT_THAT(take().wrong_cluster, HasSubstr("n2 and n3 are the same node"));
}

TEST_F(ObserverTest, NoticesAnotherDatabase) {
  config_.identity = "db-1";
  cluster_.node("n2").database = "db-7";
  const auto snapshot = take();
  EXPECT_TRUE(snapshot.find("n2")->wrong_identity);
  EXPECT_FALSE(snapshot.find("n1")->wrong_identity);
  const auto gate = planner::evaluate({"cluster-identity", 0}, snapshot, "n1");
  EXPECT_EQ(gate.at(0).verdict, planner::GateVerdict::kClosed);
  EXPECT_EQ(gate.at(0).node, "n2");
}

TEST_F(ObserverTest, RefusesTwoAgentsThatLookAtOneDirectory) {
  cluster_.node("n1").database_directory = {"/srv/n1", "kernel:1:10"};
  cluster_.node("n1").index_directory = {"/srv/n1/index", "kernel:1:11"};
  cluster_.node("n2").database_directory = {"/mnt/n3", "kernel:1:30"};
  cluster_.node("n2").index_directory = {"/mnt/n3/index", "kernel:1:31"};
  cluster_.node("n3").database_directory = {"/srv/n3", "kernel:1:30"};
  cluster_.node("n3").index_directory = {"/srv/n3/index", "kernel:1:31"};
  const auto snapshot = take();
  EXPECT_EQ(snapshot.find("n1")->agent->files_problem, "");
  EXPECT_THAT(snapshot.find("n2")->agent->files_problem,
              HasSubstr("its /mnt/n3 is the same directory as the /srv/n3 of n3's agent"));
  EXPECT_THAT(snapshot.find("n3")->agent->files_problem, HasSubstr("/mnt/n3 of n2's agent"));
  const auto gate = planner::evaluate({"agents-answer", 0}, snapshot, "n1");
  EXPECT_EQ(gate.at(0).verdict, planner::GateVerdict::kClosed);
  // An agent that knows better which directory is its node's is heard.
  cluster_.node("n2").files_problem = "its Db is /srv/n2";
  EXPECT_THAT(take().find("n2")->agent->files_problem,
              HasSubstr("its Db is /srv/n2; its /mnt/n3 is the same directory as the /srv/n3 of"));
  cluster_.node("n2").files_problem = "";
  // The index alone, and directories of other machines, which may have the same numbers.
  cluster_.node("n2").database_directory = {"/srv/n2", "other:1:30"};
  EXPECT_THAT(take().find("n2")->agent->files_problem, HasSubstr("/mnt/n3/index"));
  cluster_.node("n2").index_directory = {"/srv/n2/index", "other:1:31"};
  EXPECT_EQ(take().find("n2")->agent->files_problem, "");
}

TEST_F(ObserverTest, DoesNotBelieveAnAgentOfAnotherNode) {
  std::swap(config_.nodes[0].agent_url, config_.nodes[1].agent_url);
  const auto snapshot = take();
  EXPECT_FALSE(snapshot.find("n1")->agent_answered);
  EXPECT_FALSE(snapshot.find("n1")->agent.has_value());
  EXPECT_THAT(snapshot.find("n1")->agent_problem, HasSubstr("looks after the instance"));
  EXPECT_THAT(snapshot.find("n1")->agent_problem, HasSubstr("the agent is another node's"));
}

TEST_F(ObserverTest, NothingIsDoneBesideANodeInAnyStateButLeaderOrFollower) {
  for (int i = 0; i <= static_cast<int>(api::NodeState::kResigningLeader); ++i) {
    const auto state = static_cast<api::NodeState>(i);
    if (state == api::NodeState::kLeader || state == api::NodeState::kFollower ||
        state == api::NodeState::kReadOnlyReplica) {
      continue;
    }
    cluster_.node("n3").state = state;
    const auto name = std::string(api::to_string(state));
    const auto snapshot = take();
    EXPECT_EQ(snapshot.find("n3")->state, name);
    const auto gates = planner::evaluate({"voters-alive", 0}, snapshot, "n2");
    const auto closed = std::ranges::find(gates, "n3", &planner::GateState::node);
    ASSERT_NE(closed, gates.end()) << name;
    EXPECT_EQ(closed->verdict, planner::GateVerdict::kClosed) << name;
    const bool leaving =
        state == api::NodeState::kShuttingDown || state == api::NodeState::kShutdown;
    EXPECT_EQ(closed->code, leaving ? "node-down" : "node-unsettled") << name;
  }
}

/// Two clusters behind one client: n3's address leads into another one.
class TwoClusters final : public http::Client {
 public:
  TwoClusters(test::FakeCluster& one, test::FakeCluster& other) : one_(one), other_(other) {}
  net::awaitable<Result<http::Response>> send(http::Endpoint to, http::Request request,
                                              std::chrono::milliseconds deadline) override {
    auto& cluster = to.host == "10.0.0.9" ? other_ : one_;
    if (to.host == "10.0.0.9") {
      to.host = "10.0.0.5";
    }
    return cluster.send(std::move(to), std::move(request), deadline);
  }

 private:
  test::FakeCluster& one_;
  test::FakeCluster& other_;
};

TEST_F(ObserverTest, NoticesANodeOfAnotherCluster) {
  test::FakeCluster other(time_, 5);
  for (auto& node : other.nodes) {
    node.instance = "other-" + node.instance;
  }
  TwoClusters both(cluster_, other);
  observer_ = Observer(Network{.client = both,
                               .timers = time_,
                               .clock = time_,
                               .credentials = credentials_,
                               .log = null_log()});
  config_.nodes[2].url = "http://10.0.0.9:2113";
  config_.nodes[2].agent_url = "http://10.0.0.9:2114";
  const auto snapshot = take();
  EXPECT_TRUE(snapshot.find("n3")->wrong_identity);
  EXPECT_FALSE(snapshot.find("n1")->wrong_identity);
  EXPECT_FALSE(snapshot.find("n2")->wrong_identity);
  // Not the members that only the other cluster's node knows.
  EXPECT_THAT(snapshot.unregistered, ElementsAre("10.0.0.3:2113"));
}

/// Drops what is sent to n3: no answer until the deadline.
class BlackHole final : public http::Client {
 public:
  BlackHole(test::FakeCluster& cluster, http::Timers& timers)
      : cluster_(cluster), timers_(timers) {}
  net::awaitable<Result<http::Response>> send(http::Endpoint to, http::Request request,
                                              std::chrono::milliseconds deadline) override {
    if (to.host == "10.0.0.3") {
      co_await timers_.sleep_for(deadline);
      co_return Error{Errc::kUnknownOutcome, "no answer"};
    }
    co_return co_await cluster_.send(std::move(to), std::move(request), deadline);
  }

 private:
  test::FakeCluster& cluster_;
  http::Timers& timers_;
};

/// n3 is as in the black hole.
net::awaitable<Result<http::CertificateInfo>> shown_unless_frozen(http::Timers* timers,
                                                                  http::Endpoint of) {
  if (of.host == "10.0.0.3") {
    co_await timers->sleep_for(std::chrono::seconds(15));
    co_return Error{Errc::kUnavailable, "no answer in time"};
  }
  http::CertificateInfo shown;
  shown.serial = "1";
  shown.not_after = format_ticks(Ticks(650'000'000'000'000'000));
  co_return shown;
}

TEST_F(ObserverTest, AFrozenNodeIsNotWaitedForTwice) {
  BlackHole hole(cluster_, time_);
  Observer observer(Network{
      .client = hole,
      .timers = time_,
      .clock = time_,
      .credentials = credentials_,
      .log = null_log(),
      .served_certificate = [this](http::Endpoint of) { return shown_unless_frozen(&time_, of); }});
  for (auto& node : config_.nodes) {
    node.url.replace(0, 4, "https");
    node.agent_url.clear();
  }
  for (const auto* look : {"first", "second"}) {
    const auto began = time_.monotonic();
    const auto snapshot = result_of(observer.take(config_));
    EXPECT_LT(time_.monotonic() - began, std::chrono::seconds(20)) << look;
    EXPECT_FALSE(snapshot.find("n3")->answered);
    EXPECT_EQ(snapshot.find("n1")->certificates.size(), 1U);
  }
}

TEST_F(ObserverTest, ALimitedLookTellsWhatItHasSeenByThen) {
  BlackHole hole(cluster_, time_);
  observer_ = Observer(Network{.client = hole,
                               .timers = time_,
                               .clock = time_,
                               .credentials = credentials_,
                               .log = null_log()});
  const auto began = time_.monotonic();
  std::optional<planner::ClusterSnapshot> snapshot;
  net::io_context context{1};
  net::co_spawn(context,
                observer_.take(config_, Depth::kThorough, std::chrono::milliseconds(3'000)),
                [&snapshot](std::exception_ptr, planner::ClusterSnapshot seen) {
                  snapshot = std::move(seen);
                });
  ASSERT_TRUE(time_.run(context, [&] { return snapshot.has_value(); }, std::chrono::seconds(60)));
  EXPECT_LE(time_.monotonic() - began, std::chrono::milliseconds(3'100));
  EXPECT_TRUE(snapshot->find("n1")->answered);
  EXPECT_TRUE(snapshot->find("n2")->agent_answered);
  EXPECT_FALSE(snapshot->find("n3")->answered);
  EXPECT_EQ(snapshot->find("n3")->problem, "no answer in time");
  EXPECT_FALSE(snapshot->find("n3")->agent_answered);
}

}  // namespace
}  // namespace verger::controller
