#include "nodeagent/http/task_count.h"

#include <gtest/gtest.h>
#include <optional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

namespace verger::http {
namespace {

class TaskCountTest : public ::testing::Test {
 protected:
  /// Raises `into` once all have ended.
  static net::awaitable<void> wait(TaskCount& count, int& into,
                                   TaskCount::Limit limit = TaskCount::Limit::max()) {
    co_await count.wait_for_all(limit);
    ++into;
  }
  void begin_to_wait() {
    net::co_spawn(context_, wait(*count_, ended_), net::detached);
    context_.poll();
    context_.restart();
  }
  void end_one() {
    count_->end();
    context_.poll();
    context_.restart();
  }

  net::io_context context_;
  std::optional<TaskCount> count_{context_.get_executor()};
  int ended_ = 0;
};

TEST_F(TaskCountTest, DoesNotWaitForNone) {
  begin_to_wait();
  EXPECT_EQ(ended_, 1);
}

TEST_F(TaskCountTest, WakesAllThatWaitWhenTheLastHasEnded) {
  count_->begin();
  count_->begin();
  begin_to_wait();
  begin_to_wait();
  EXPECT_EQ(ended_, 0);
  end_one();
  EXPECT_EQ(ended_, 0);
  EXPECT_EQ(count_->size(), 1U);
  end_one();
  EXPECT_EQ(ended_, 2);
}

TEST_F(TaskCountTest, WaitsNoLongerThanItMay) {
  count_->begin();
  net::co_spawn(context_, wait(*count_, ended_, std::chrono::steady_clock::now()), net::detached);
  context_.poll();
  EXPECT_EQ(ended_, 1);
}

TEST_F(TaskCountTest, MayGoBeforeThoseThatWait) {
  count_->begin();
  begin_to_wait();
  count_.reset();
  EXPECT_EQ(ended_, 0);  // what waits goes with its executor
}

}  // namespace
}  // namespace verger::http
