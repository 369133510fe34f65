#pragma once

#include <array>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/real_cluster.h"
#include "tests/support/processes/steady_writer.h"

namespace verger::test {

/// Three embedded nodes as services, an agent beside each, and a vergerd; all agents have the
/// repository "main".
class BackupCase : public ::testing::Test {
 protected:
  explicit BackupCase(RealCluster::Options options = {.separate_agents = true,
                                                      .role = "node",
                                                      .services = true,
                                                      .backups = true});

  void start();
  /// Runs `verger backup TASK orders …` to the end of its run, which has to be a good one.
  void back_up(const std::string& task, std::vector<std::string> more = {});
  /// Newest first, as the command line lists them.
  nlohmann::json backups() const;
  /// That there is one alone.
  nlohmann::json the_backup() const;
  std::string leader() const;
  /// By name: "n2" is 1.
  static std::size_t index_of(const std::string& node) {
    return static_cast<std::size_t>(node.at(1) - '1');
  }

  /// The server dies and all that it had is gone.
  void destroy(std::size_t index) const;
  /// Plans a restore and starts it; the run's id.
  std::string start_restore(const std::vector<std::string>& more);
  /// The same to its end, which has to be a good one.
  nlohmann::json restore(const std::vector<std::string>& more);

  /// Of the stream of SteadyWriter: how many events a node has, in their order from the first. -1:
  /// it does not answer, or one is not what was written.
  int events_at(std::size_t index);
  /// That each node has at least `acknowledged` of them, and all as many.
  void expect_events_everywhere(int acknowledged);
  /// That the logs of all nodes are the same: their readable digests, and their logical ones.
  void expect_equal_digests();
  static nlohmann::json digest_of(const std::filesystem::path& database);

  RealCluster cluster_;
  HttpsCaller caller_;
};

}  // namespace verger::test
