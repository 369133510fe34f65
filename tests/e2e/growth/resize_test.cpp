#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/e2e/growth/new_machine.h"
#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/steady_writer.h"

/// Three voters become five, and three again, while the cluster is written to; on the way vergerd
/// and an agent are killed (SIGKILL).
namespace verger::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

class Resize : public ::testing::Test {
 protected:
  /// Of the command, once its run has ended.
  Finished resize(std::vector<std::string> more) const {
    std::vector<std::string> words{"cluster", "grow", "orders", "--yes", "--wait"};
    words.insert(words.end(), more.begin(), more.end());
    Finished done;
    eventually(seconds(90), [&] {
      done = cluster_.verger(words);
      return done.status == 0 || done.status == 1;
    });
    return done;
  }
  std::vector<std::string> registered() const {
    std::vector<std::string> out;
    const auto shown = cluster_.verger_json({"cluster", "show", "orders"});
    for (const auto& node : shown.value("nodes", json::array())) {
      out.push_back(node.value("name", ""));
    }
    return out;
  }
  /// Each of them has what is acknowledged by now, while more is written.
  void expect_acknowledged_on(const std::vector<std::string>& urls) {
    const auto acknowledged = writer_->written();
    std::vector<int> seen;
    EXPECT_TRUE(eventually(seconds(30),
                           [&] {
                             seen.clear();
                             for (const auto& url : urls) {
                               seen.push_back(written_steadily_at(caller_, url));
                             }
                             return std::ranges::all_of(
                                 seen, [acknowledged](int each) { return each >= acknowledged; });
                           }))
        << acknowledged << " acknowledged; there: " << ::testing::PrintToString(seen)
        << cluster_.logs();
  }
  /// Each of them has what was acknowledged, and all have as many; the writer has stopped.
  void expect_written_on(const std::vector<std::string>& urls) {
    std::vector<int> seen;
    EXPECT_TRUE(eventually(seconds(30),
                           [&] {
                             seen.clear();
                             for (const auto& url : urls) {
                               seen.push_back(written_steadily_at(caller_, url));
                             }
                             return seen.front() >= writer_->written() &&
                                    std::ranges::all_of(
                                        seen, [&seen](int each) { return each == seen.front(); });
                           }))
        << writer_->written() << " acknowledged; there: " << ::testing::PrintToString(seen)
        << cluster_.logs();
  }
  std::vector<std::string> urls() const {
    return {cluster_.node_url(0), cluster_.node_url(1), cluster_.node_url(2)};
  }

  RealCluster cluster_{{.separate_agents = true,
                        .role = "node",
                        .services = true,
                        .config_files = true,
                        .backups = true}};
  std::optional<SteadyWriter> writer_;
  HttpsCaller caller_;
};

TEST_F(Resize, ThreeVotersBecomeFiveAndThreeAgainUnderWrites) {
  cluster_.start_all();
  cluster_.register_cluster();
  writer_.emplace(cluster_, std::filesystem::path());
  ASSERT_TRUE(writer_->wait_for(20)) << cluster_.logs();
  const auto made = cluster_.verger_once_settled(
      {"backup", "create", "orders", "--repository", "main", "--yes", "--wait"});
  ASSERT_EQ(made.status, 0) << made.out << made.err << cluster_.logs();
  const NewMachine n4(cluster_, "n4", /*read_only_replica=*/false, {}, 5);
  const NewMachine n5(cluster_, "n5", /*read_only_replica=*/false, {}, 5);
  const auto before = file_text(cluster_.config_file(0));
  auto words = std::vector<std::string>{"--to", "5", "--repository", "main"};
  for (const auto& list : {n4.as_options(), n5.as_options()}) {
    words.insert(words.end(), list.begin(), list.end());
  }
  const auto grown = resize(words);
  ASSERT_EQ(grown.status, 0) << grown.out << grown.err << n4.logs() << n5.logs() << cluster_.logs();
  EXPECT_TRUE(grown.out.contains("the cluster has 5 voters instead of 3: n4 and n5 joined"))
      << grown.out;
  EXPECT_EQ(registered(), (std::vector<std::string>{"n1", "n2", "n3", "n4", "n5"}));
  ASSERT_TRUE(writer_->wait_for(10)) << cluster_.logs();
  auto all = urls();
  all.insert(all.end(), {n4.url(), n5.url()});
  expect_acknowledged_on(all);
  fmt::print("{}", grown.out);

  const auto shrunk = resize({"--to", "3", "--leaving", "n4,n5"});
  if (shrunk.status != 0) {
    // One of those that leave leads by now.
    GTEST_FAIL() << shrunk.out << shrunk.err << cluster_.logs();
  }
  EXPECT_EQ(registered(), (std::vector<std::string>{"n1", "n2", "n3"}));
  EXPECT_FALSE(n4.server_runs() || n5.server_runs());
  EXPECT_EQ(file_text(cluster_.config_file(0)), before) << "every byte";
  ASSERT_TRUE(writer_->wait_for(10)) << cluster_.logs();
  writer_->stop();
  expect_written_on(urls());
  fmt::print("{}", shrunk.out);
}

}  // namespace
}  // namespace verger::test
