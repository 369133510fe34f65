#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/scheduler/scheduler.h"
#include "tests/support/controller/controller_harness.h"
#include "tests/unit/controller_scheduler/times.h"

// Virtual time begins on Sunday, 2024-06-02, at 00:00 UTC.
namespace verger::controller {
namespace {

using test::ControllerHarness;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::string_view kHangs = "10.9.";

/// The nodes of "prod" answer; those of 10.9.0.0/16 do for an hour nothing at all.
class SomeHang final : public http::Client {
 public:
  SomeHang(http::Client& others, http::Timers& timers) : others_(others), timers_(timers) {}
  net::awaitable<Result<http::Response>> send(http::Endpoint to, http::Request request,
                                              std::chrono::milliseconds deadline) override {
    if (to.host.starts_with(kHangs)) {
      ++asked;
      co_await timers_.sleep_for(hang);
      co_return Error{Errc::kTimeout, "no answer in time"};
    }
    co_return co_await others_.send(std::move(to), std::move(request), deadline);
  }
  std::size_t asked = 0;
  std::chrono::minutes hang{60};

 private:
  http::Client& others_;
  http::Timers& timers_;
};

class OneHangs : public ::testing::Test {
 protected:
  void SetUp() override {
    h_.cluster.scavenge_takes = std::chrono::minutes(1);
    h_.client = &client_;
    h_.make_hours = [this](Journal& journal, ControllerEpoch epoch) {
      book_ = std::make_unique<PolicyBook>(journal, epoch, ControllerHarness::quick_policy());
      EXPECT_TRUE(book_->load().has_value());
      return book_.get();
    };
    h_.boot();
    notifier_ = std::make_unique<Notifier>(NotifierParts{
        .executor = h_.context->get_executor(),
        .journal = *h_.journal,
        .runs = *h_.executor,
        .book = *book_,
        .network = h_.network(),
        .run_command = [this](const std::vector<std::string>&,
                              std::string input) { return keep(reported_, std::move(input)); },
        .registry = nullptr,
        .epoch = h_.epoch});
    EXPECT_TRUE(notifier_->load().has_value());
  }
  static net::awaitable<Result<void>> keep(std::vector<std::string>& into, std::string input) {
    into.push_back(std::move(input));
    co_return Result<void>{};
  }
  void TearDown() override {
    scheduler_.reset();
    notifier_.reset();
    h_.crash();
  }
  void start(std::size_t at_once) {
    scheduler_ = std::make_unique<Scheduler>(SchedulerParts{.executor = h_.context->get_executor(),
                                                            .journal = *h_.journal,
                                                            .registry = *h_.registry,
                                                            .book = *book_,
                                                            .runs = *h_.executor,
                                                            .network = h_.network(),
                                                            .epoch = h_.epoch,
                                                            .notifier = notifier_.get(),
                                                            .tasks_at_once = at_once});
    EXPECT_TRUE(scheduler_->load().has_value());
    scheduler_->start();
  }
  void add_hanging(const std::string& name, int number) {
    ClusterConfig config;
    config.name = name;
    config.credentials = "prod";
    const auto host = std::string(kHangs) + std::to_string(number) + ".1";
    config.nodes = {{"n1", "http://" + host + ":2113", "http://" + host + ":2114"}};
    ASSERT_TRUE(h_.registry->add(std::move(config)).has_value());
  }
  void apply(const std::string& yaml) {
    auto policy = book_->parse(yaml);
    ASSERT_TRUE(policy.has_value()) << to_text(policy.error());
    ASSERT_TRUE(book_->apply(*std::move(policy), "me").has_value());
  }
  void until(const std::string& time) {
    const auto target = to_ticks(testing::at(time));
    h_.run_until([&] { return h_.time.now() >= target; }, std::chrono::hours(24));
  }
  [[nodiscard]] std::vector<std::string> starts() const {
    std::vector<std::string> out;
    for (const auto& run : h_.executor->runs("prod")) {
      out.push_back(format_ticks(run->started_at).substr(11, 5));
    }
    return out;
  }

  ControllerHarness h_;
  SomeHang client_{h_.cluster, h_.time};
  std::unique_ptr<PolicyBook> book_;
  std::unique_ptr<Notifier> notifier_;
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<std::string> reported_;
};

/// A due time that is not kept at once is never made up for.
constexpr const char* kAll = R"(name: all
clusters: [a-hangs, b-hangs, c-hangs, prod]
schedule: [{cron: "0 2 * * *", zone: UTC}]
catch_up: skip
notifications: [{on: [started, done, missed], command: [/bin/true]}]
)";

TEST_F(OneHangs, NeitherOtherClustersNorNotificationsWaitForIt) {
  add_hanging("a-hangs", 1);
  h_.register_cluster();
  start(16);
  apply(kAll);
  until("2024-06-02 02:10");
  EXPECT_GT(client_.asked, 0U);
  ASSERT_THAT(starts(), SizeIs(1));
  EXPECT_EQ(starts().front(), "02:00");
  EXPECT_THAT(reported_, Contains(HasSubstr(R"("moment":"done")")))
      << "while the other cluster still hangs";
}

TEST_F(OneHangs, ItsPlaceGoesToTheNextOneAndWhatWasDueInTimeIsNotDropped) {
  add_hanging("a-hangs", 1);
  add_hanging("b-hangs", 2);
  add_hanging("c-hangs", 3);
  h_.register_cluster();
  start(1);
  apply(kAll);
  until("2024-06-02 02:12");
  // Three deadlines of two minutes: later than a due time may be made up for.
  ASSERT_THAT(starts(), SizeIs(1));
  EXPECT_EQ(starts().front(), "02:06");
  EXPECT_EQ(scheduler_->state("all", "prod").outcome, "started");
  EXPECT_THAT(scheduler_->state("all", "a-hangs").waiting,
              HasSubstr("a node or an agent of a-hangs does not answer"));
}

TEST_F(OneHangs, APlanThatComesAfterItsDeadlineIsNotCarriedOut) {
  h_.register_cluster();
  client_.hang = std::chrono::minutes(10);
  add_hanging("a-hangs", 1);
  start(16);
  apply(kAll);
  until("2024-06-02 03:30");
  EXPECT_THAT(h_.executor->runs("a-hangs"), SizeIs(0));
  EXPECT_EQ(scheduler_->state("all", "a-hangs").outcome, "dropped");
}

}  // namespace
}  // namespace verger::controller
