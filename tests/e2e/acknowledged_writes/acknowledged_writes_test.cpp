// Real nodes that are killed and paused while clients write: what was acknowledged is on every
// node in the end, once and in its place, and all nodes have the same log. VERGER_SEED_OFFSET
// gives other seeds than the suite's.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <signal.h>
#include <thread>

#include <nlohmann/json.hpp>

#include "engine/base/random.h"
#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/real_cluster.h"

namespace verger::test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kMisfortunes = 6;
constexpr int kWriters = 3;
constexpr int kPage = 100;
/// A paused node keeps its connections: whoever asked it tries another one after this.
constexpr milliseconds kPatience{700};

/// Appends event after event to a stream of its own, each at its place, through whichever node;
/// what was not acknowledged is sent again under its id.
class Writer {
 public:
  Writer(const RealCluster& cluster, std::uint64_t seed, int number)
      : cluster_(cluster),
        random_(seed),
        caller_({}, kPatience),
        stream_(fmt::format("account-{}", number)),
        thread_([this](const std::stop_token& stop) { write(stop); }) {}

  void stop() {
    thread_.request_stop();
    thread_.join();
  }
  [[nodiscard]] const std::string& stream() const { return stream_; }
  [[nodiscard]] int acknowledged() const { return acknowledged_; }
  [[nodiscard]] int refused() const { return refused_; }
  /// The id of each event that was sent, in order. After stop().
  [[nodiscard]] const std::vector<std::string>& ids() const { return ids_; }
  /// An answer that contradicts what had been acknowledged. After stop().
  [[nodiscard]] const std::string& contradiction() const { return contradiction_; }

 private:
  void write(const std::stop_token& stop) {
    while (!stop.stop_requested() && contradiction_.empty()) {
      ids_.push_back(random_.uuid().to_string());
      while (!stop.stop_requested() && contradiction_.empty() && !sent()) {
        ++refused_;
        pause_briefly();
      }
    }
  }

  /// Sends the newest event once.
  bool sent() {
    const auto number = static_cast<int>(ids_.size()) - 1;
    http::Request request{.method = "POST",
                          .target = "/streams/" + stream_,
                          .headers = {{"Content-Type", "application/json"},
                                      {"ES-EventType", "written"},
                                      {"ES-EventId", ids_.back()},
                                      {"ES-ExpectedVersion", std::to_string(number - 1)}},
                          .body = fmt::format(R"({{"n":{}}})", number)};
    const auto answer =
        caller_.ask(cluster_.node_url(random_.below(RealCluster::kNodes)), std::move(request));
    if (answer && answer->status == 400) {
      contradiction_ = fmt::format("{}, event {}: {}", stream_, number, answer->reason);
    }
    if (!answer || answer->status != 201) {
      return false;
    }
    ++acknowledged_;
    return true;
  }

  const RealCluster& cluster_;
  SeededRandom random_;
  HttpsCaller caller_;
  std::string stream_;
  std::vector<std::string> ids_;
  std::string contradiction_;
  std::atomic<int> acknowledged_ = 0;
  std::atomic<int> refused_ = 0;
  std::jthread thread_;
};

class History {
 public:
  explicit History(std::uint64_t seed)
      : random_(seed), cluster_({.with_agents = false, .role = "node", .life = seconds(150)}) {}

  void go() {
    for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
      cluster_.start_node(i);
    }
    ASSERT_TRUE(eventually(seconds(30), [&] { return level(); })) << cluster_.logs();
    for (int i = 0; i < kWriters; ++i) {
      writers_.push_back(std::make_unique<Writer>(cluster_, random_.next(), i));
    }
    for (int i = 0; i < kMisfortunes; ++i) {
      ASSERT_TRUE(progress(10)) << "nothing is acknowledged any more" << cluster_.logs();
      misfortune();
    }
    ASSERT_TRUE(progress(10)) << cluster_.logs();
    for (auto& writer : writers_) {
      writer->stop();
      EXPECT_EQ(writer->contradiction(), "");
    }
    ASSERT_TRUE(eventually(seconds(30), [&] { return level(); })) << cluster_.logs();
    for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
      for (const auto& writer : writers_) {
        check(i, *writer);
      }
    }
    expect_one_log();
  }

 private:
  /// One leader, two followers, the same end of the log on all.
  bool level() {
    std::set<std::int64_t> ends;
    std::multiset<std::string> states;
    for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
      const auto answer = caller_.get(cluster_.node_url(i), "/gossip");
      if (!answer || answer->status != 200) {
        return false;
      }
      const auto gossip = json::parse(answer->body);
      for (const auto& member : gossip.at("members")) {
        if (member.at("httpEndPointPort") == gossip.at("serverPort")) {
          ends.insert(member.at("writerCheckpoint").get<std::int64_t>());
          states.insert(member.at("state").get<std::string>());
        }
      }
    }
    return ends.size() == 1 &&
           states == std::multiset<std::string>{"Follower", "Follower", "Leader"};
  }

  int total(int (Writer::*count)() const) const {
    int sum = 0;
    for (const auto& writer : writers_) {
      sum += (writer.get()->*count)();
    }
    return sum;
  }

  /// Until so many more writes are acknowledged.
  bool progress(int more) {
    const auto target = total(&Writer::acknowledged) + more;
    return eventually(seconds(30), [&] { return total(&Writer::acknowledged) >= target; });
  }

  /// Until the writers were refused so often, or others write all the same.
  void outage(int refusals) {
    const auto refused = total(&Writer::refused) + refusals;
    const auto acknowledged = total(&Writer::acknowledged) + 100;
    eventually(seconds(5), [&] {
      return total(&Writer::refused) >= refused || total(&Writer::acknowledged) >= acknowledged;
    });
  }

  void misfortune() {
    const auto victim = random_.below(RealCluster::kNodes);
    const auto other = (victim + 1 + random_.below(2)) % RealCluster::kNodes;
    const auto refusals = static_cast<int>(3 + random_.below(12));
    switch (random_.below(4)) {
      case 0:  // killed, with the rest writing on
        cluster_.node(victim).kill();
        outage(refusals);
        cluster_.start_node(victim);
        break;
      case 1:  // silent, and then it goes on with what it believed before
        cluster_.node(victim).signal(SIGSTOP);
        outage(refusals);
        cluster_.node(victim).signal(SIGCONT);
        break;
      case 2:  // two at once: no majority
        cluster_.node(victim).kill();
        cluster_.node(other).kill();
        outage(refusals);
        cluster_.start_node(other);
        outage(refusals);
        cluster_.start_node(victim);
        break;
      default:  // one is killed while another one is silent
        cluster_.node(other).signal(SIGSTOP);
        cluster_.node(victim).kill();
        outage(refusals);
        cluster_.start_node(victim);
        cluster_.node(other).signal(SIGCONT);
        break;
    }
  }

  /// What node `i` tells of a stream: every acknowledged event at its number, at most one more.
  void check(std::size_t i, const Writer& writer) {
    std::vector<std::string> found;
    for (bool more = true; more;) {
      const auto answer =
          caller_.ask(cluster_.node_url(i),
                      {.method = "GET",
                       .target = fmt::format("/streams/{}/{}/forward/{}?embed=body",
                                             writer.stream(), found.size(), kPage),
                       .headers = {{"Accept", "application/json"}, {"ES-RequireLeader", "false"}}});
      ASSERT_TRUE(answer.has_value()) << answer.error().message;
      ASSERT_EQ(answer->status, 200) << answer->body;
      const auto page = json::parse(answer->body).at("entries");
      for (auto entry = page.rbegin(); entry != page.rend(); ++entry) {
        EXPECT_EQ(entry->at("eventNumber"), found.size());
        found.push_back(entry->at("eventId").get<std::string>());
      }
      more = page.size() == kPage;
    }
    const auto acknowledged = static_cast<std::size_t>(writer.acknowledged());
    EXPECT_GE(found.size(), acknowledged) << "node " << i << " lost acknowledged events";
    EXPECT_LE(found.size(), writer.ids().size());
    EXPECT_TRUE(std::equal(found.begin(), found.end(), writer.ids().begin()))
        << "node " << i << " has other events in " << writer.stream();
  }

  /// The nodes end one after the other: those that are left may elect a leader, whose epoch is then
  /// behind what all of them have.
  void expect_one_log() {
    std::vector<std::string> logs;
    for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
      cluster_.node(i).signal(SIGTERM);
    }
    for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
      ASSERT_EQ(cluster_.node(i).wait(seconds(20)), 0) << cluster_.logs();
      const auto records =
          run({program("verger-db"), "records", cluster_.node_directory(i).string(), "-o", "json"});
      ASSERT_EQ(records.status, 0) << records.err;
      EXPECT_GT(records.out.size(), 1000U);
      logs.push_back(records.out);
    }
    std::ranges::sort(logs, {}, &std::string::size);
    EXPECT_TRUE(logs[1].starts_with(logs[0])) << "the nodes' logs are not the same";
    EXPECT_TRUE(logs[2].starts_with(logs[1])) << "the nodes' logs are not the same";
    EXPECT_LT(std::ranges::count(std::string_view(logs[2]).substr(logs[0].size()), '\n'), 10);
  }

  SeededRandom random_;
  RealCluster cluster_;
  HttpsCaller caller_;
  std::vector<std::unique_ptr<Writer>> writers_;
};

class AcknowledgedWrites : public testing::TestWithParam<std::uint64_t> {};

TEST_P(AcknowledgedWrites, AreOnAllNodesAfterKillsAndPauses) {
  const char* offset = std::getenv("VERGER_SEED_OFFSET");
  History(GetParam() + (offset == nullptr ? 0 : std::strtoull(offset, nullptr, 10))).go();
}

INSTANTIATE_TEST_SUITE_P(Seeds, AcknowledgedWrites, testing::Range<std::uint64_t>(1, 11));

}  // namespace
}  // namespace verger::test
