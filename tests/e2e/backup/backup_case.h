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

  /// A verified backup of a running node; its id.
  std::string a_backup(std::vector<std::string> more = {});
  /// The server dies and all that it had is gone.
  void destroy(std::size_t index) const;
  /// From now on the services of the nodes leave a copy of the database as it is once the server
  /// has stopped ("stopped"), and as it is just before its next start ("started").
  void keep_copies() const;
  /// That these copies of a node are equal, and were made: it was started with its former files.
  void expect_former_files(std::size_t index) const;
  /// Waits until a run is at a step of this kind, on a node or on the cluster (empty); null after a
  /// minute.
  nlohmann::json wait_for_step(const std::string& run, const std::string& kind,
                               const std::string& node, const std::string& state);
  /// Plans a restore and starts it; the run's id.
  std::string start_restore(const std::vector<std::string>& more);
  /// The same to its end, which has to be a good one.
  nlohmann::json restore(const std::vector<std::string>& more);

  /// Of the stream of SteadyWriter: how many events a node has, in their order from the first. -1:
  /// it does not answer, or one is not what was written.
  int events_at(std::size_t index) { return events_at(cluster_.node_url(index)); }
  int events_at(const std::string& url);
  /// That each node has at least `acknowledged` of them, and all as many. How many that is.
  int expect_events_everywhere(int acknowledged);
  /// That the cluster accepts further events, and all nodes get them.
  void expect_writes();
  /// That the logs of all nodes are the same: their readable digests, and their logical ones.
  void expect_equal_digests();
  static nlohmann::json digest_of(const std::filesystem::path& database);

  RealCluster cluster_;
  HttpsCaller caller_;
};

}  // namespace verger::test
