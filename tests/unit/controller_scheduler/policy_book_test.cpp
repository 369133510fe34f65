#include "controller/scheduler/policy_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/memory_file_system.h"
#include "tests/support/manual_clock.h"

namespace verger::controller {
namespace {

using ::testing::HasSubstr;

class PolicyBookTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_sqlite_journal(disk_, "journal.db", clock_);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    journal_ = std::move(*opened);
    epoch_ = journal_->begin_epoch("test").value();
  }
  /// As a controller of some version wrote it.
  void wrote(std::string_view type, const std::string& yaml) {
    const nlohmann::json data{{"yaml", yaml}, {"by", "me"}};
    ASSERT_TRUE(
        journal_->append("policy/nightly", kAnyRevision, {{std::string(type), data.dump()}}, epoch_)
            .has_value());
  }
  PolicyBook book() { return {*journal_, epoch_, planner::Policy()}; }

  MemoryFileSystem disk_;
  test::ManualClock clock_;
  std::unique_ptr<Journal> journal_;
  ControllerEpoch epoch_;
};

constexpr const char* kReadable = "name: nightly\nclusters: [prod]\n";
constexpr const char* kOfAnotherVersion = "name: nightly\nclusters: [prod]\nmoon: full\n";

TEST_F(PolicyBookTest, APolicyThatWasReplacedNeedNotBeReadable) {
  wrote(events::kPolicyApplied, kOfAnotherVersion);
  wrote(events::kPolicyApplied, kReadable);
  auto replaced = book();
  const auto loaded = replaced.load();
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ(replaced.find("nightly").value().revision, Revision(2));
  wrote(events::kPolicyRemoved, "");
  auto removed = book();
  ASSERT_TRUE(removed.load().has_value());
  EXPECT_EQ(removed.find("nightly").error().code, Errc::kNotFound);
}

TEST_F(PolicyBookTest, ThePolicyThatCountsHasToBeReadable) {
  wrote(events::kPolicyApplied, kReadable);
  wrote(events::kPolicyApplied, kOfAnotherVersion);
  const auto loaded = book().load();
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().code, Errc::kCorruption);
  EXPECT_THAT(loaded.error().message, HasSubstr("event 2 of policy/nightly"));
  EXPECT_THAT(loaded.error().message, HasSubstr("moon"));
  EXPECT_THAT(loaded.error().message, HasSubstr("use the version"));
}

}  // namespace
}  // namespace verger::controller
