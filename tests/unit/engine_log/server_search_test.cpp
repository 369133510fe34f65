#include "engine/log/detail/server_search.h"

#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/random.h"
#include "engine/base/unique_fd.h"
#include "engine/log/transaction_log.h"
#include "tests/support/manual_clock.h"
#include "tests/support/results.h"
#include "tests/support/temp_directory.h"

namespace verger::log {
namespace {

namespace fs = std::filesystem;

/// A made-up /proc with one process that has one file open.
struct FakeProc {
  test::TempDirectory proc;
  test::TempDirectory database;

  void process(const std::string& pid, const std::string& command, const fs::path& file,
               const std::string& flags) {
    const fs::path at = proc.path() / pid;
    fs::create_directories(at / "fd");
    fs::create_directories(at / "fdinfo");
    std::ofstream(at / "cmdline") << command;
    std::ofstream(at / "comm") << fs::path(command.c_str()).filename().string() << "\n";
    fs::create_symlink(file, at / "fd" / "5");
    std::ofstream(at / "fdinfo" / "5") << "pos:\t0\nflags:\t" << flags << "\nmnt_id:\t1\n";
  }
  Result<void> search() { return detail::refuse_running_server(database.path(), proc.path()); }
};

TEST(ServerSearch, FindsTheProcessThatMayWriteAFile) {
  FakeProc fake;
  fake.process("123", "eventstored", fake.database.path() / "chunk-000000.000000", "02100002");
  const auto outcome = fake.search();
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().code, Errc::kRefused);
  EXPECT_NE(outcome.error().message.find("process 123 eventstored"), std::string::npos)
      << outcome.error().message;
  EXPECT_NE(outcome.error().message.find("chunk-000000.000000"), std::string::npos);
}

TEST(ServerSearch, FindsFilesBelowTheDirectory) {
  FakeProc fake;
  fake.process("123", "x", fake.database.path() / "index" / "indexmap", "0100001");
  EXPECT_FALSE(fake.search().has_value());
}

TEST(ServerSearch, LeavesReadersNeighboursAndOurselvesAlone) {
  FakeProc fake;
  fake.process("123", "cat", fake.database.path() / "chunk-000000.000000", "0100000");
  fake.process("124", "x", fs::path(fake.database.path().string() + "2") / "writer.chk", "02");
  fake.process(std::to_string(::getpid()), "x", fake.database.path() / "writer.chk", "02");
  fs::create_directories(fake.proc.path() / "sys");
  ok(fake.search());
}

TEST(ServerSearch, WhatCannotBeReadOfAProcessCountsAgainstIt) {
  // In /proc reading fails where the process ends meanwhile; of a directory it always does.
  FakeProc fake;
  fake.process("123", "eventstored", fake.database.path() / "writer.chk", "02");
  for (const fs::path& file : {fs::path("comm"), fs::path("cmdline"), fs::path("fdinfo") / "5"}) {
    fs::remove(fake.proc.path() / "123" / file);
    fs::create_directory(fake.proc.path() / "123" / file);
  }
  const auto outcome = fake.search();
  ASSERT_FALSE(outcome.has_value());
  EXPECT_NE(outcome.error().message.find("process 123"), std::string::npos)
      << outcome.error().message;
}

TEST(ServerSearch, AProcessThatCannotBeLookedIntoCountsWhenItIsNamedLikeAServer) {
  using namespace std::string_literals;  // the zero belongs to the command line
  for (const auto& [command, refused] : std::vector<std::pair<std::string, bool>>{
           {"systemd", false},
           {"dotnet\0/opt/EventStore.ClusterNode.dll\0--insecure"s, true},
           {"kurrentd", true},
           {"/usr/bin/journalctl\0-f\0-u\0eventstore"s, false},
           {"/usr/share/eventstore/EventStore.ClusterNode\0--config\0x"s, true}}) {
    FakeProc fake;
    fake.process("123", command, fake.database.path() / "writer.chk", "02");
    fs::remove_all(fake.proc.path() / "123" / "fd");
    std::ofstream(fake.proc.path() / "123" / "fd") << "not a directory, so it cannot be listed";
    EXPECT_EQ(!fake.search().has_value(), refused) << command;
  }
}

TEST(ServerSearch, AnUnreadableProcCannotVouchForAnything) {
  const test::TempDirectory database;
  const auto outcome = detail::refuse_running_server(database.path(), database.path() / "none");
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().code, Errc::kRefused);
  EXPECT_NE(outcome.error().message.find("--assume-stopped"), std::string::npos);
}

TEST(ServerSearch, OpeningIsRefusedWhileAnotherProcessHasAFileOpen) {
  const test::TempDirectory database;
  test::ManualClock clock;
  SeededRandom random(1);
  LogOptions options{.access = Access::kWrite, .create = true};
  const auto open = [&] {
    return TransactionLog::open(posix_file_system(), database.path(), options, clock, random,
                                null_log());
  };
  value(open());
  // A child that holds writer.chk open for writing until its standard input ends.
  int wait[2];
  int ready[2];
  ASSERT_EQ(::pipe(wait), 0);
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(wait[1]);
    const int held = ::open((database.path() / "writer.chk").c_str(), O_RDWR | O_CLOEXEC);
    char byte = held >= 0 ? 'y' : 'n';
    static_cast<void>(::write(ready[1], &byte, 1));
    static_cast<void>(::read(wait[0], &byte, 1));
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const auto refused = open();
  EXPECT_FALSE(refused.has_value());
  if (!refused) {
    EXPECT_EQ(refused.error().code, Errc::kRefused);
    EXPECT_NE(refused.error().message.find("writer.chk"), std::string::npos);
  }
  options.assume_stopped = true;
  EXPECT_TRUE(open().has_value());
  ::close(wait[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  options.assume_stopped = false;
  EXPECT_TRUE(open().has_value());
  for (const int fd : {wait[0], ready[0], ready[1]}) {
    ::close(fd);
  }
}

}  // namespace
}  // namespace verger::log
