#include "tests/e2e/certificate_rollout/rollout_case.h"

#include <fmt/format.h>
#include <fstream>
#include <set>

#include "tests/support/tree_hash.h"

namespace verger::test {

using nlohmann::json;
using std::chrono::seconds;

RealCluster::Options RolloutCase::options_of(RealCluster::Options more) {
  more.tls = true;
  more.agent_arguments.insert(
      more.agent_arguments.end(),
      {"--connection-lifetime-ms", std::to_string(kConnectionLifetime.count())});
  return more;
}

RolloutCase::RolloutCase(RealCluster::Options options)
    : key_type_(options.separate_agents ? "rsa-2048" : "ec-p256"),
      cluster_(std::move(options)),
      next_(directory_.path() / "next", "Next root"),
      both_roots_(directory_.path() / "both.crt"),
      caller_([this] {
        std::ofstream(both_roots_)
            << file_text(cluster_.authority().root()) << file_text(next_.root());
        return both_roots_;
      }()) {
  cluster_.sign_as("house", cluster_.authority());
  cluster_.sign_as("next", next_);
  cluster_.accept_nodes_of(next_);
}

void RolloutCase::start() {
  cluster_.start_all();
  cluster_.register_cluster();
}

RolloutCase::Serials RolloutCase::served() {
  Serials out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out.at(i) = caller_.served_serial(cluster_.node_url(i));
  }
  return out;
}

std::array<std::string, RealCluster::kNodes> RolloutCase::live_files() const {
  std::array<std::string, RealCluster::kNodes> out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out.at(i) = tree_hash(cluster_.certificates_of(i));
  }
  return out;
}

std::string RolloutCase::start_rollout(const std::string& authority,
                                       const std::vector<std::string>& more) {
  // The nodes' connections are made anew within the time that the cluster is watched.
  std::vector<std::string> words{"--authority", authority,    "--key-type",
                                 key_type_,     "--watch-ms", "3000"};
  words.insert(words.end(), more.begin(), more.end());
  return cluster_.start_run("certificates", words);
}

json RolloutCase::roll_out(const std::string& authority, const std::vector<std::string>& more) {
  auto run = cluster_.wait_for_run(start_rollout(authority, more), seconds(120));
  EXPECT_TRUE(run.is_object()) << "it did not end" << cluster_.logs();
  return run;
}

void RolloutCase::expect_changed(const json& run, const Serials& before) {
  ASSERT_TRUE(run.is_object());
  ASSERT_EQ(run.at("state"), "done") << run.dump(1) << cluster_.logs();
  const auto& report = run.at("report");
  EXPECT_EQ(report.at("outcome"), "changed") << report.dump(1);
  ASSERT_EQ(report.at("nodes").size(), RealCluster::kNodes);
  const auto shown = served();
  for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
    const auto& node = report.at("nodes").at(i);
    EXPECT_EQ(node.at("serial_before"), before.at(i));
    EXPECT_EQ(node.at("serial_after"), shown.at(i)) << "what a new connection sees counts";
    EXPECT_NE(shown.at(i), before.at(i));
    EXPECT_FALSE(shown.at(i).empty());
  }
  EXPECT_TRUE(report.at("seconds_to_proof").is_number()) << report.dump(1);
  EXPECT_TRUE(eventually(seconds(10), [&] { return all_alive_everywhere(cluster_, caller_); }))
      << cluster_.logs();
}

void RolloutCase::expect_as_before(const json& run, const Serials& before,
                                   const std::array<std::string, RealCluster::kNodes>& files) {
  ASSERT_TRUE(run.is_object());
  EXPECT_EQ(run.at("state"), "failed") << run.dump(1) << cluster_.logs();
  EXPECT_EQ(served(), before) << run.dump(1) << cluster_.logs();
  EXPECT_EQ(live_files(), files) << "byte-equal, names and modes, too" << run.dump(1);
  EXPECT_TRUE(eventually(seconds(10), [&] { return all_alive_everywhere(cluster_, caller_); }))
      << cluster_.logs();
}

void RolloutCase::print_figures(const char* what, const json& run, const Serials& before,
                                const Serials& after, const SteadyWriter* writer) {
  const auto& report = run.at("report");
  fmt::print("{}: {} s from the first switch to the last proof\n", what,
             report.value("seconds_to_proof", json()).dump());
  for (std::size_t i = 0; i < before.size(); ++i) {
    fmt::print("  n{}: {} -> {}\n", i + 1, before.at(i), after.at(i));
  }
  if (writer != nullptr) {
    fmt::print("  writes: {}, failed: {}, requests in vain: {}, slowest: {} ms\n",
               writer->written(), writer->failed(), writer->tries_in_vain(),
               writer->slowest().count());
  }
}

}  // namespace verger::test
