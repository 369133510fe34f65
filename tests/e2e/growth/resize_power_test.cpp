#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <thread>

#include <nlohmann/json.hpp>

#include "tests/e2e/growth/growing_cluster.h"

/// All machines lose their power at once while the number of voters changes, and boot: the run ends
/// as it would have, nothing that was acknowledged is lost, and no epoch has two leaders.
namespace verger::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

/// Asks all nodes in turn, until it ends, whether they lead, and in which epoch.
class LeaderWatch {
 public:
  explicit LeaderWatch(std::vector<std::string> urls)
      : thread_([this, all = std::move(urls)] {
          HttpsCaller caller({}, seconds(2));
          while (!stop_) {
            for (const auto& url : all) {
              look(caller, url);
            }
            pause_briefly();
          }
        }) {}
  ~LeaderWatch() { end(); }
  LeaderWatch(const LeaderWatch&) = delete;
  LeaderWatch& operator=(const LeaderWatch&) = delete;

  /// Empty, or epochs with more than one leader. Leaders that were seen: `least` or more.
  std::string end(std::size_t least = 0) {
    stop_ = true;
    if (thread_.joinable()) {
      thread_.join();
    }
    return leaders_.size() < least ? fmt::format("{} leaders were seen", leaders_.size())
                                   : problem_;
  }

 private:
  void look(HttpsCaller& caller, const std::string& url) {
    const auto answer = caller.ask(url, {.method = "GET", .target = "/gossip"});
    const auto gossip = answer ? json::parse(answer->body, nullptr, false) : json();
    for (const auto& member : gossip.is_object() ? gossip.at("members") : json::array()) {
      // What it says of itself.
      if (!url.ends_with(fmt::format(":{}", member.at("httpEndPointPort").get<int>())) ||
          member.at("state") != "Leader") {
        continue;
      }
      const auto epoch = member.at("epochNumber").get<int>();
      const auto instance = member.at("instanceId").get<std::string>();
      if (const auto& first = leaders_.try_emplace(epoch, instance).first->second;
          first != instance) {
        problem_ += fmt::format("epoch {}: {} and {}; ", epoch, first, instance);
      }
    }
  }

  std::atomic<bool> stop_ = false;
  std::map<int, std::string> leaders_;  ///< of each epoch
  std::string problem_;
  std::thread thread_;
};

class ResizePower : public GrowingCluster {
 protected:
  ResizePower() : GrowingCluster(/*config_files=*/true) {}

  /// Applies a plan, loses the power where vergerd comes to `failpoint`, and follows the run to its
  /// end.
  json resize_with_power_cut(const std::vector<std::string>& options,
                             const std::string& failpoint) {
    const auto reached = directory_.path() / failpoint;
    cluster_.controller().kill();
    cluster_.start_controller(
        {{"VERGER_FAILPOINT", failpoint}, {"VERGER_FAILPOINT_LOG", reached.string()}});
    // Nodes may elect another leader first, and another one, on a busy machine.
    std::vector<std::string> plan{"plan", "resize", "orders"};
    plan.insert(plan.end(), options.begin(), options.end());
    EXPECT_TRUE(eventually(seconds(90), [&] { return cluster_.verger(plan).status == 0; }))
        << cluster_.logs();
    const auto id = cluster_.start_run("resize", options);
    EXPECT_TRUE(eventually(seconds(90), [&] { return std::filesystem::exists(reached); }))
        << "never reached: " << failpoint << cluster_.logs();
    cluster_.cut_power();
    n4_.cut_power();
    n5_.cut_power();
    cluster_.boot();
    n4_.boot();
    n5_.boot();
    const auto run = cluster_.wait_for_run(id, seconds(180));
    EXPECT_EQ(run.is_object() ? run.value("state", "") : "", "done")
        << run.dump(1) << n4_.logs() << n5_.logs() << cluster_.logs();
    return run;
  }
  std::vector<std::string> growing() const {
    return {"--to",         "5",
            "--repository", "main",
            "--nodes",      fmt::format("n4={},n5={}", n4_.url(), n5_.url()),
            "--agents",     fmt::format("{},{}", n4_.agent_url(), n5_.agent_url())};
  }
  std::vector<std::string> members() const {
    return {cluster_.node_url(0), cluster_.node_url(1), cluster_.node_url(2)};
  }
  std::vector<std::string> all() const {
    auto out = members();
    out.insert(out.end(), {n4_.url(), n5_.url()});
    return out;
  }
  void expect_sizes(int size, std::size_t seeds) const {
    for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
      const auto file = file_text(cluster_.config_file(i));
      EXPECT_TRUE(file.contains(fmt::format("ClusterSize: {} ", size))) << file;
      EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(file, ',')) + 1, seeds) << file;
    }
  }

  static constexpr seconds kPatience{90};
  TempDirectory directory_;
  NewMachine n4_{cluster_, "n4", /*read_only_replica=*/false, {}, 5};
  NewMachine n5_{cluster_, "n5", /*read_only_replica=*/false, {}, 5};
};

/// Two of three count to five, the last one is still to change; and the way back, likewise.
TEST_F(ResizePower, IsLostWhileTheSecondMemberChangesItsSize) {
  start_and_back_up(kPatience);
  LeaderWatch watch(all());
  resize_with_power_cut(growing(), "controller.resize_server.after-act:2");
  EXPECT_EQ(registered().size(), 5U);
  expect_sizes(5, 4);
  ASSERT_TRUE(writer_->wait_for(10)) << cluster_.logs();
  expect_acknowledged_on(all(), seconds(30));

  resize_with_power_cut({"--to", "3", "--leaving", "n4,n5"},
                        "controller.resize_server.after-act:2");
  EXPECT_EQ(registered().size(), 3U);
  expect_sizes(3, 2);
  EXPECT_FALSE(n4_.server_runs() || n5_.server_runs());
  ASSERT_TRUE(writer_->wait_for(10)) << cluster_.logs();
  writer_->stop();
  EXPECT_EQ(writer_->failed(), 0);
  expect_written_on(members(), seconds(30));
  EXPECT_EQ(watch.end(/*least=*/3), "");
}

/// One new voter follows, the other one is being started.
TEST_F(ResizePower, IsLostWhileTheSecondNewVoterStarts) {
  start_and_back_up(kPatience);
  LeaderWatch watch(all());
  resize_with_power_cut(growing(), "controller.resize_start.after-act:2");
  EXPECT_EQ(registered().size(), 5U);
  expect_sizes(5, 4);
  ASSERT_TRUE(writer_->wait_for(10)) << cluster_.logs();
  writer_->stop();
  EXPECT_EQ(writer_->failed(), 0);
  expect_written_on(all(), seconds(30));
  EXPECT_EQ(watch.end(/*least=*/2), "");
}

}  // namespace
}  // namespace verger::test
