#include "tests/e2e/growth/growing_cluster.h"

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

namespace verger::test {

using nlohmann::json;

void GrowingCluster::start_and_back_up(std::chrono::seconds patience_of_writer) {
  cluster_.start_all();
  cluster_.register_cluster();
  writer_.emplace(cluster_, std::filesystem::path(), patience_of_writer);
  ASSERT_TRUE(writer_->wait_for(20)) << cluster_.logs();
  const auto made = cluster_.verger_once_settled(
      {"backup", "create", "orders", "--repository", "main", "--yes", "--wait"});
  ASSERT_EQ(made.status, 0) << made.out << made.err << cluster_.logs();
  ASSERT_TRUE(writer_->wait_for(20)) << cluster_.logs();
}

Finished GrowingCluster::run_once_settled(const std::vector<std::string>& words,
                                          std::chrono::seconds limit) const {
  Finished done;
  eventually(limit, [&] {
    done = cluster_.verger(words);
    return done.status == 0 || done.status == 1;  // its run has ended
  });
  return done;
}

std::vector<std::string> GrowingCluster::grow_words(
    const std::vector<std::vector<std::string>>& options) {
  std::vector<std::string> words{"cluster", "grow", "orders", "--yes", "--wait"};
  for (const auto& each : options) {
    words.insert(words.end(), each.begin(), each.end());
  }
  return words;
}

std::vector<std::string> GrowingCluster::registered() const {
  std::vector<std::string> out;
  const auto shown = cluster_.verger_json({"cluster", "show", "orders"});
  for (const auto& node : shown.is_object() ? shown.at("nodes") : json::array()) {
    out.push_back(node.value("name", ""));
  }
  return out;
}

void GrowingCluster::expect_written_on(const std::vector<std::string>& urls,
                                       std::chrono::seconds limit) {
  expect_seen(urls, limit, [this](const std::vector<int>& seen) {
    return seen.front() >= writer_->written() &&
           std::ranges::all_of(seen, [&seen](int each) { return each == seen.front(); });
  });
}

void GrowingCluster::expect_acknowledged_on(const std::vector<std::string>& urls,
                                            std::chrono::seconds limit) {
  expect_seen(urls, limit, [acknowledged = writer_->written()](const std::vector<int>& seen) {
    return std::ranges::all_of(seen, [acknowledged](int each) { return each >= acknowledged; });
  });
}

void GrowingCluster::expect_seen(const std::vector<std::string>& urls, std::chrono::seconds limit,
                                 const std::function<bool(const std::vector<int>& seen)>& enough) {
  std::vector<int> seen;
  EXPECT_TRUE(eventually(limit,
                         [&] {
                           seen.clear();
                           for (const auto& url : urls) {
                             seen.push_back(written_steadily_at(caller_, url));
                           }
                           return enough(seen);
                         }))
      << writer_->written() << " acknowledged; there: " << ::testing::PrintToString(seen)
      << cluster_.logs();
}

}  // namespace verger::test
