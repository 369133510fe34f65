#include <chrono>
#include <csignal>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "tests/e2e/rolling_scavenge/checks.h"
#include "tests/support/processes/etcd.h"
#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/real_cluster.h"

/// Two vergerds share a journal in etcd: real processes, three nodes.
namespace verger::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::HasSubstr;
using Which = RealCluster::Which;

class PairFixture : public testing::Test {
 protected:
  void SetUp() override {
    for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
      cluster_.start_node(i);
    }
  }
  /// The first one acts, the second stands by.
  void start_both(const Environment& of_first = {}) {
    cluster_.start_controller(of_first);
    ASSERT_TRUE(becomes(Which::kFirst, "ok")) << cluster_.logs();
    cluster_.start_second_controller();
    ASSERT_TRUE(becomes(Which::kSecond, "standby")) << cluster_.logs();
  }
  json health(Which which) {
    const auto answer = caller_.get(cluster_.controller_url(which), "/api/v1/health");
    return answer && answer->status == 200 ? json::parse(answer->body) : json::object();
  }
  bool becomes(Which which, const std::string& status, seconds limit = seconds(30)) {
    return eventually(limit, [&] { return health(which).value("status", "") == status; });
  }
  /// URL of the one that acts, as this one says; empty: it does not know of one.
  std::string acting(Which which) {
    const auto said = health(which);
    return said.contains("acting") && said["acting"].is_object() ? said["acting"].value("url", "")
                                                                 : "";
  }
  std::string both() const {
    return fmt::format("{},{}", cluster_.controller_url(Which::kFirst),
                       cluster_.controller_url(Which::kSecond));
  }
  json run_of(const std::string& id) {
    auto seen = cluster_.verger_json({"run", "show", id});
    return seen.is_object() ? seen : json::object();
  }
  json wait_for_end(const std::string& id) {
    json run;
    eventually(seconds(120), [&] {
      run = run_of(id);
      const auto state = run.value("state", "");
      return state == "done" || state == "done-with-differences" || state == "failed" ||
             state == "cancelled";
    });
    return run;
  }
  /// How often a scavenge began on a node, as the node itself says.
  int scavenges_begun(std::size_t node) {
    const auto answer = caller_.get(cluster_.node_url(node), "/streams/$scavenges?embed=body");
    if (!answer || answer->status != 200) {
      return 0;
    }
    int count = 0;
    for (const auto& entry : json::parse(answer->body).at("entries")) {
      count += entry.value("eventType", "") == "$scavengeStarted" ? 1 : 0;
    }
    return count;
  }
  void expect_each_scavenged_once(const json& run) {
    expect_a_good_end(run);
    // All nodes' scavenges are in the one replicated stream.
    EXPECT_EQ(scavenges_begun(0), 3);
  }

  EtcdServer etcd_{nullptr, 32 * 1024 * 1024};
  RealCluster cluster_{RealCluster::Options{.journal_etcd = etcd_.url()}};
  HttpsCaller caller_;
};

class PairTest : public PairFixture {};
class PairKilled : public PairFixture, public testing::WithParamInterface<const char*> {};

TEST_F(PairTest, OneActsAndTheOtherSaysWho) {
  start_both();
  ASSERT_TRUE(eventually(seconds(10), [&] { return acting(Which::kSecond) != ""; }));
  EXPECT_EQ(acting(Which::kSecond), cluster_.controller_url(Which::kFirst));
  const auto standing_by = health(Which::kSecond);
  EXPECT_EQ(standing_by.at("controller_epoch"), health(Which::kFirst).at("controller_epoch"));
  cluster_.talk_to(Which::kSecond);
  const auto asked = cluster_.verger({"cluster", "list"});
  EXPECT_EQ(asked.status, 0) << asked.err;
  EXPECT_THAT(asked.err, HasSubstr(cluster_.controller_url(Which::kFirst) +
                                   " is active and received the request"));
  const auto answer = caller_.get(cluster_.controller_url(Which::kSecond), "/api/v1/runs");
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(json::parse(answer->body).at("code"), "standby");
  // One that ends in order leaves at once; the other has what it knew.
  cluster_.talk_to(Which::kFirst);
  cluster_.register_cluster();
  const auto begin = std::chrono::steady_clock::now();
  cluster_.controller().signal(SIGTERM);
  ASSERT_TRUE(becomes(Which::kSecond, "ok")) << cluster_.logs();
  // How long it takes is a figure; what makes it short is the order below.
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begin);
  RecordProperty("handed_over_after_ms", std::to_string(took.count()));
  fmt::print("handed over after {} ms\n", took.count());
  const auto listed = cluster_.verger({"--controller", both(), "cluster", "list"});
  EXPECT_THAT(listed.out, HasSubstr("orders")) << listed.err;
  cluster_.talk_to(Which::kSecond);
  // And the first one, back again, stands by.
  ASSERT_TRUE(cluster_.controller().wait(seconds(30)).has_value());
  const auto log = cluster_.logs();
  const auto given_back = log.find("the lease was given back");
  ASSERT_NE(given_back, std::string::npos) << log;
  EXPECT_LT(given_back, log.find("the API is closed")) << "nothing is waited for before: " << log;
  cluster_.start_controller();
  ASSERT_TRUE(becomes(Which::kFirst, "standby")) << cluster_.logs();
}

int times(const std::string& text, std::string_view part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST_F(PairTest, OneThatStandsByWithAnotherAuthoritySaysSoBeforeItIsNeeded) {
  start_both();  // each has made an authority of its own
  json warnings;
  ASSERT_TRUE(eventually(seconds(20), [&] {
    warnings = health(Which::kSecond).value("warnings", json::array());
    return !warnings.empty();
  })) << cluster_.logs();
  EXPECT_THAT(warnings.at(0).get<std::string>(),
              ::testing::AllOf(HasSubstr("would reach no agent"), HasSubstr("--agents-ca-file"),
                               HasSubstr(cluster_.controller_url(Which::kFirst))));
  // However often it looks, it is one line.
  const auto looks = etcd_.answered("Txn", "OK") + etcd_.answered("Range", "OK");
  ASSERT_TRUE(eventually(seconds(60), [&] {
    return etcd_.answered("Txn", "OK") + etcd_.answered("Range", "OK") > looks + 20;
  }));
  EXPECT_EQ(
      times(cluster_.log_of_controller(Which::kSecond), "this controller could not take over"), 1)
      << cluster_.logs();
  // With a copy of the file it has nothing to say.
  cluster_.second_controller().signal(SIGTERM);
  ASSERT_TRUE(cluster_.second_controller().wait(seconds(30)).has_value());
  std::filesystem::copy_file(cluster_.controller_directory(Which::kFirst) / "agents-ca.pem",
                             cluster_.controller_directory(Which::kSecond) / "agents-ca.pem",
                             std::filesystem::copy_options::overwrite_existing);
  cluster_.start_second_controller();
  ASSERT_TRUE(eventually(seconds(30), [&] { return acting(Which::kSecond) != ""; }))
      << cluster_.logs();
  EXPECT_TRUE(health(Which::kSecond).value("warnings", json::array()).empty()) << cluster_.logs();
}

TEST_F(PairTest, WhileEtcdHasNoSpaceTheOneThatStandsBySaysItOnce) {
  start_both();
  etcd_.fill();
  cluster_.controller().kill();
  const auto refused = [&] { return etcd_.answered("LeaseGrant", "ResourceExhausted"); };
  ASSERT_TRUE(eventually(seconds(90), [&] { return refused() >= 5; })) << cluster_.logs();
  EXPECT_THAT(health(Which::kSecond).value("reason", ""), HasSubstr("space exceeded"));
  const auto log = cluster_.log_of_controller(Which::kSecond);
  EXPECT_EQ(times(log, "space exceeded"), 1) << refused() << " tries: " << log;
  // And without a restart it takes over once there is room.
  etcd_.make_room();
  EXPECT_TRUE(becomes(Which::kSecond, "ok", seconds(60))) << cluster_.logs();
}

TEST_F(PairTest, ClustersWithoutAgentsAreRefusedAsNothingFencesThere) {
  start_both();
  const auto added = cluster_.verger({"cluster", "add", "blind", "--node", cluster_.node_url(0)});
  EXPECT_EQ(added.status, 2);
  EXPECT_THAT(added.err, HasSubstr("verger-agent"));
  EXPECT_EQ(cluster_.verger({"cluster", "list"}).out.find("blind"), std::string::npos);
}

TEST_P(PairKilled, TheOtherEndsTheRun) {
  const auto reached =
      std::filesystem::temp_directory_path() / fmt::format("verger-pair-{}", ::getpid());
  start_both({{"VERGER_FAILPOINT", GetParam()}, {"VERGER_FAILPOINT_LOG", reached.string()}});
  cluster_.register_cluster();
  const auto id = cluster_.start_scavenge_run();
  // A person who names both watches from the first to the end.
  const auto watched = cluster_.verger({"--controller", both(), "run", "watch", id});
  SCOPED_TRACE(cluster_.logs());
  EXPECT_EQ(watched.status, 0) << watched.out << watched.err;
  EXPECT_FALSE(cluster_.controller().running());
  EXPECT_EQ(health(Which::kSecond).value("status", ""), "ok");
  cluster_.talk_to(Which::kSecond);
  expect_each_scavenged_once(run_of(id));
  std::filesystem::remove(reached);
}

INSTANTIATE_TEST_SUITE_P(At, PairKilled,
                         testing::Values("controller.scavenge.after-intent",
                                         "controller.scavenge.after-act:2",
                                         "controller.resign.after-act"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (auto& c : name) {
                             c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           }
                           return name;
                         });

TEST_F(PairTest, OneThatSleptPastItsLeaseDoesNothingAnyMore) {
  start_both();
  cluster_.register_cluster();
  const auto id = cluster_.start_scavenge_run();
  ASSERT_TRUE(eventually(seconds(60), [&] { return scavenges_begun(0) > 0; })) << cluster_.logs();
  cluster_.controller().signal(SIGSTOP);
  ASSERT_TRUE(becomes(Which::kSecond, "ok")) << cluster_.logs();
  const auto epoch = health(Which::kSecond).at("controller_epoch");
  cluster_.controller().signal(SIGCONT);
  // It wakes in the middle of the run that the other one continues.
  ASSERT_TRUE(becomes(Which::kFirst, "standby")) << cluster_.logs();
  cluster_.talk_to(Which::kSecond);
  const auto run = wait_for_end(id);
  SCOPED_TRACE(cluster_.logs());
  expect_each_scavenged_once(run);
  EXPECT_EQ(health(Which::kSecond).value("status", ""), "ok");
  EXPECT_EQ(health(Which::kSecond).at("controller_epoch"), epoch);
  EXPECT_EQ(health(Which::kFirst).value("status", ""), "standby");
  // It learns who is active by its next look at the store, which may come after the run's end.
  EXPECT_TRUE(eventually(seconds(30), [&] {
    return acting(Which::kFirst) == cluster_.controller_url(Which::kSecond);
  })) << acting(Which::kFirst);
  // Everything since was journaled under the new epoch, by one.
  EXPECT_EQ(cluster_.verger({"audit", "verify"}).status, 0);
}

enum class Away : std::uint8_t { kGone, kHangs };

class PairWithoutStore : public PairFixture, public testing::WithParamInterface<Away> {};

TEST_P(PairWithoutStore, BeginsNothingAndGoesOnAfterwards) {
  start_both();
  cluster_.register_cluster();
  const auto id = cluster_.start_scavenge_run();
  ASSERT_TRUE(eventually(seconds(60), [&] { return scavenges_begun(0) > 0; })) << cluster_.logs();
  const bool hangs = GetParam() == Away::kHangs;
  hangs ? etcd_.freeze() : etcd_.kill();
  const auto begun = scavenges_begun(0);
  ASSERT_TRUE(becomes(Which::kFirst, "standby")) << cluster_.logs();
  ASSERT_TRUE(eventually(seconds(10), [&] {
    return health(Which::kFirst).value("reason", "").contains("cannot be reached");
  })) << cluster_.logs();
  EXPECT_EQ(acting(Which::kFirst), "");
  EXPECT_EQ(health(Which::kSecond).value("status", ""), "standby");
  EXPECT_EQ(cluster_.verger({"run", "list"}).status, 2);
  // In this time a run begins several. One may have been intended before the store went away.
  EXPECT_LE(scavenges_begun(0), begun + 1);
  EXPECT_LT(scavenges_begun(0), 3);
  hangs ? etcd_.thaw() : etcd_.start();
  ASSERT_TRUE(eventually(seconds(30), [&] {
    for (const auto which : {Which::kFirst, Which::kSecond}) {
      if (health(which).value("status", "") == "ok") {
        cluster_.talk_to(which);
        return true;
      }
    }
    return false;
  })) << cluster_.logs();
  const auto run = wait_for_end(id);
  SCOPED_TRACE(cluster_.logs());
  expect_each_scavenged_once(run);
}

INSTANTIATE_TEST_SUITE_P(Etcd, PairWithoutStore, testing::Values(Away::kGone, Away::kHangs),
                         [](const auto& info) {
                           return std::string(info.param == Away::kGone ? "Gone" : "Hangs");
                         });

}  // namespace
}  // namespace verger::test
