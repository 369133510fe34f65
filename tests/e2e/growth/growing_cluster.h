#pragma once

#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

#include "tests/e2e/growth/new_machine.h"
#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/real_cluster.h"
#include "tests/support/processes/steady_writer.h"

namespace verger::test {

/// Three nodes with a backup that are written to, and to which others are added.
class GrowingCluster : public ::testing::Test {
 protected:
  /// `config_files`: the servers have their size and seeds from files (RealCluster::Options).
  explicit GrowingCluster(bool config_files = false)
      : cluster_({.separate_agents = true,
                  .role = "node",
                  .services = true,
                  .config_files = config_files,
                  .backups = true}) {}

  /// What was written after the backup comes by replication to those that join from it.
  void start_and_back_up(std::chrono::seconds patience_of_writer = std::chrono::seconds(20));
  /// `verger` with these words, once more until its run has ended: on a busy machine nodes elect
  /// another leader before the plan, or between it and its start. The last answer at `limit`.
  [[nodiscard]] Finished run_once_settled(const std::vector<std::string>& words,
                                          std::chrono::seconds limit) const;
  /// `verger cluster grow` to the end of its run, with these options.
  static std::vector<std::string> grow_words(const std::vector<std::vector<std::string>>& options);
  /// Names; none where vergerd does not answer.
  [[nodiscard]] std::vector<std::string> registered() const;
  /// Each of them gets what was acknowledged, and all have as many. The writer has stopped.
  void expect_written_on(const std::vector<std::string>& urls, std::chrono::seconds limit);
  /// Each of them gets what is acknowledged by now, while more is written.
  void expect_acknowledged_on(const std::vector<std::string>& urls, std::chrono::seconds limit);

  RealCluster cluster_;
  std::optional<SteadyWriter> writer_;
  HttpsCaller caller_;

 private:
  /// Asks each how many it has until `enough` of the answers; fails the test at `limit`.
  void expect_seen(const std::vector<std::string>& urls, std::chrono::seconds limit,
                   const std::function<bool(const std::vector<int>& seen)>& enough);
};

}  // namespace verger::test
