#include "controller/cluster/survey.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "engine/base/memory_file_system.h"
#include "tests/support/controller/fake_cluster.h"

namespace verger::controller {
namespace {

using std::chrono::seconds;

class NoneForSurvey final : public CredentialStore {
 public:
  Result<Credentials> find(std::string_view) override { return Error{Errc::kNotFound, "none"}; }
};

class SurveyTest : public ::testing::Test {
 protected:
  SurveyTest() {
    EXPECT_TRUE(disk_.make_directories("/j").has_value());
    journal_ = open_sqlite_journal(disk_, "/j/journal.db", time_).value();
    registry_.emplace(*journal_, journal_->begin_epoch("a").value());
    EXPECT_TRUE(registry_->load().has_value());
    ClusterConfig config;
    config.name = "prod";
    for (int i = 1; i <= 3; ++i) {
      config.nodes.push_back({fmt::format("n{}", i), fmt::format("http://10.0.0.{}:2113", i),
                              fmt::format("http://10.0.0.{}:2114", i)});
    }
    EXPECT_TRUE(registry_->add(std::move(config)).has_value());
    observer_.emplace(Network{.client = cluster_,
                              .timers = time_,
                              .clock = time_,
                              .credentials = credentials_,
                              .log = null_log()});
    survey_.emplace(SurveyParts{.executor = context_.get_executor(),
                                .registry = *registry_,
                                .observer = *observer_,
                                .timers = time_,
                                .log = null_log(),
                                .every = seconds(60)});
  }
  void pass(seconds time) {
    time_.run(context_, [] { return false; }, time);
  }
  test::VirtualTime time_;
  test::FakeCluster cluster_{time_};
  NoneForSurvey credentials_;
  MemoryFileSystem disk_;
  net::io_context context_;
  std::unique_ptr<Journal> journal_;
  std::optional<Registry> registry_;
  std::optional<Observer> observer_;
  std::optional<Survey> survey_;
};

TEST_F(SurveyTest, EachClusterIsLookedAtNowAndThenByGossipAndFactsAlone) {
  std::map<std::string, int> asked;
  cluster_.dress = [&asked](const test::FakeNode&, const http::Request& request, http::Response&) {
    ++asked[std::string(request.target.substr(0, request.target.find('?')))];
  };
  EXPECT_EQ(observer_->last_seen("prod"), nullptr);
  survey_->start();
  pass(seconds(5));
  const auto first = observer_->last_seen("prod");
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(first->nodes[2].answered);
  EXPECT_TRUE(first->nodes[2].agent_answered);
  cluster_.node("n3").up = false;
  pass(seconds(120));
  ASSERT_NE(observer_->last_seen("prod"), nullptr);
  EXPECT_FALSE(observer_->last_seen("prod")->nodes[2].answered);
  for (const auto& [target, times] : asked) {
    EXPECT_TRUE(target == "/gossip" || target == "/agent/v1/facts") << target;
    EXPECT_LE(times, 3 * 4) << target;
  }
}

TEST_F(SurveyTest, WhatIsKnownOfARemovedClusterIsForgotten) {
  survey_->start();
  pass(seconds(5));
  ASSERT_NE(observer_->last_seen("prod"), nullptr);
  ASSERT_TRUE(registry_->remove("prod").has_value());
  pass(seconds(120));
  EXPECT_EQ(observer_->last_seen("prod"), nullptr);
}

TEST_F(SurveyTest, AfterItsStopNoNodeIsQueried) {
  survey_->start();
  pass(seconds(5));
  bool stopped = false;
  net::co_spawn(context_, survey_->stop(), [&stopped](std::exception_ptr) { stopped = true; });
  ASSERT_TRUE(time_.run(context_, [&stopped] { return stopped; }, seconds(10)));
  int asked = 0;
  cluster_.dress = [&asked](const auto&, const auto&, auto&) { ++asked; };
  pass(seconds(300));
  EXPECT_EQ(asked, 0);
}

}  // namespace
}  // namespace verger::controller
