// The annotated file and the manual page of a program's options.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/settings/daemon_call.h"
#include "engine/settings/settings.h"
#include "tests/support/annotated_file.h"

namespace verger::settings {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Options {
  std::string data;
  std::string name = "*.db.example.com";
  std::string level = "info";
  std::string password = "changeit";
  std::int64_t wait_ms = 250;
  bool json = false;
  bool test_only = false;
  bool former = false;
};

void declare_all(Settings& all, Options& options) {
  all.add("data", options.data, "Directory of the journal");
  all.add("name", options.name, "A pattern", {.group = "Names"});
  all.add("log-level", options.level, "The least", {.choices = {"info", "error"}});
  all.add("password", options.password, "Of a user", {.group = "Names", .secret = true});
  all.add("wait-ms", options.wait_ms, "How long", {.group = "Names", .unit = "ms"});
  all.add("json-log", options.json, "Lines as JSON");
  all.add("test-only", options.test_only, "For tests", {.hidden = true});
  all.add("former", options.former, "Of the former", {.deprecated = "ignored"});
}

class SettingsPages : public ::testing::Test {
 protected:
  SettingsPages() { declare_all(all_, options_); }
  std::string file_of(const std::vector<std::string>& arguments) {
    const auto text = defaults_of(all_, arguments, "made-up");
    EXPECT_TRUE(text.has_value()) << text.error().message;
    return text.value_or("");
  }
  Options options_;
  Settings all_{"made-up", "does nothing"};
};

TEST_F(SettingsPages, AnAnnotatedFileSetsWhatWasGivenAndShowsDefaultsAsComments) {
  const auto text = file_of({"--data", "/var/lib/made up"});
  EXPECT_THAT(text, AllOf(HasSubstr("\n# Directory of the journal\nData: \"/var/lib/made up\"\n"),
                          HasSubstr("\n# --- Names ---\n"),
                          HasSubstr("\n# A pattern\n# Name: \"*.db.example.com\"\n"),
                          HasSubstr("\n# How long [ms]\n# WaitMs: 250\n"),
                          HasSubstr("\n# The least (info, error)\n# LogLevel: info\n"),
                          HasSubstr("\n# JsonLog: false\n")));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("TestOnly")), Not(HasSubstr("Former")),
                          Not(HasSubstr("assword")), Not(HasSubstr("Config:"))));
}

TEST_F(SettingsPages, EveryLineOfAnAnnotatedFileIsReadAgain) {
  const test::FileOfDefaults file(file_of({"--data", "/d \"x\""}), all_.effective());
  Options read;
  Settings again("made-up", "does nothing");
  declare_all(again, read);
  const auto parsed = again.parse({"--config", file.path().string()}, {});
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(file.count(), 5);
  EXPECT_EQ(read.data, "/d \"x\"");
  EXPECT_EQ(read.name, "*.db.example.com");
  EXPECT_EQ(read.wait_ms, 250);
  EXPECT_TRUE(again.given("log-level"));
}

TEST_F(SettingsPages, AManualPageHasWhatTheHelpHas) {
  all_.set_commands(daemon_commands());
  const auto page = all_.manual_page();
  EXPECT_THAT(page, AllOf(HasSubstr(".TH MADE\\-UP 8"), HasSubstr("\\fB\\-\\-wait\\-ms\\fR"),
                          HasSubstr("; default: 250"), HasSubstr("environment: VERGER_WAIT_MS"),
                          HasSubstr(".SH Names"), HasSubstr("config check")));
  EXPECT_THAT(page, AllOf(Not(HasSubstr("changeit")), Not(HasSubstr("test\\-only"))));
}

TEST(DaemonCall, TakesTheWordsBeforeTheOptions) {
  const auto call = [](std::vector<const char*> words) {
    words.insert(words.begin(), "made-up");
    return daemon_call(static_cast<int>(words.size()), words.data());
  };
  EXPECT_EQ(call({})->task, DaemonTask::kRun);
  EXPECT_EQ(call({"--data", "man"})->task, DaemonTask::kRun);
  EXPECT_EQ(call({"version"})->task, DaemonTask::kVersion);
  const auto check = call({"config", "check", "--config", "f"});
  EXPECT_EQ(check->task, DaemonTask::kCheckConfig);
  EXPECT_THAT(check->arguments, ElementsAre("--config", "f"));
  EXPECT_EQ(call({"config", "defaults"})->task, DaemonTask::kShowDefaults);
  EXPECT_EQ(call({"man", "dir"})->directory, "dir");
  EXPECT_EQ(call({"man"}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(call({"config", "show"}).error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace verger::settings
