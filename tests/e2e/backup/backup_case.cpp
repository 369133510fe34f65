#include "tests/e2e/backup/backup_case.h"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
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
  const auto done = cluster_.verger_once_settled(words);
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

std::string BackupCase::a_backup(std::vector<std::string> more) {
  back_up("create", std::move(more));
  const auto all = backups();
  if (all.empty()) {
    throw std::runtime_error("there is no backup" + cluster_.logs());
  }
  return all.front().at("id").get<std::string>();
}

void BackupCase::keep_copies() const {
  for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
    const auto place = cluster_.node_directory(i).parent_path();
    const auto copy = [&place](const char* to) {
      return fmt::format("rm -rf {0}/{1}; cp -a {0}/db {0}/{1}\n", place.string(), to);
    };
    const auto start = file_text(place / "start.sh");
    std::ofstream(place / "start.sh") << copy("started") << start;
    // As a service manager's command, it ends once the process has; what nobody waits for stays a
    // process without files.
    std::ofstream(place / "stop.sh", std::ios::app)
        << fmt::format(
               "while ls /proc/$(cat {}/start.sh.pid)/fd 2>/dev/null | grep -q .; do sleep 0.05; "
               "done\n",
               place.string())
        << copy("stopped");
  }
}

void BackupCase::expect_former_files(std::size_t index) const {
  const auto place = cluster_.node_directory(index).parent_path();
  const auto files_of = [](const std::filesystem::path& directory) {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      if (entry.is_regular_file() && entry.path().filename() != "verger.lock") {
        files[std::filesystem::relative(entry.path(), directory)] = file_text(entry.path());
      }
    }
    return files;
  };
  ASSERT_TRUE(std::filesystem::exists(place / "stopped")) << index;
  ASSERT_TRUE(std::filesystem::exists(place / "started")) << index;
  const auto stopped = files_of(place / "stopped");
  const auto started = files_of(place / "started");
  EXPECT_GT(stopped.size(), 5U);
  for (const auto& [name, content] : started) {
    const auto former = stopped.find(name);
    EXPECT_TRUE(former != stopped.end() && former->second == content) << index << ": " << name;
  }
  EXPECT_EQ(started.size(), stopped.size()) << index;
}

json BackupCase::wait_for_step(const std::string& run, const std::string& kind,
                               const std::string& node, const std::string& state) {
  json found;
  eventually(seconds(60), [&] {
    const auto shown = cluster_.verger_json({"run", "show", run});
    for (const auto& stage : shown.is_object() ? shown.at("stages") : json::array()) {
      for (const auto& step : stage.at("steps")) {
        if (step.at("kind") == kind && step.at("node") == node && step.at("state") == state) {
          found = step;
        }
      }
    }
    return !found.is_null();
  });
  return found;
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

int BackupCase::events_at(const std::string& url) { return written_steadily_at(caller_, url); }

int BackupCase::expect_events_everywhere(int acknowledged) {
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
  return seen[0];
}

void BackupCase::expect_writes() {
  const auto before = expect_events_everywhere(0);
  SteadyWriter writer(cluster_, {});  // those that are there already are accepted again
  EXPECT_TRUE(writer.wait_for(before + 10)) << cluster_.logs();
  writer.stop();
  EXPECT_EQ(expect_events_everywhere(before + 10), writer.written());
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
