#include "tests/e2e/backup/backup_case.h"

#include <filesystem>
#include <fmt/format.h>
#include <sstream>
#include <stdexcept>

namespace verger::test {

using nlohmann::json;
using std::chrono::seconds;

BackupCase::BackupCase(RealCluster::Options options) : cluster_(std::move(options)) {}

void BackupCase::start() {
  cluster_.start_all();
  cluster_.register_cluster();
}

void BackupCase::back_up(const std::string& task, std::vector<std::string> more) {
  std::vector<std::string> words{"backup", task, "orders", "--yes", "--wait"};
  words.insert(words.end(), more.begin(), more.end());
  const auto done = cluster_.verger(words);
  ASSERT_EQ(done.status, 0) << done.out << done.err << cluster_.logs();
}

json BackupCase::backups() const {
  const auto listed = cluster_.verger({"backup", "list", "orders", "-o", "json"});
  auto out = json::array();
  std::istringstream lines(listed.out);
  for (std::string line; std::getline(lines, line);) {
    out.push_back(json::parse(line));
  }
  return out;
}

json BackupCase::the_backup() const {
  const auto all = backups();
  if (all.size() != 1) {
    throw std::runtime_error(
        fmt::format("there are {} backups: {}{}", all.size(), all.dump(1), cluster_.logs()));
  }
  return all.front();
}

std::string BackupCase::leader() const {
  const auto shown = cluster_.verger_json({"cluster", "show", "orders"});
  return shown.is_object() ? shown.at("snapshot").value("leader", std::string()) : std::string();
}

void BackupCase::destroy(std::size_t index) const {
  cluster_.kill_server(index);
  for (const auto& entry : std::filesystem::directory_iterator(cluster_.node_directory(index))) {
    std::filesystem::remove_all(entry.path());
  }
}

std::string BackupCase::start_restore(const std::vector<std::string>& more) {
  std::vector<std::string> words{"--repository", "main"};
  words.insert(words.end(), more.begin(), more.end());
  return cluster_.start_run("restore", words);
}

json BackupCase::restore(const std::vector<std::string>& more) {
  const auto run = cluster_.wait_for_run(start_restore(more), seconds(180));
  EXPECT_TRUE(run.is_object()) << "it did not end" << cluster_.logs();
  EXPECT_EQ(run.value("state", ""), "done") << run.dump(1) << cluster_.logs();
  return run;
}

int BackupCase::events_at(std::size_t index) {
  return written_steadily_at(caller_, cluster_.node_url(index));
}

void BackupCase::expect_events_everywhere(int acknowledged) {
  std::array<int, RealCluster::kNodes> seen{};
  EXPECT_TRUE(eventually(seconds(20),
                         [&] {
                           for (std::size_t i = 0; i < seen.size(); ++i) {
                             seen.at(i) = events_at(i);
                           }
                           return seen[0] >= acknowledged && seen[1] == seen[0] &&
                                  seen[2] == seen[0];
                         }))
      << fmt::format("{} acknowledged; {}, {}, {} there", acknowledged, seen[0], seen[1], seen[2])
      << cluster_.logs();
}

json BackupCase::digest_of(const std::filesystem::path& database) {
  const auto printed = run({program("verger-db"), "digest", database.string(), "-o", "json"});
  EXPECT_EQ(printed.status, 0) << printed.err;
  auto digest = json::parse(printed.out, nullptr, false);
  return digest.is_object() ? json{{"end", digest["end"]},
                                   {"logical", digest["logical"]},
                                   {"readable", digest["readable"]}}
                            : json();
}

void BackupCase::expect_equal_digests() {
  ASSERT_EQ(cluster_.wait_until_settled(), "");
  // A node may write while one after the other is read.
  std::array<json, RealCluster::kNodes> digests;
  EXPECT_TRUE(eventually(seconds(20),
                         [&] {
                           for (std::size_t i = 0; i < digests.size(); ++i) {
                             digests.at(i) = digest_of(cluster_.node_directory(i));
                           }
                           return digests[0].is_object() && digests[0] == digests[1] &&
                                  digests[0] == digests[2];
                         }))
      << digests[0].dump() << digests[1].dump() << digests[2].dump() << cluster_.logs();
}

}  // namespace verger::test
