#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/e2e/growth/growing_cluster.h"

/// Three voters become five, and three again, while the cluster is written to.
namespace verger::test {
namespace {

using std::chrono::seconds;

class Resize : public GrowingCluster {
 protected:
  Resize() : GrowingCluster(/*config_files=*/true) {}
  Finished resize(const std::vector<std::vector<std::string>>& options) const {
    return run_once_settled(grow_words(options), seconds(90));
  }
};

TEST_F(Resize, ThreeVotersBecomeFiveAndThreeAgainUnderWrites) {
  start_and_back_up();
  const NewMachine n4(cluster_, "n4", /*read_only_replica=*/false, {}, 5);
  const NewMachine n5(cluster_, "n5", /*read_only_replica=*/false, {}, 5);
  const auto before = file_text(cluster_.config_file(0));
  const auto grown =
      resize({{"--to", "5", "--repository", "main"}, n4.as_options(), n5.as_options()});
  ASSERT_EQ(grown.status, 0) << grown.out << grown.err << n4.logs() << n5.logs() << cluster_.logs();
  EXPECT_TRUE(grown.out.contains("the cluster has 5 voters instead of 3: n4 and n5 joined"))
      << grown.out;
  EXPECT_EQ(registered(), (std::vector<std::string>{"n1", "n2", "n3", "n4", "n5"}));
  ASSERT_TRUE(writer_->wait_for(10)) << cluster_.logs();
  const std::vector<std::string> stay{cluster_.node_url(0), cluster_.node_url(1),
                                      cluster_.node_url(2)};
  auto all = stay;
  all.insert(all.end(), {n4.url(), n5.url()});
  expect_acknowledged_on(all, seconds(30));
  fmt::print("{}", grown.out);

  const auto shrunk = resize({{"--to", "3", "--leaving", "n4,n5"}});
  ASSERT_EQ(shrunk.status, 0) << shrunk.out << shrunk.err << cluster_.logs();
  EXPECT_EQ(registered(), (std::vector<std::string>{"n1", "n2", "n3"}));
  EXPECT_FALSE(n4.server_runs() || n5.server_runs());
  EXPECT_EQ(file_text(cluster_.config_file(0)), before) << "every byte";
  ASSERT_TRUE(writer_->wait_for(10)) << cluster_.logs();
  writer_->stop();
  expect_written_on(stay, seconds(30));
  fmt::print("{}", shrunk.out);
}

}  // namespace
}  // namespace verger::test
