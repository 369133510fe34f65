#include "nodeagent/external/truncation_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/log/pending_truncation.h"
#include "tests/support/cluster/sim_world.h"

/// A server that a test plays, on virtual time.
namespace verger::external {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

class TruncationWatchTest : public ::testing::Test {
 protected:
  TruncationWatchTest() : host_(world_.add_host("n1")) {
    host_.boot();
    EXPECT_TRUE(host_.disk().make_directories("/db").has_value());
    process_ = ServerProcess{100, 1};
    EXPECT_TRUE(host_.disk().make_directories("/state").has_value());
    start_agent();
    answers_ = true;
    world_.run_for(milliseconds(2'000));
  }
  void start_agent() {
    watch_.emplace("/db", milliseconds(500),
                   TruncationWatch::Environment{
                       .executor = host_.executor(),
                       .files = host_.disk(),
                       .timers = host_.timers(),
                       .clock = host_.clock(),
                       .log = null_log(),
                       .answers = [this] { return answers_; },
                       .start = [this] { return start(this); },
                       .find = [this] { return find(this); },
                       .runs = [this](const ServerProcess& each) { return process_ == each; },
                       .kept_stopped = [this] { return kept_stopped_; },
                       .given_up_file = "/state/server-given-up"});
    watch_->start();
  }
  /// As the server does: it notes the position, and its files are closed before it is gone.
  void end_to_cut(seconds until_gone) {
    ASSERT_TRUE(log::note_truncation(host_.disk(), "/db", LogPosition(4711)).has_value());
    answers_ = false;
    holds_files_ = false;
    world_.schedule(until_gone, [this] { process_.reset(); });
  }
  static net::awaitable<Result<void>> start(TruncationWatchTest* test) {
    ++test->commands_;
    test->started_beside_another_ |= test->process_.has_value();
    if (test->commands_ > test->idle_starts_ && !test->process_) {
      test->process_ = ServerProcess{100 + test->commands_, 1};
      test->holds_files_ = true;
      ++test->processes_;
      if (test->on_start) {
        test->on_start();
      }
    }
    co_return Result<void>();
  }
  static net::awaitable<Result<std::optional<ServerProcess>>> find(TruncationWatchTest* test) {
    co_return test->holds_files_ ? test->process_ : std::nullopt;
  }
  void end() {
    process_.reset();
    holds_files_ = false;
  }

  testing::SimWorld world_{1};
  testing::SimHost& host_;
  std::optional<TruncationWatch> watch_;
  bool answers_ = false;
  bool holds_files_ = true;
  std::optional<ServerProcess> process_;
  int idle_starts_ = 0;  ///< the first so many start commands do nothing
  int commands_ = 0;
  int processes_ = 0;
  bool started_beside_another_ = false;
  bool kept_stopped_ = false;
  std::function<void()> on_start;  ///< a process was started
};

TEST_F(TruncationWatchTest, WaitsForTheProcessAndStartsTheServerAsOftenAsItEnds) {
  on_start = [this] {
    if (processes_ < 5) {  // it cuts, and ends once more
      world_.schedule(seconds(3), [this] { end(); });
    } else {
      world_.schedule(seconds(20), [this] { answers_ = true; });
    }
  };
  end_to_cut(seconds(8));
  EXPECT_TRUE(world_.run_until([this] { return answers_; }, minutes(10)));
  EXPECT_FALSE(started_beside_another_) << "a start beside the old process does nothing";
  EXPECT_EQ(commands_, 5);
  world_.run_for(seconds(2));
  EXPECT_EQ(watch_->problem(), "");
}

TEST_F(TruncationWatchTest, AServerThatAnOperationKeepsStoppedIsLeftAlone) {
  kept_stopped_ = true;
  end_to_cut(seconds(1));
  world_.run_for(minutes(5));
  EXPECT_EQ(commands_, 0);
  EXPECT_EQ(watch_->problem(), "");
  kept_stopped_ = false;
  world_.run_for(minutes(5));
  EXPECT_EQ(commands_, 0) << "who stopped it starts it";
}

TEST_F(TruncationWatchTest, EndsWhatItBeganWhereAnOperationStopsTheServer) {
  idle_starts_ = 1'000'000;
  end_to_cut(seconds(1));
  world_.run_for(minutes(2));
  EXPECT_GT(commands_, 1);
  kept_stopped_ = true;
  world_.run_for(seconds(2));
  const int commands = commands_;
  world_.run_for(minutes(20));
  EXPECT_EQ(commands_, commands);
  EXPECT_FALSE(watch_->has_given_up());
  EXPECT_EQ(watch_->problem(), "");
}

TEST_F(TruncationWatchTest, AStartThatStartsNothingIsRepeated) {
  idle_starts_ = 7;
  on_start = [this] { world_.schedule(seconds(5), [this] { answers_ = true; }); };
  end_to_cut(seconds(1));
  EXPECT_TRUE(world_.run_until([this] { return answers_; }, minutes(14)));
  EXPECT_EQ(commands_, 8);
}

TEST_F(TruncationWatchTest, StopsRetryingByTimeAndReportsIt) {
  idle_starts_ = 1'000'000;
  end_to_cut(seconds(1));
  world_.run_for(minutes(14));
  EXPECT_THAT(watch_->problem(), HasSubstr("4711"));
  EXPECT_THAT(watch_->problem(), ::testing::Not(HasSubstr("given up")));
  EXPECT_FALSE(watch_->has_given_up());
  world_.run_for(minutes(2));
  EXPECT_THAT(watch_->problem(), HasSubstr("given up"));
  const auto given = commands_;
  EXPECT_LE(given, 40) << "with growing pauses";
  world_.run_for(minutes(60));
  EXPECT_EQ(commands_, given);
  EXPECT_THAT(watch_->problem(), HasSubstr("start it by hand"));
  EXPECT_TRUE(watch_->has_given_up());
  answers_ = true;
  world_.run_for(minutes(1));
  EXPECT_FALSE(watch_->has_given_up());
}

TEST_F(TruncationWatchTest, ARestartedAgentSaysThatItHasGivenUpUntilTheServerAnswers) {
  idle_starts_ = 1'000'000;
  end_to_cut(seconds(1));
  world_.run_for(minutes(16));
  const auto said = watch_->problem();
  const auto given = commands_;
  start_agent();
  world_.run_for(minutes(30));
  EXPECT_TRUE(watch_->has_given_up());
  EXPECT_EQ(watch_->problem(), said);
  EXPECT_EQ(commands_, given);
  answers_ = true;
  world_.run_for(minutes(1));
  EXPECT_FALSE(watch_->has_given_up());
  start_agent();
  world_.run_for(seconds(1));
  EXPECT_FALSE(watch_->has_given_up());
  EXPECT_EQ(watch_->problem(), "");
}

TEST_F(TruncationWatchTest, AServerThatOpensItsDatabaseForHoursIsLeftToIt) {
  on_start = [this] {
    if (processes_ == 1) {
      world_.schedule(minutes(180), [this] { end(); });
    } else {
      world_.schedule(seconds(5), [this] { answers_ = true; });
    }
  };
  end_to_cut(seconds(1));
  world_.run_for(minutes(179));
  EXPECT_EQ(commands_, 1);
  EXPECT_THAT(watch_->problem(), HasSubstr("process 101 runs"));
  EXPECT_TRUE(world_.run_until([this] { return answers_; }, minutes(10)));
  EXPECT_EQ(commands_, 2);
}

TEST_F(TruncationWatchTest, AServerThatAnOperatorStoppedIsLeftAlone) {
  answers_ = false;
  end();
  world_.run_for(minutes(5));
  ASSERT_TRUE(log::note_truncation(host_.disk(), "/db", LogPosition(4711)).has_value())
      << "a restore is being prepared";
  world_.run_for(minutes(5));
  EXPECT_EQ(commands_, 0);
  EXPECT_EQ(watch_->problem(), "");
}

}  // namespace
}  // namespace verger::external
