#include "nodeagent/external/directory_proof.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_directory.h"

/// Real directories, and a /proc that the test writes.
namespace verger::external {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

class DirectoryProof : public ::testing::Test {
 protected:
  DirectoryProof() {
    for (const auto* node : {"n2", "n3"}) {
      fs::create_directories(path(node) / "index");
      std::ofstream(path(node) / "chunk-000000.000000") << "x";
    }
    fs::create_directories(path("proc"));
    ours_.place.database = path("n2");
  }
  Path path(const std::string& name) const { return directory_.path() / name; }
  /// A process with a file of a log open, and the root directory that it sees.
  void process(int id, const Path& file, const Path& root = "/") const {
    const auto at = path("proc") / std::to_string(id);
    fs::create_directories(at / "fd");
    fs::create_symlink(file, at / "fd" / "7");
    fs::create_symlink(root, at / "root");
  }
  Result<void> prove(const NodeDirectories& reported) const {
    return prove_directories(ours_, reported, path("proc"));
  }
  NodeDirectories reported(const std::string& node) const {
    return {.database = path(node).string()};
  }
  static void expect_conflict(const Result<void>& proof, const Path& ours, const Path& other) {
    ASSERT_FALSE(proof.has_value());
    EXPECT_EQ(proof.error().code, Errc::kConflict) << proof.error().message;
    EXPECT_THAT(proof.error().message, AllOf(HasSubstr(ours.string()), HasSubstr(other.string())));
  }

  test::TempDirectory directory_;
  ConfiguredDirectories ours_;
};

TEST_F(DirectoryProof, TheNodesOwnDirectoryUnderAnyPath) {
  EXPECT_TRUE(prove(reported("n2")).has_value());
  fs::create_directory_symlink(path("n2"), path("link"));
  EXPECT_TRUE(prove(reported("link")).has_value());
  EXPECT_EQ(directory_identity(path("link")), directory_identity(path("n2")));
  EXPECT_NE(directory_identity(path("n2")), directory_identity(path("n3")));
  EXPECT_EQ(directory_identity(path("none")), "");
}

TEST_F(DirectoryProof, AnotherNodesDirectoryIsRefusedWithBothPaths) {
  expect_conflict(prove(reported("n3")), path("n2"), path("n3"));
}

TEST_F(DirectoryProof, AnotherNodesIndexIsRefusedWithBothPaths) {
  ours_.place.index = path("n3") / "index";
  expect_conflict(prove(reported("n2")), path("n3") / "index", path("n2") / "index");
  auto with_index = reported("n2");
  with_index.index = (path("n3") / "index").string();
  EXPECT_TRUE(prove(with_index).has_value());
}

TEST_F(DirectoryProof, TheFilesThatTheNodesProcessHasOpenCountForMoreThanItsPath) {
  auto of_process = reported("n2");
  of_process.process = 41;
  process(41, path("n3") / "chunk-000000.000000");
  expect_conflict(prove(of_process), path("n2"), path("n2"));
  // A container's process numbers are no others' processes: one without a log says nothing.
  of_process.process = 1;
  process(1, path("n3") / "index");
  EXPECT_TRUE(prove(of_process).has_value());
}

TEST_F(DirectoryProof, AServerInAContainerIsSeenThroughItsProcess) {
  fs::create_directories(path("root/var/lib"));
  fs::create_directory_symlink(path("n2"), path("root/var/lib/db"));
  const NodeDirectories in_container{.database = "/var/lib/db", .process = 1};
  EXPECT_EQ(prove(in_container).error().code, Errc::kUnavailable) << "no process has it open";
  process(77, "/var/lib/db/chunk-000000.000000", path("root"));
  EXPECT_TRUE(prove(in_container).has_value());
  ours_.place.database = path("n3");
  EXPECT_FALSE(prove(in_container).has_value());
}

TEST_F(DirectoryProof, WhereTheProcessCannotBeSeenThePathIsGivenByHand) {
  const NodeDirectories in_container{.database = "/is/not/here/db", .process = 1};
  const auto refused = prove(in_container);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("ServerDb"));
  ours_.server_database = "/is/not/here/../here/db";
  EXPECT_TRUE(prove(in_container).has_value());
  ours_.server_database = "/is/not/here/other";
  expect_conflict(prove(in_container), path("n2"), "/is/not/here/db");
}

TEST_F(DirectoryProof, ANodeThatDoesNotTellItsDirectoryIsKnownByItsProcess) {
  NodeDirectories silent{.process = 41, .why_unknown = "404 Not Found"};
  const auto refused = prove(silent);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("404 Not Found"));
  process(41, path("n2") / "writer.chk");
  EXPECT_TRUE(prove(silent).has_value());
}

TEST(PositionWatchTest, ALogIsNeverBehindItsNodeNorLongAhead) {
  PositionWatch watch;
  EXPECT_TRUE(watch.compare("/db", 100, 100, seconds(0)).has_value());
  EXPECT_TRUE(watch.compare("/db", 100, 150, seconds(1)).has_value());
  EXPECT_EQ(watch.compare("/db", 151, 150, seconds(2)).error().code, Errc::kConflict);
  EXPECT_TRUE(watch.compare("/db", 150, 400, seconds(11)).has_value());
  EXPECT_TRUE(watch.compare("/db", 150, 400, seconds(20)).has_value()) << "not long enough";
  EXPECT_EQ(watch.compare("/db", 399, 400, seconds(22)).error().code, Errc::kConflict);
  watch.reset();
  EXPECT_TRUE(watch.compare("/db", 50, 50, seconds(33)).has_value()) << "another process";
}

}  // namespace
}  // namespace verger::external
