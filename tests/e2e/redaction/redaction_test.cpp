#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

#include <nlohmann/json.hpp>

#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/real_cluster.h"
#include "tests/support/processes/steady_writer.h"

/// Events that are redacted on all nodes of a cluster under write load: real processes.
namespace verger::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

constexpr int kEvents = 100;

/// As it stands in the files.
std::string secret(int number) {
  return fmt::format("Erika Mustermann {:03}, Heidestrasse 17, 51147 Koeln, born 1964-08-12",
                     number);
}

/// How many of the secrets are anywhere below the directory.
int secrets_below(const std::filesystem::path& directory) {
  int found = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) {
      continue;
    }
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    for (auto at = bytes.find("Erika Mustermann "); at != std::string::npos;
         at = bytes.find("Erika Mustermann ", at + 1)) {
      ++found;
    }
  }
  return found;
}

/// How the nodes are redacted: `offline`: the agents can stop their servers, and these have no Unix
/// socket; `online`: the reverse.
struct Way {
  std::string strategy;
  bool stops = false;
};

class Redaction : public ::testing::TestWithParam<Way> {
 protected:
  Redaction() : cluster_({.separate_agents = true, .role = "node", .services = GetParam().stops}) {
    cluster_.start_all(GetParam().stops ? Environment()
                                        : Environment{{"VERGER_NODE_ENABLE_UNIX_SOCKET", "true"}});
    cluster_.register_cluster();
  }
  /// To the leader, or by way of the node that is asked.
  void write_secrets() {
    for (int number = 0; number < kEvents; ++number) {
      const bool written = eventually(seconds(20), [&] {
        const auto answer = caller_.ask(
            cluster_.node_url(static_cast<std::size_t>(number) % RealCluster::kNodes),
            {.method = "POST",
             .target = "/streams/customer-7",
             .headers = {{"Content-Type", "application/json"},
                         {"ES-EventType", "customer"},
                         {"ES-EventId", fmt::format("5d1f2f6e-3f37-4b0f-8a52-{:012x}", number)}},
             .body = json{{"name", secret(number)}}.dump()});
        return answer.has_value() && answer->status == 201;
      });
      ASSERT_TRUE(written) << number << cluster_.logs();
    }
  }
  /// A scavenge point completes the chunk on all nodes.
  void complete_chunks() {
    const auto run = cluster_.wait_for_run(cluster_.start_scavenge_run(), seconds(90));
    ASSERT_TRUE(run.is_object()) << cluster_.logs();
    ASSERT_EQ(run.at("state"), "done") << run.dump(1) << cluster_.logs();
  }
  std::filesystem::path events_file() {
    const auto path = directory_.path() / "events";
    std::ofstream file(path);
    file << "# request 4711\n";
    for (int number = 0; number < kEvents; ++number) {
      file << number << "@customer-7\n";
    }
    return path;
  }
  /// The hash of a plan, again while the cluster is still settling.
  std::string plan() {
    const auto events = events_file().string();
    json made;
    eventually(seconds(60), [&] {
      made = cluster_.verger_json({"redact", "plan", "orders", "--events-file", events, "--reason",
                                   "request 4711", "--strategy", GetParam().strategy});
      return made.is_object();
    });
    return made.is_object() ? made.at("hash").get<std::string>() : std::string();
  }
  json redact() {
    const auto begun = cluster_.verger_json({"redact", "apply", "orders", plan(), "--yes"});
    return begun.is_object()
               ? cluster_.wait_for_run(begun.at("id").get<std::string>(), seconds(150))
               : json();
  }
  int secrets_on_all_nodes() const {
    int found = 0;
    for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
      found += secrets_below(cluster_.node_directory(i));
    }
    return found;
  }

  TempDirectory directory_;
  RealCluster cluster_;
  HttpsCaller caller_;
};

TEST_P(Redaction, LeavesNoTextOnAnyNodeWhileTheClusterIsWritten) {
  write_secrets();
  complete_chunks();
  ASSERT_EQ(cluster_.wait_until_settled(), "");
  const auto before = secrets_on_all_nodes();
  ASSERT_GE(before, static_cast<int>(RealCluster::kNodes) * kEvents);
  SteadyWriter writer(cluster_, {});
  ASSERT_TRUE(writer.wait_for(10)) << cluster_.logs();
  const auto begun = std::chrono::steady_clock::now();
  const auto run = redact();
  const auto took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun);
  ASSERT_TRUE(run.is_object()) << "the run did not end in time" << cluster_.logs();
  ASSERT_TRUE(writer.wait_for(5)) << cluster_.logs();
  writer.stop();
  EXPECT_EQ(writer.failed(), 0);
  EXPECT_EQ(run.at("state"), "done") << run.dump(1) << cluster_.logs();
  EXPECT_EQ(secrets_on_all_nodes(), 0);
  fmt::print(
      "{}: redacted {} events on 3 nodes in {:.1f} s; texts before {}, after {}; {} writes, {} "
      "failed, {} tried again, slowest {} ms\n",
      GetParam().strategy, kEvents, took.count(), before, secrets_on_all_nodes(), writer.written(),
      writer.failed(), writer.tries_in_vain(), writer.slowest().count());

  const auto& report = run.at("report");
  EXPECT_EQ(report.at("outcome"), "redacted") << report.dump(1);
  EXPECT_EQ(report.at("reason"), "request 4711");
  EXPECT_EQ(report.at("events").size(), static_cast<std::size_t>(kEvents));
  ASSERT_EQ(report.at("nodes").size(), RealCluster::kNodes);
  for (const auto& node : report.at("nodes")) {
    EXPECT_EQ(node.at("state"), "redacted") << node.dump(1);
    EXPECT_EQ(node.at("proven"), true) << node.dump(1);
    EXPECT_EQ(node.at("blanked"), kEvents) << node.dump(1);
    EXPECT_EQ(node.at("online"), !GetParam().stops) << node.dump(1);
    EXPECT_EQ(node.at("confirmed"), true) << node.dump(1);
  }
  EXPECT_EQ(run.dump().find("Mustermann"), std::string::npos);

  // The same once more: nothing is stopped.
  ASSERT_EQ(cluster_.wait_until_settled(), "");
  const auto again = redact();
  ASSERT_TRUE(again.is_object()) << cluster_.logs();
  EXPECT_EQ(again.at("state"), "done") << again.dump(1);
  for (const auto& node : again.at("report").at("nodes")) {
    EXPECT_EQ(node.at("state"), "already") << node.dump(1);
  }
}

INSTANTIATE_TEST_SUITE_P(EachWay, Redaction,
                         ::testing::Values(Way{"offline", true}, Way{"online", false}),
                         [](const auto& each) { return each.param.strategy; });

}  // namespace
}  // namespace verger::test
