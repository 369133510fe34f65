#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/controller/painting.h"
#include "tests/unit/controller_api/api_harness.h"

// What the API answers to a pause that has to wait for an atomic stage.
namespace verger::controller {
namespace {

using testing::ApiHarness;
using ::testing::HasSubstr;

class AtomicPause : public ::testing::Test {
 protected:
  void SetUp() override {
    a_.h.more_kinds = [this](StepKinds& kinds) {
      kinds.add(std::make_unique<test::PaintStep>(walls_, a_.h.time));
    };
    auto stage = test::painting();
    stage.atomic = true;
    const auto hash = test::journal_plan(a_.h, {stage});
    a_.crash();
    a_.boot();
    const auto run =
        ApiHarness::json_of(a_.call("POST", "/plans/" + hash + "/apply", nlohmann::json::object()));
    run_ = run.value("id", std::string());
    EXPECT_TRUE(run["stages"][0].value("atomic", false)) << run;
    ASSERT_TRUE(a_.h.run_until([this] { return walls_.green() > 0; }));
  }

  test::Walls walls_;
  std::string run_;
  ApiHarness a_;
};

TEST_F(AtomicPause, OfTheRunSaysForWhatItWaits) {
  const auto paused = a_.call("POST", "/runs/" + run_ + "/pause", nlohmann::json::object());
  EXPECT_EQ(paused.status, 202);
  const auto notice = ApiHarness::json_of(paused).value("notice", std::string());
  EXPECT_THAT(notice, HasSubstr("stage paint-all is under way (paint): the pause takes effect"));
  EXPECT_THAT(a_.get("/runs/" + run_).value("notice", std::string()),
              HasSubstr("stage paint-all is under way"));
  ASSERT_TRUE(a_.h.run_to_end(run_));
  EXPECT_FALSE(a_.get("/runs/" + run_).contains("notice"));
}

TEST_F(AtomicPause, OfTheClusterSaysForWhichRunAndWhat) {
  const auto paused = a_.call("POST", "/clusters/prod/pause", nlohmann::json::object());
  EXPECT_EQ(paused.status, 202);
  EXPECT_THAT(ApiHarness::json_of(paused).value("notice", std::string()),
              HasSubstr("run " + run_.substr(0, 12) + ": stage paint-all is under way"));
}

}  // namespace
}  // namespace verger::controller
