#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "tests/e2e/certificate_rollout/rollout_case.h"

/// Certificates of three running nodes are changed by one run, under write load.
namespace verger::test {
namespace {

class Rollout : public RolloutCase {};

TEST_F(Rollout, RenewsLeavesOfTheSameAuthorityWhileWritesGoOn) {
  start();
  const auto before = served();
  SteadyWriter writer(cluster_, both_roots_);
  ASSERT_TRUE(writer.wait_for(5)) << cluster_.logs();
  const auto run = roll_out("house");
  EXPECT_TRUE(writer.wait_for(5)) << cluster_.logs();
  writer.stop();
  expect_changed(run, before);
  EXPECT_EQ(writer.failed(), 0);
  print_figures("same authority", run, before, served(), &writer);
}

TEST_F(Rollout, ChangesTheAuthorityWhileWritesGoOn) {
  start();
  const auto before = served();
  SteadyWriter writer(cluster_, both_roots_);
  ASSERT_TRUE(writer.wait_for(5)) << cluster_.logs();
  const auto run = roll_out("next");
  EXPECT_TRUE(writer.wait_for(5)) << cluster_.logs();
  writer.stop();
  expect_changed(run, before);
  EXPECT_EQ(writer.failed(), 0);
  for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
    // The old root is gone: a leaf of the former authority is no longer accepted.
    std::string roots;
    for (const auto& file :
         std::filesystem::directory_iterator(cluster_.certificates_of(i) / "roots")) {
      // The copy of what was before, which an agent keeps, is not read by servers.
      if (file.path().extension() == ".crt") {
        roots += file_text(file.path());
      }
    }
    EXPECT_EQ(roots.find(file_text(cluster_.authority().root())), std::string::npos);
    EXPECT_NE(roots.find(file_text(next_.root())), std::string::npos);
  }
  print_figures("new authority", run, before, served(), &writer);
}

TEST_F(Rollout, BringsAnIntermediateAndDropsItAgain) {
  const auto at = [&](const std::string& name) { return (directory_.path() / name).string(); };
  const auto made =
      run({program("verger"), "cert", "create-ca", "--out", at("between"), "--ca-certificate",
           cluster_.authority().root().string(), "--ca-key", cluster_.authority().key().string()});
  ASSERT_EQ(made.status, 0) << made.err;
  const auto authorities = cluster_.controller_directory() / "authorities";
  std::ofstream(authorities / "between.crt")
      << file_text(at("between/ca.crt")) << file_text(cluster_.authority().root());
  std::filesystem::copy_file(at("between/ca.key"), authorities / "between.key");
  start();
  auto before = served();
  const auto with = roll_out("between");
  expect_changed(with, before);
  print_figures("intermediate", with, before, served(), nullptr);
  before = served();
  const auto without = roll_out("house");
  expect_changed(without, before);
  print_figures("without intermediate", without, before, served(), nullptr);
}

TEST_F(Rollout, ChangesTheCommonNameWhileWritesGoOn) {
  start();
  const auto before = served();
  SteadyWriter writer(cluster_, both_roots_);
  ASSERT_TRUE(writer.wait_for(5)) << cluster_.logs();
  const auto run = roll_out("house", {"--common-name", "orders-node"});
  EXPECT_TRUE(writer.wait_for(5)) << cluster_.logs();
  writer.stop();
  expect_changed(run, before);
  EXPECT_EQ(writer.failed(), 0);
  print_figures("changed common name", run, before, served(), &writer);
}

/// n3 was started with a file of options that cannot be read any longer: each of its reloads fails.
class RolloutWithOptionsOfFiles : public RolloutCase {
 protected:
  RolloutWithOptionsOfFiles()
      : RolloutCase(options_of({.agent_arguments = {"--config", "{node}/node.yaml"}})) {
    for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
      std::ofstream(options_file(i)) << "log-level: info\n";
    }
  }
  std::filesystem::path options_file(std::size_t index) const {
    return cluster_.node_directory(index).parent_path() / "node.yaml";
  }
};

TEST_F(RolloutWithOptionsOfFiles, ANodeThatCannotReloadUndoesAll) {
  start();
  const auto before = served();
  const auto files = live_files();
  SteadyWriter writer(cluster_, both_roots_);
  ASSERT_TRUE(writer.wait_for(5)) << cluster_.logs();
  std::ofstream(options_file(1)) << "no: [yaml\n";
  const auto run = roll_out("house");
  EXPECT_TRUE(writer.wait_for(5)) << cluster_.logs();
  writer.stop();
  expect_as_before(run, before, files);
  EXPECT_EQ(writer.failed(), 0);
  // Once it can, the same change works.
  std::ofstream(options_file(1)) << "log-level: info\n";
  expect_changed(roll_out("house"), before);
}

}  // namespace
}  // namespace verger::test
