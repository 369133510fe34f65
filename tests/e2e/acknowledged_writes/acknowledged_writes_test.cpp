// Real nodes that are killed, paused, cut off from each other and slowed down while clients write
// and read: what was acknowledged is on every node in the end, once and in its place, so is what
// was read, and all nodes have the same log. VERGER_SEED_OFFSET gives other seeds than the suite's.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iostream>
#include <map>
#include <set>
#include <signal.h>
#include <thread>

#include <nlohmann/json.hpp>

#include "engine/base/random.h"
#include "tests/e2e/acknowledged_writes/clients.h"
#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/real_cluster.h"

namespace verger::test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kWriters = 3;
constexpr int kPage = 100;

enum class Fault : std::uint8_t {
  kKilled,
  kPaused,    ///< silent, and then it continues with its old beliefs
  kIsolated,  ///< from both others, both ways
  kPairCut,   ///< both ways; the third reaches both
  kOneWay,    ///< what it sends to the others, or what they send to it, does not arrive
  kSlowDisk,
};

/// For a reader of the test's output.
std::string_view name_of(Fault fault) {
  switch (fault) {
    case Fault::kKilled:
      return "killed";
    case Fault::kPaused:
      return "paused";
    case Fault::kIsolated:
      return "cut off from both";
    case Fault::kPairCut:
      return "cut off from";
    case Fault::kOneWay:
      return "cut off one way";
    case Fault::kSlowDisk:
      return "has a slow disk";
  }
  return "";
}

/// A fault of one node, or of its connections, and how it is to be.
struct Mishap {
  Fault fault{};
  std::size_t node = 0;
  std::size_t other = 0;  ///< of a pair
  bool refused = false;   ///< of a cut: refused, not silent
  bool inbound = false;   ///< of a one-way cut
  NodeLinks::Held held{};
  milliseconds longest_sync{0};
};

std::string details_of(const Mishap& mishap) {
  const auto cut =
      fmt::format(", {}", mishap.refused                             ? "refused"
                          : mishap.held == NodeLinks::Held::kArrives ? "silent, then late"
                                                                     : "silent, then reset");
  switch (mishap.fault) {
    case Fault::kKilled:
    case Fault::kPaused:
      return "";
    case Fault::kIsolated:
      return cut;
    case Fault::kPairCut:
      return fmt::format(" node {}{}", mishap.other, cut);
    case Fault::kOneWay:
      return (mishap.inbound ? ": hears nothing" : ": is not heard") + cut;
    case Fault::kSlowDisk:
      return fmt::format(": up to {} ms", mishap.longest_sync.count());
  }
  return "";
}

class History {
 public:
  explicit History(std::uint64_t seed)
      : random_(seed),
        cluster_({.with_agents = false, .role = "node", .mishaps = true, .life = seconds(150)}) {}

  void go() {
    for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
      cluster_.start_node(i);
    }
    ASSERT_TRUE(eventually(seconds(30), [&] { return level(); })) << cluster_.logs();
    for (int i = 0; i < kWriters; ++i) {
      writers_.push_back(std::make_unique<Writer>(cluster_, random_.next(), i));
    }
    std::vector<std::string> streams;
    for (const auto& writer : writers_) {
      streams.push_back(writer->stream());
    }
    Reader reader(cluster_, random_.next(), std::move(streams));
    for (const auto& together : drawn_mishaps()) {
      ASSERT_TRUE(progress(10)) << "no write is acknowledged" << cluster_.logs();
      happen(together);
    }
    for (auto missing = not_felt(); missing; missing = not_felt()) {
      ASSERT_TRUE(progress(10)) << cluster_.logs();
      happen({*missing});
    }
    ASSERT_TRUE(progress(10)) << cluster_.logs();
    for (auto& writer : writers_) {
      writer->stop();
      EXPECT_EQ(writer->contradiction(), "");
    }
    reader.stop();
    EXPECT_EQ(reader.contradiction(), "");
    report();
    ASSERT_TRUE(eventually(seconds(30), [&] { return level(); })) << cluster_.logs();
    for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
      for (const auto& writer : writers_) {
        check(i, *writer, reader.seen().at(writer->stream()));
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
  void outage() {
    const auto refused = total(&Writer::refused) + static_cast<int>(2 + random_.below(4));
    const auto acknowledged = total(&Writer::acknowledged) + 40;
    eventually(seconds(3), [&] {
      return total(&Writer::refused) >= refused || total(&Writer::acknowledged) >= acknowledged;
    });
  }

  /// Each fault once, and two more, in any order; some of them in pairs.
  std::vector<std::vector<Mishap>> drawn_mishaps() {
    std::vector<Fault> faults{Fault::kKilled,  Fault::kPaused, Fault::kIsolated,
                              Fault::kPairCut, Fault::kOneWay, Fault::kSlowDisk};
    faults.push_back(Fault::kKilled);
    faults.push_back(faults[random_.below(faults.size())]);
    for (auto left = faults.size(); left > 1; --left) {
      std::swap(faults[left - 1], faults[random_.below(left)]);
    }
    const bool isolated_by_refusal = random_.below(2) == 0;
    std::vector<std::vector<Mishap>> drawn;
    for (std::size_t i = 0; i < faults.size(); ++i) {
      Mishap mishap{.fault = faults[i], .node = random_.below(RealCluster::kNodes)};
      mishap.other = (mishap.node + 1 + random_.below(2)) % RealCluster::kNodes;
      // Of the first two kinds of cuts one refuses and one is silent.
      mishap.refused = mishap.fault == Fault::kIsolated  ? isolated_by_refusal
                       : mishap.fault == Fault::kPairCut ? !isolated_by_refusal
                                                         : random_.below(2) == 0;
      mishap.inbound = random_.below(2) == 0;
      mishap.held = random_.below(2) == 0 ? NodeLinks::Held::kArrives : NodeLinks::Held::kLost;
      mishap.longest_sync = milliseconds(20 + random_.below(300));
      // The first two pairs; no node is killed or paused twice at once.
      if (i == 1 || i == 3) {
        auto& first = drawn.back().front();
        if (first.node == mishap.node) {
          mishap.node = mishap.other;
          mishap.other = first.node;
        }
        drawn.back().push_back(mishap);
      } else {
        drawn.push_back({mishap});
      }
    }
    return drawn;
  }

  void happen(const std::vector<Mishap>& together) {
    for (const auto& mishap : together) {
      const auto slow = slow_syncs();
      begin(mishap);
      outage();
      // Others may write on without it: it should fall behind.
      eventually(milliseconds(mishap.fault == Fault::kSlowDisk ? 1000 : 0),
                 [&] { return slow_syncs() >= slow + 8; });
    }
    const bool in_order = random_.below(2) == 0;
    for (std::size_t i = 0; i < together.size(); ++i) {
      if (i > 0) {
        outage();
      }
      end(in_order ? together[i] : together[together.size() - 1 - i]);
    }
  }

  void cut(const Mishap& mishap, std::size_t from, std::size_t to) {
    mishap.refused ? cluster_.links().refuse(from, to) : cluster_.links().silence(from, to);
  }

  void begin(const Mishap& mishap) {
    const auto node = mishap.node;
    std::cout << fmt::format("node {} {}{}\n", node, name_of(mishap.fault), details_of(mishap));
    switch (mishap.fault) {
      case Fault::kKilled:
        cluster_.links().set_down(node, true);
        cluster_.node(node).kill();
        break;
      case Fault::kPaused:
        cluster_.node(node).signal(SIGSTOP);
        break;
      case Fault::kPairCut:
        cut(mishap, node, mishap.other);
        cut(mishap, mishap.other, node);
        break;
      case Fault::kIsolated:
      case Fault::kOneWay:
        for (std::size_t other = 0; other < RealCluster::kNodes; ++other) {
          const bool one_way = mishap.fault == Fault::kOneWay;
          if (other != node && (!one_way || mishap.inbound)) {
            cut(mishap, other, node);
          }
          if (other != node && (!one_way || !mishap.inbound)) {
            cut(mishap, node, other);
          }
        }
        break;
      case Fault::kSlowDisk:
        cluster_.slow_disk(node, mishap.longest_sync);
        break;
    }
  }

  void end(const Mishap& mishap) {
    const auto node = mishap.node;
    switch (mishap.fault) {
      case Fault::kKilled:
        cluster_.start_node(node);
        cluster_.links().set_down(node, false);
        break;
      case Fault::kPaused:
        cluster_.node(node).signal(SIGCONT);
        break;
      case Fault::kPairCut:
        cluster_.links().heal(node, mishap.other, mishap.held);
        break;
      case Fault::kIsolated:
      case Fault::kOneWay:
        cluster_.links().heal(node, (node + 1) % RealCluster::kNodes, mishap.held);
        cluster_.links().heal(node, (node + 2) % RealCluster::kNodes, mishap.held);
        break;
      case Fault::kSlowDisk:
        cluster_.slow_disk(node, milliseconds(0));
        break;
    }
  }

  int slow_syncs() const {
    int count = 0;
    for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
      count += cluster_.slow_syncs(i);
    }
    return count;
  }

  /// Kills and pauses are certain. A cut from a node that is down, say, is not felt: a fault that
  /// nothing was felt of happens again, alone.
  std::optional<Mishap> not_felt() {
    const auto counts = cluster_.links().counts();
    const auto node = random_.below(RealCluster::kNodes);
    if (counts.reset == 0 || counts.held == 0) {
      return Mishap{.fault = Fault::kIsolated, .node = node, .refused = counts.reset == 0};
    }
    if (slow_syncs() == 0) {
      return Mishap{.fault = Fault::kSlowDisk, .node = node, .longest_sync = milliseconds(100)};
    }
    return std::nullopt;
  }

  void report() {
    const auto counts = cluster_.links().counts();
    std::cout << fmt::format(
        "{} writes acknowledged, {} not; {} connections reset, {} pieces held, {} slow syncs\n",
        total(&Writer::acknowledged), total(&Writer::refused), counts.reset, counts.held,
        slow_syncs());
  }

  /// What node `i` says of a stream: every acknowledged event at its number, at most one more, and
  /// what was seen there.
  void check(std::size_t i, const Writer& writer, const std::map<std::size_t, std::string>& seen) {
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
    for (const auto& [number, id] : seen) {
      EXPECT_TRUE(number < found.size() && found[number] == id)
          << "node " << i << " has another event " << number << " than was read";
    }
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

TEST_P(AcknowledgedWrites, AreOnAllNodesAfterEverything) {
  const char* offset = std::getenv("VERGER_SEED_OFFSET");
  History(GetParam() + (offset == nullptr ? 0 : std::strtoull(offset, nullptr, 10))).go();
}

INSTANTIATE_TEST_SUITE_P(Seeds, AcknowledgedWrites, testing::Range<std::uint64_t>(1, 11));

}  // namespace
}  // namespace verger::test
