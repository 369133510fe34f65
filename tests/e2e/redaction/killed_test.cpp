#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/ports.h"
#include "tests/support/processes/process.h"
#include "tests/support/temp_directory.h"

/// SIGKILL of verger-redact, and of the node beside which it works, at each step of an exchange of
/// a chunk file: the command is run again, and ends it. Real processes.
namespace verger::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int kKilled = 128 + 9;

std::string text_of_killed(int number) {
  return fmt::format("Grace Hopper {:02}, 1906-12-09, Ship Model Road 3, Arlington", number);
}

class KilledRedaction : public ::testing::Test {
 protected:
  void start(const std::map<std::string, std::string>& environment = {}) {
    fs::remove(url_file());
    node_.emplace(Process::Options{.command = {program("verger-agent"),
                                               "--role",
                                               "node",
                                               "--db",
                                               database().string(),
                                               "--init",
                                               "--insecure",
                                               "--enable-atom-pub-over-http",
                                               "--enable-unix-socket",
                                               "--chunk-size",
                                               "65536",
                                               "--node-port",
                                               std::to_string(ports_[0]),
                                               "--replication-port",
                                               std::to_string(ports_[1]),
                                               "--fast-timings",
                                               "--url-file",
                                               url_file().string(),
                                               "--end-after-seconds",
                                               "120"},
                                   .environment = environment,
                                   .output = log()});
    ASSERT_TRUE(eventually(seconds(20), [&] { return fs::exists(url_file()); }))
        << file_text(log());
  }
  [[nodiscard]] fs::path database() const { return directory_.path() / "db"; }
  [[nodiscard]] fs::path url_file() const { return directory_.path() / "url"; }
  [[nodiscard]] fs::path log() const { return directory_.path() / "node.log"; }
  [[nodiscard]] std::string url() const { return fmt::format("http://127.0.0.1:{}", ports_[0]); }

  void write(int count) {
    for (int number = 0; number < count; ++number) {
      const bool written = eventually(seconds(20), [&] {
        const auto answer = caller_.ask(
            url(),
            {.method = "POST",
             .target = "/streams/customer-7",
             .headers = {{"Content-Type", "application/json"},
                         {"ES-EventType", "customer"},
                         {"ES-EventId", fmt::format("5d1f2f6e-3f37-4b0f-8a52-{:012x}", number)}},
             .body = json{{"name", text_of_killed(number)}}.dump()});
        return answer.has_value() && answer->status == 201;
      });
      ASSERT_TRUE(written) << number << file_text(log());
    }
    // Its point completes the chunk.
    ASSERT_EQ(caller_.post(url(), "/admin/scavenge")->status, 200);
    ASSERT_TRUE(eventually(seconds(20), [&] {
      const auto running = caller_.get(url(), "/admin/scavenge/current");
      return running && json::parse(running->body).value("scavengeId", "") == "";
    })) << file_text(log());
  }
  Finished redact(int number, const std::map<std::string, std::string>& environment = {}) const {
    return run({program("verger-redact"), "--db", database().string(), "--events",
                fmt::format("{}@customer-7", number)},
               environment);
  }
  /// Files of the database that have the text, and copies that were left.
  [[nodiscard]] std::string left_of(int number) const {
    std::string out;
    for (const auto& entry : fs::recursive_directory_iterator(database())) {
      if (entry.is_regular_file() && (entry.path().extension() == ".tmp" ||
                                      file_text(entry.path()).contains(text_of_killed(number)))) {
        out += entry.path().filename().string() + " ";
      }
    }
    return out;
  }

  TempDirectory directory_;
  PortLease ports_{2};
  std::optional<Process> node_;
  HttpsCaller caller_;
};

TEST_F(KilledRedaction, EndsAtTheNextRunWhereverRedactorOrNodeDied) {
  start();
  write(6);
  int number = 0;
  for (const std::string point :
       {"online-redaction.locked", "online-redaction.copied", "online-redaction.switched"}) {
    SCOPED_TRACE(point);
    EXPECT_EQ(redact(number, {{"VERGER_FAILPOINT", point}}).status, kKilled);
    const auto again = redact(number);
    EXPECT_EQ(again.status, 0) << again.err << file_text(log());
    EXPECT_EQ(left_of(number), "");
    ++number;
  }
  for (const std::string point : {"log.switch.after-rename", "log.switch.before-delete"}) {
    SCOPED_TRACE(point);
    node_.reset();
    start({{"VERGER_FAILPOINT", point}});
    EXPECT_EQ(redact(number).status, 1) << "the answer of the node is lost";
    ASSERT_EQ(node_->wait(seconds(20)), kKilled);
    EXPECT_EQ(redact(number).status, 2) << "no process listens";
    node_.reset();
    start();
    Finished again;
    ASSERT_TRUE(eventually(seconds(20),
                           [&] {
                             again = redact(number);
                             return again.status == 0;
                           }))
        << again.err << file_text(log());
    EXPECT_EQ(left_of(number), "");
    ++number;
  }
  EXPECT_NE(left_of(number), "") << "the last event is as it was";
}

}  // namespace
}  // namespace verger::test
