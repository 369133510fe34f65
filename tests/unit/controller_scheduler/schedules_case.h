#pragma once

#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "controller/scheduler/scheduler.h"
#include "tests/support/controller/controller_harness.h"
#include "tests/unit/controller_scheduler/times.h"

namespace verger::controller {

/// A scheduler over the cluster "prod" of fakes. Virtual time begins on Sunday, 2024-06-02, at
/// 00:00 UTC.
class Schedules : public ::testing::Test {
 protected:
  void SetUp() override {
    h_.cluster.scavenge_takes = std::chrono::minutes(10);
    h_.options.poll_interval = std::chrono::seconds(60);
    h_.make_hours = [this](Journal& journal, ControllerEpoch epoch) {
      book_ = std::make_unique<PolicyBook>(journal, epoch, test::ControllerHarness::quick_policy());
      EXPECT_TRUE(book_->load().has_value());
      return book_.get();
    };
    boot();
    h_.register_cluster();
  }
  void TearDown() override {
    scheduler_.reset();
    h_.crash();
  }
  void boot() {
    h_.boot();
    scheduler_ = std::make_unique<Scheduler>(SchedulerParts{.executor = h_.context->get_executor(),
                                                            .journal = *h_.journal,
                                                            .registry = *h_.registry,
                                                            .book = *book_,
                                                            .runs = *h_.executor,
                                                            .network = h_.network(),
                                                            .epoch = h_.epoch,
                                                            .tick = std::chrono::seconds(60)});
    EXPECT_TRUE(scheduler_->load().has_value());
    scheduler_->start();
  }
  void crash() {
    scheduler_.reset();
    h_.crash();
  }
  void apply(const std::string& yaml) {
    auto policy = book_->parse(yaml);
    ASSERT_TRUE(policy.has_value()) << to_text(policy.error());
    const auto stored = book_->apply(*std::move(policy), "me");
    ASSERT_TRUE(stored.has_value()) << stored.error().message;
  }
  /// Until the wall clock shows it.
  void until(const std::string& time) {
    const auto target = to_ticks(testing::at(time));
    h_.run_until([&] { return h_.time.now() >= target; }, std::chrono::hours(24 * 400));
  }
  [[nodiscard]] std::vector<std::string> starts() const {
    std::vector<std::string> out;
    for (const auto& run : h_.executor->runs("prod")) {
      out.insert(out.begin(), format_ticks(run->started_at).substr(0, 16));
    }
    return out;
  }
  [[nodiscard]] RunStatus newest() const { return h_.executor->runs("prod").front()->status; }

  std::unique_ptr<PolicyBook> book_;
  std::unique_ptr<Scheduler> scheduler_;
  test::ControllerHarness h_;
};

}  // namespace verger::controller
