#include "nodeagent/external/online_access.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/base/unique_fd.h"
#include "tests/support/results.h"
#include "tests/support/temp_directory.h"

/// Whether work on a running server's files is possible: sockets in a directory of the machine.
namespace verger::external {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A process that listens on the socket of a server, and answers nothing.
class ListeningServer {
 public:
  explicit ListeningServer(const Path& socket)
      : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0);
    EXPECT_EQ(::listen(socket_.get(), 4), 0);
  }
  /// The file stays, as after a kill.
  void die() { socket_.reset(); }

 private:
  UniqueFd socket_;
};

class OnlineAccessLook : public ::testing::Test {
 protected:
  OnlineAccessLook() { ok(posix_file_system().make_directories(place_.index_directory())); }
  [[nodiscard]] Path socket(std::string_view name = "eventstore.sock") const {
    return place_.database / name;
  }
  [[nodiscard]] std::string problem(std::string_view version = "24.6.0") const {
    return look_at_online_access(place_, version).problem;
  }

  test::TempDirectory directory_;
  DatabasePlace place_{.database = directory_.path() / "db", .index = {}};
};

TEST_F(OnlineAccessLook, IsPossibleWhereTheServersSocketListens) {
  const ListeningServer server(socket());
  const auto look = look_at_online_access(place_, "24.6.0");
  EXPECT_EQ(look.problem, "");
  EXPECT_EQ(look.socket.path, socket().string());
  EXPECT_EQ(look.socket.package, "event_store.client.redaction");
  EXPECT_TRUE(look.one_file_system);
}

TEST_F(OnlineAccessLook, KnowsTheNameOfLaterServers) {
  const ListeningServer server(socket("kurrent.sock"));
  const auto look = look_at_online_access(place_, "25.1.0");
  EXPECT_EQ(look.problem, "");
  EXPECT_EQ(look.socket.package, "kurrent.client.redaction");
}

TEST_F(OnlineAccessLook, NeedsVersion236) {
  const ListeningServer server(socket());
  EXPECT_THAT(problem("22.10.5"), HasSubstr("from 23.6 on"));
  EXPECT_EQ(problem("23.6.0"), "");
  EXPECT_THAT(problem(""), HasSubstr("does not answer"));
  EXPECT_THAT(problem("<unknown>"), HasSubstr("tells nothing"));
}

TEST_F(OnlineAccessLook, NeedsASocketOnWhichTheServerListens) {
  EXPECT_THAT(problem(), HasSubstr("EnableUnixSocket"));
  EXPECT_THAT(problem(), Not(HasSubstr("redact"))) << "plans of scavenges show it, too";
  ListeningServer server(socket());
  server.die();
  EXPECT_THAT(problem(), HasSubstr("no process listens there"));
}

TEST_F(OnlineAccessLook, LeavesAServerWithAnArchiveAlone) {
  const ListeningServer server(socket());
  std::string archive = "the server has an archive";
  const OnlineAccess access(
      place_,
      {.files = posix_file_system(),
       .clock = system_clock(),
       .random = system_random(),
       .log = null_log()},
      http::system_timers(), [] { return std::string("25.1.0"); }, [&archive] { return archive; });
  EXPECT_EQ(access.look().problem, archive);
  archive.clear();
  EXPECT_EQ(access.look().problem, "");
}

TEST_F(OnlineAccessLook, NeedsAProcessWhoseFilesTheServerCanUse) {
  const ListeningServer server(socket());
  const auto look =
      look_at_online_access(place_, "24.6.0", FileMaker{.user = ::geteuid() + 1, .groups = {}});
  EXPECT_THAT(look.problem, HasSubstr("could not use files"));
}

TEST_F(OnlineAccessLook, NeedsASocketOfTheDirectorysOwner) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root gives files away";
  }
  const ListeningServer server(socket());
  ASSERT_EQ(::lchown(socket().c_str(), 4711, 4711), 0);
  EXPECT_THAT(problem(), HasSubstr("belongs to the user 4711"));
  ASSERT_EQ(::lchown(place_.database.c_str(), 4711, 4711), 0);
  EXPECT_EQ(problem(), "");
}

}  // namespace
}  // namespace verger::external
