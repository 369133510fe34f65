#pragma once

#include <array>
#include <chrono>
#include <gtest/gtest.h>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/support/processes/real_cluster.h"
#include "tests/support/processes/steady_writer.h"
#include "tests/support/temp_directory.h"

namespace verger::test {

/// The age at which nodes make their connections to others anew.
inline constexpr std::chrono::milliseconds kConnectionLifetime{700};

/// Three embedded nodes with TLS, agents and a vergerd that can sign as "house", the authority of
/// the nodes' present certificates, and as "next", a new one.
class RolloutCase : public ::testing::Test {
 protected:
  using Serials = std::array<std::string, RealCluster::kNodes>;

  explicit RolloutCase(RealCluster::Options options = options_of({}));
  static RealCluster::Options options_of(RealCluster::Options more);

  void start();
  /// What each node shows to a new connection now; empty: nothing.
  Serials served();
  /// Certificates, keys and roots of each node: names, modes and contents.
  std::array<std::string, RealCluster::kNodes> live_files() const;
  /// Plans and applies a change, signed by `authority`, and waits for its end. `more`: options.
  nlohmann::json roll_out(const std::string& authority, const std::vector<std::string>& more = {});
  std::string start_rollout(const std::string& authority,
                            const std::vector<std::string>& more = {});
  /// That the run ended well and every node shows the serial which the report has.
  void expect_changed(const nlohmann::json& run, const Serials& before);
  /// That it did not, and every node has and shows what it had.
  void expect_as_before(const nlohmann::json& run, const Serials& before,
                        const std::array<std::string, RealCluster::kNodes>& files);
  /// Prints what the acceptance table wants.
  static void print_figures(const char* what, const nlohmann::json& run, const Serials& before,
                            const Serials& after, const SteadyWriter* writer);

  TempDirectory directory_;
  /// An agent beside a node in another process takes it for a server, which loads RSA keys alone.
  std::string key_type_;
  RealCluster cluster_;
  OpensslAuthority next_;
  std::filesystem::path both_roots_;
  HttpsCaller caller_;
};

}  // namespace verger::test
