#include "nodeagent/operations/jobs/paced_job.h"

#include <gtest/gtest.h>

#include "tests/support/manual_clock.h"

namespace verger::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A clock of milliseconds that the test moves.
class FineClock final : public Clock {
 public:
  Ticks now() override {
    return Ticks(test::kTestTime.value() + monotonic_.count() / 100);  // of 100 ns
  }
  Monotonic monotonic() override { return monotonic_; }
  void advance(milliseconds time) { monotonic_ += time; }

 private:
  Monotonic monotonic_{0};
};

/// Each step takes 100 ms and reads 100,000 bytes.
class Reader final : public MeteredJob {
 public:
  explicit Reader(FineClock& clock) : clock_(clock) {}
  Result<StepOutcome> step(Budget) override {
    ++steps;
    clock_.advance(milliseconds(100));
    return StepOutcome{steps < needed ? StepOutcome::Kind::kMore : StepOutcome::Kind::kDone};
  }
  [[nodiscard]] JobProgress progress() const override {
    return {.phase = "reading",
            .done = steps * 100'000,
            .total = 100'000LL * needed,
            .unit = "bytes",
            .bytes = steps * 100'000};
  }
  int steps = 0;
  int needed = 1'000'000;

 private:
  FineClock& clock_;
};

class APacedJob : public ::testing::Test {
 protected:
  explicit APacedJob(PacedJob::Lease lease = PacedJob::Lease::kNone)
      : paced_(reader_, control_, clock_, lease) {}
  /// Steps until that much time has gone by; the number of the reader's steps.
  int pass(milliseconds time) {
    const auto before = reader_->steps;
    const auto end = clock_.monotonic() + time;
    while (clock_.monotonic() < end) {
      const auto outcome = paced_.step({});
      if (!outcome) {
        error_ = outcome.error();
        break;
      }
      if (outcome->kind == StepOutcome::Kind::kRest) {
        EXPECT_LE(outcome->rest, seconds(1)) << "a change of the throttle must count soon";
        clock_.advance(outcome->rest);
      }
    }
    return reader_->steps - before;
  }
  FineClock clock_;
  std::shared_ptr<Reader> reader_ = std::make_shared<Reader>(clock_);
  std::shared_ptr<JobControl> control_ = std::make_shared<JobControl>(clock_);
  PacedJob paced_;
  std::optional<Error> error_;
};

TEST_F(APacedJob, WorksAsMuchOfTheTimeAsItsThrottleSaysFromTheMomentItIsChanged) {
  EXPECT_EQ(pass(seconds(100)), 1'000);
  control_->set_throttle({.percent = 10});
  EXPECT_NEAR(pass(seconds(100)), 100, 15);
  control_->set_throttle({.percent = 50});
  EXPECT_NEAR(pass(seconds(100)), 500, 20);
  control_->set_throttle({});
  EXPECT_NEAR(pass(seconds(100)), 1'000, 11);
}

TEST_F(APacedJob, ReadsNoMoreBytesASecondThanItMay) {
  control_->set_throttle({.bytes_per_second = 200'000});
  EXPECT_NEAR(pass(seconds(100)), 200, 3);
  control_->set_throttle({.bytes_per_second = 50'000});
  EXPECT_NEAR(pass(seconds(100)), 50, 3);
  // The stricter of the two counts.
  control_->set_throttle({.percent = 1, .bytes_per_second = 500'000});
  EXPECT_NEAR(pass(seconds(1'000)), 100, 15);
}

TEST_F(APacedJob, ReportsItsProgressAndRate) {
  pass(seconds(10));
  const auto progress = control_->progress();
  EXPECT_EQ(progress.phase, "reading");
  EXPECT_EQ(progress.done, 10'000'000);
  EXPECT_EQ(progress.bytes, 10'000'000);
  EXPECT_EQ(progress.unit, "bytes");
  EXPECT_EQ(progress.since, "2024-01-01T00:00:00.1Z") << "of the first report";
  EXPECT_NEAR(static_cast<double>(progress.rate), 3.6e9, 1e8) << "a MB a second, in an hour";
}

TEST(AJobsProgress, StartsOverWithEachPhase) {
  FineClock clock;
  JobControl control(clock);
  EXPECT_EQ(control.progress(), api::OperationProgress{});
  control.report({.phase = "one", .done = 100, .total = 200});
  clock.advance(seconds(10));
  control.report({.phase = "two", .done = 0, .total = 50});
  EXPECT_EQ(control.progress().rate, -1);
  clock.advance(seconds(10));
  control.report({.phase = "two", .done = 5, .total = 50});
  EXPECT_EQ(control.progress().rate, 1'800);
  EXPECT_EQ(control.progress().since, "2024-01-01T00:00:10Z");
}

class ALeasedJob : public APacedJob {
 protected:
  ALeasedJob() : APacedJob(PacedJob::Lease::kOfQueries) {}
};

TEST_F(ALeasedJob, RestsWhileNoControllerQueriesItAndEndsAfterMoreThanADay) {
  EXPECT_NEAR(pass(seconds(120)), 600, 2);
  EXPECT_EQ(pass(std::chrono::hours(1)), 0);
  control_->touch();
  EXPECT_GT(pass(seconds(30)), 290);
  pass(std::chrono::hours(31));
  ASSERT_TRUE(error_);
  EXPECT_EQ(error_->code, Errc::kTimeout);
}

TEST_F(ALeasedJob, DoesNotPayForARestThatWasNotItsThrottles) {
  control_->set_throttle({.percent = 50});
  pass(std::chrono::hours(1));
  control_->touch();
  EXPECT_NEAR(pass(seconds(40)), 200, 20);
}

}  // namespace
}  // namespace verger::agent
