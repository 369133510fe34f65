#include "controller/scheduler/notifier.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/controller/controller_harness.h"
#include "tests/unit/controller_scheduler/times.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using test::ControllerHarness;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// Answers as scripted, and keeps what it got.
class Hook final : public http::Client {
 public:
  net::awaitable<Result<http::Response>> send(http::Endpoint to, http::Request request,
                                              std::chrono::milliseconds) override {
    got.push_back(to.url() + request.target);
    bodies.push_back(json::parse(request.body));
    if (unreachable) {
      co_return Error{Errc::kUnavailable, "refused"}.within(request.method + " " + request.target);
    }
    at.push_back(time != nullptr ? time->now() : Ticks{});
    http::Response out;
    out.status = fail-- > 0 ? status : 204;
    if (out.status >= 400) {
      out.headers = headers;
    }
    co_return out;
  }
  int fail = 0;
  int status = 503;       ///< of failures
  http::Headers headers;  ///< theirs
  Clock* time = nullptr;
  std::vector<Ticks> at;
  bool unreachable = false;
  std::vector<std::string> got;
  std::vector<json> bodies;
};

class Notifications : public ::testing::Test {
 protected:
  void SetUp() override {
    h_.options.poll_interval = std::chrono::seconds(5);
    h_.make_hours = [this](Journal& journal, ControllerEpoch epoch) {
      book_ = std::make_unique<PolicyBook>(journal, epoch, ControllerHarness::quick_policy());
      EXPECT_TRUE(book_->load().has_value());
      return book_.get();
    };
    h_.boot();
    h_.register_cluster();
    make_notifier();
  }
  void make_notifier() {
    notifier_ = std::make_unique<Notifier>(NotifierParts{
        .executor = h_.context->get_executor(),
        .journal = *h_.journal,
        .runs = *h_.executor,
        .book = *book_,
        .network = {.client = nodes_,
                    .timers = h_.time,
                    .clock = h_.time,
                    .credentials = no_credentials_,
                    .log = null_log(),
                    .services = &hook_},
        .run_command =
            [this](const std::vector<std::string>& command, const std::string& input) {
              return keep(
                  commands_,
                  command.front() + " " + json::parse(input).at("moment").get<std::string>(),
                  command_fails_);
            },
        .registry = h_.registry.get(),
        .epoch = h_.epoch,
        .send_mail =
            [this](const Mail& mail) {
              return keep(mails_, mail.to + " " + mail.subject, false);
            }});
  }
  /// The controller dies and begins again.
  void restart() {
    notifier_.reset();
    h_.crash();
    h_.boot();
    make_notifier();
    ASSERT_TRUE(notifier_->load().has_value());
  }
  static net::awaitable<Result<void>> keep(std::vector<std::string>& into, std::string text,
                                           bool fails) {
    into.push_back(std::move(text));
    co_return fails ? Result<void>(Error{Errc::kRefused, "it exited with 1"}) : Result<void>();
  }
  void deliver_all(std::chrono::milliseconds limit = std::chrono::minutes(2)) {
    h_.run_until([this] { return notifier_->active() == 0; }, limit);
  }
  void TearDown() override {
    EXPECT_THAT(nodes_.got, SizeIs(0)) << "other authorities vouch for webhooks";
    notifier_.reset();
    h_.crash();
  }
  void apply(const std::string& notifications) {
    auto policy = book_->parse("name: nightly\nclusters: [prod]\nnotifications:\n" + notifications);
    ASSERT_TRUE(policy.has_value()) << to_text(policy.error());
    ASSERT_TRUE(book_->apply(*std::move(policy), "me").has_value());
    ASSERT_TRUE(notifier_->load().has_value());
  }
  void run_and_look() {
    auto policy = book_->find("nightly").value().policy.plan;
    const auto run = h_.start_scavenge(policy);
    ASSERT_TRUE(h_.run_to_end(run));
    notifier_->look();
    h_.run_until([this] { return notifier_->active() == 0; }, std::chrono::minutes(2));
  }
  class NoCredentials final : public CredentialStore {
   public:
    Result<Credentials> find(std::string_view) override { return Credentials{"", ""}; }
  };

  Hook hook_;
  Hook nodes_;  ///< the client for requests to nodes
  NoCredentials no_credentials_;
  std::vector<std::string> commands_;
  std::vector<std::string> mails_;  ///< address and subject
  bool command_fails_ = false;
  std::unique_ptr<PolicyBook> book_;
  std::unique_ptr<Notifier> notifier_;
  ControllerHarness h_;
};

TEST_F(Notifications, SendWhatAPolicyOrders) {
  apply(
      "  - {on: done, webhook: 'http://127.0.0.1:9000/hook?x=1'}\n"
      "  - {on: [started, failed], command: [notify, --loud]}\n");
  run_and_look();
  EXPECT_THAT(hook_.got, ElementsAre("http://127.0.0.1:9000/hook?x=1"));
  EXPECT_EQ(hook_.bodies.at(0).at("moment"), "done");
  EXPECT_EQ(hook_.bodies.at(0).at("cluster"), "prod");
  EXPECT_THAT(commands_, ElementsAre("notify started"));
  notifier_->look();
  EXPECT_THAT(hook_.got, SizeIs(1)) << "once";
  EXPECT_EQ(notifier_->counts().webhooks.sent, 1U);
  EXPECT_EQ(notifier_->counts().commands.sent, 1U);
}

TEST_F(Notifications, OfAServerThatStaysDownAreAMomentOfTheirOwn) {
  apply(
      "  - {on: [server-stays-down], webhook: 'http://127.0.0.1:9000/page'}\n"
      "  - {on: [waiting], command: [notify]}\n"
      "  - {on: [failed], command: [cry]}\n");
  const auto run = h_.start_scavenge(book_->find("nightly").value().policy.plan);
  ASSERT_TRUE(h_.run_until([this] { return h_.cluster.node("n2").running.has_value(); }));
  auto& node = h_.cluster.node("n3");
  node.up = false;
  node.stays_down = "it was started 7 times and does not stay";
  const auto has_alert = [&](bool open) {
    const auto state = h_.state(run);
    return std::ranges::any_of(state.alerts, [&](const RunAlert& alert) {
      return alert.key == "/server-stays-down-n3" && alert.cleared_at.has_value() != open;
    });
  };
  ASSERT_TRUE(h_.run_until([&] { return has_alert(true); }, std::chrono::seconds(90)));
  notifier_->look();
  h_.run_until([this] { return notifier_->active() == 0; }, std::chrono::minutes(2));
  ASSERT_THAT(hook_.bodies, SizeIs(1));
  EXPECT_EQ(hook_.bodies.at(0).at("moment"), "server-stays-down");
  EXPECT_THAT(hook_.bodies.at(0).at("reason").get<std::string>(), HasSubstr("started 7 times"));
  EXPECT_THAT(commands_, ElementsAre("notify server-stays-down"));
  node.up = true;
  node.stays_down.clear();
  ASSERT_TRUE(h_.run_to_end(run));
  EXPECT_TRUE(has_alert(false)) << "cleared once it answers";
}

TEST_F(Notifications, OfACertificateThatEndsGoToEachRecipientOfTheClustersPoliciesOnce) {
  const std::string hook = "  - {on: [certificate-ends], webhook: 'http://127.0.0.1:9000/page'}\n";
  apply(hook + "  - {on: [waiting], command: [notify]}\n  - {on: [failed], command: [cry]}\n");
  for (const auto* other :
       {"name: other\nclusters: [prod]\n", "name: elsewhere\nclusters: [orders]\n"}) {
    auto policy = book_->parse(std::string(other) + "notifications:\n" + hook);
    ASSERT_TRUE(policy.has_value()) << to_text(policy.error());
    ASSERT_TRUE(book_->apply(*std::move(policy), "me").has_value());
  }
  const json data{{"fingerprint", "aa"},
                  {"days", 7},
                  {"not_after", "2024-06-09T00:00:00Z"},
                  {"reason", "the certificate of CN=n1 of n1 ends at 2024-06-09"}};
  ASSERT_TRUE(h_.journal
                  ->append("certificates/prod", kAnyRevision,
                           {NewEvent{"certificate-ends", data.dump()}}, h_.epoch)
                  .has_value());
  notifier_->look();
  h_.run_until([this] { return notifier_->active() == 0; }, std::chrono::minutes(2));
  ASSERT_THAT(hook_.bodies, SizeIs(1)) << "two policies have it";
  EXPECT_EQ(hook_.bodies.at(0).at("moment"), "certificate-ends");
  EXPECT_EQ(hook_.bodies.at(0).at("cluster"), "prod");
  EXPECT_EQ(hook_.bodies.at(0).at("not_after"), "2024-06-09T00:00:00Z");
  EXPECT_THAT(hook_.bodies.at(0).at("reason").get<std::string>(), HasSubstr("of n1 ends"));
  EXPECT_THAT(commands_, ElementsAre("notify certificate-ends"));
}

TEST_F(Notifications, OfNodesThatDifferGoToWhoListensForThemOrForFailures) {
  apply(
      "  - {on: [failed], webhook: 'http://127.0.0.1:9000/hook'}\n"
      "  - {on: [done-with-differences], command: [notify]}\n"
      "  - {on: [done], command: [cheer]}\n");
  h_.cluster.node("n3").digest = "bb";
  h_.cluster.node("n3").readable_digest = "ss";
  run_and_look();
  ASSERT_THAT(hook_.bodies, SizeIs(1));
  EXPECT_EQ(hook_.bodies[0].at("moment"), "done-with-differences");
  EXPECT_THAT(hook_.bodies[0].at("reason").get<std::string>(), HasSubstr("against n3"));
  EXPECT_THAT(commands_, ElementsAre("notify done-with-differences"));
}

TEST_F(Notifications, SayOfARunThatWasDoneHowLongItTookAndWhatItFreed) {
  apply("  - {on: done, webhook: 'http://127.0.0.1:9000/'}\n");
  run_and_look();
  ASSERT_THAT(hook_.bodies, SizeIs(1));
  const auto run = h_.executor->runs("prod").front();
  const auto ticks = run->ended_at->value() - run->started_at.value();
  EXPECT_EQ(hook_.bodies[0].at("duration_seconds"), ticks / kTicksPerSecond);
  EXPECT_TRUE(hook_.bodies[0].contains("bytes_freed"));
}

TEST_F(Notifications, DoNotSayWhatARunFreedOfWhichANodeWasInterrupted) {
  apply("  - {on: done, webhook: 'http://127.0.0.1:9000/'}\n");
  run_and_look();
  ASSERT_THAT(hook_.bodies, SizeIs(1));
  EXPECT_TRUE(hook_.bodies[0].at("bytes_freed").is_number()) << hook_.bodies[0];
  const auto run = h_.start_scavenge(book_->find("nightly").value().policy.plan);
  ASSERT_TRUE(h_.run_until([this] { return h_.cluster.node("n2").running.has_value(); }));
  h_.cluster.restart("n2");
  ASSERT_TRUE(h_.run_to_end(run));
  notifier_->look();
  h_.run_until([this] { return notifier_->active() == 0; }, std::chrono::minutes(2));
  ASSERT_THAT(hook_.bodies, SizeIs(2));
  EXPECT_TRUE(hook_.bodies[1].at("bytes_freed").is_null()) << hook_.bodies[1];
}

TEST_F(Notifications, SayOnceThatARunStoppedAtItsWindowsEnd) {
  h_.cluster.scavenge_takes = std::chrono::minutes(50);
  auto policy = book_->parse(
      "name: nightly\nclusters: [prod]\n"
      "windows: {allow: [{from: '00:00', to: '01:30', zone: UTC}]}\n"
      "notifications: [{on: [stopped, done], webhook: 'http://127.0.0.1:9000/'}]\n");
  ASSERT_TRUE(policy.has_value()) << to_text(policy.error());
  ASSERT_TRUE(book_->apply(*std::move(policy), "me").has_value());
  ASSERT_TRUE(notifier_->load().has_value());
  const auto run = h_.start_scavenge(book_->find("nightly").value().policy.plan);
  h_.run_until([&] { return h_.time.now() >= to_ticks(testing::at("2024-06-02 03:00")); },
               std::chrono::hours(9));
  notifier_->look();
  h_.run_until([this] { return notifier_->active() == 0; }, std::chrono::minutes(2));
  ASSERT_THAT(hook_.bodies, SizeIs(1));
  EXPECT_EQ(hook_.bodies[0].at("moment"), "stopped");
  EXPECT_EQ(hook_.bodies[0].at("run"), run);
}

TEST_F(Notifications, GoToThePortThatTheUrlsSchemeMeans) {
  apply("  - {on: done, webhook: 'https://hooks.example.com/services/1'}\n");
  run_and_look();
  EXPECT_THAT(hook_.got, ElementsAre("https://hooks.example.com:443/services/1"));
}

TEST_F(Notifications, AreTriedAgainForADayAndGivenUp) {
  apply("  - {on: done, webhook: 'http://127.0.0.1:9000/'}\n");
  hook_.fail = 1;
  run_and_look();
  EXPECT_THAT(hook_.got, SizeIs(2));
  EXPECT_EQ(hook_.bodies.at(0).at("id"), hook_.bodies.at(1).at("id")) << "a recipient can tell";
  EXPECT_EQ(notifier_->counts().webhooks.sent, 1U);
  EXPECT_EQ(notifier_->counts().webhooks.retried, 1U);
  hook_.fail = 1'000;
  run_and_look();
  EXPECT_EQ(notifier_->active(), 1U) << "not after minutes";
  deliver_all(std::chrono::hours(30));
  EXPECT_EQ(notifier_->active(), 0U);
  EXPECT_GT(hook_.got.size(), 20U);
  EXPECT_LT(hook_.got.size(), 60U) << "ever more seldom";
  EXPECT_EQ(notifier_->counts().webhooks.failed, 1U);
}

/// Seconds between the attempts of one notification whose first ones fail so.
class NotificationPauses : public Notifications {
 protected:
  std::vector<std::int64_t> pauses(int status, http::Headers headers, int failures) {
    apply("  - {on: done, webhook: 'http://127.0.0.1:9000/'}\n");
    hook_.status = status;
    hook_.headers = std::move(headers);
    hook_.fail = failures;
    hook_.time = &h_.time;
    run_and_look();
    deliver_all(std::chrono::hours(12));
    std::vector<std::int64_t> out;
    for (std::size_t i = 1; i < hook_.at.size(); ++i) {
      out.push_back((hook_.at[i].value() - hook_.at[i - 1].value()) / kTicksPerSecond);
    }
    return out;
  }
};

TEST_F(NotificationPauses, AreThoseThatAChatServiceAsksFor) {
  EXPECT_THAT(pauses(429, {{"Retry-After", "30"}}, 3), ElementsAre(30, 30, 60))
      << "its own, once they are longer";
}
TEST_F(NotificationPauses, GoByADateToo) {
  EXPECT_THAT(pauses(503,
                     {{"Date", "Sun, 22 Nov 2026 12:00:00 GMT"},
                      {"Retry-After", "Sun, 22 Nov 2026 12:02:00 GMT"}},
                     2),
              ElementsAre(120, 120));
}
TEST_F(NotificationPauses, AreNoLongerThanAnHourWhateverIsAskedFor) {
  EXPECT_THAT(pauses(429, {{"Retry-After", "4000000000"}}, 2), ElementsAre(3'600, 3'600));
}
TEST_F(NotificationPauses, AreTheirOwnWhereNothingIsAskedFor) {
  EXPECT_THAT(pauses(503, {{"Retry-After", "soon"}}, 2), ElementsAre(5, 15));
}
TEST_F(NotificationPauses, AreTheirOwnAfterOtherAnswers) {
  EXPECT_THAT(pauses(404, {{"Retry-After", "30"}}, 2), ElementsAre(5, 15));
}

TEST_F(Notifications, ThatWereNotDeliveredAreDeliveredAfterARestartAndTheOthersNotAgain) {
  apply(
      "  - {on: done, webhook: 'http://127.0.0.1:9000/'}\n"
      "  - {on: [started, done], email: ops@example.com}\n");
  hook_.fail = 1'000;
  run_and_look();
  EXPECT_THAT(mails_, SizeIs(2));
  const auto first = hook_.bodies.at(0);
  restart();
  hook_.fail = 0;
  const auto before = hook_.got.size();
  notifier_->look();
  deliver_all();
  ASSERT_THAT(hook_.got, SizeIs(before + 1));
  EXPECT_EQ(hook_.bodies.back(), first);
  EXPECT_THAT(mails_, SizeIs(2)) << "on record as delivered";
  restart();
  notifier_->look();
  deliver_all();
  EXPECT_THAT(hook_.got, SizeIs(before + 1));
}

TEST_F(Notifications, OfWhatHappenedWhileNoControllerLookedAreNotLost) {
  apply("  - {on: done, email: ops@example.com}\n");
  notifier_->look();  // the place from which to notify is on record
  ASSERT_TRUE(h_.run_to_end(h_.start_scavenge(book_->find("nightly").value().policy.plan)));
  restart();
  notifier_->look();
  deliver_all();
  ASSERT_THAT(mails_, SizeIs(1));
  EXPECT_THAT(mails_.front(), HasSubstr("ops@example.com prod: run "));
}

TEST_F(Notifications, AreNoOldNewsForARecipientThatWasAddedLater) {
  apply("  - {on: failed, webhook: 'http://127.0.0.1:9000/'}\n");
  run_and_look();
  auto policy = book_->parse(
      "name: nightly\nclusters: [prod]\nnotifications: [{on: done, email: ops@example.com}]\n");
  ASSERT_TRUE(policy.has_value()) << to_text(policy.error());
  ASSERT_TRUE(book_->apply(*std::move(policy), "me").has_value());
  notifier_->look();
  restart();
  notifier_->look();
  deliver_all();
  EXPECT_THAT(mails_, SizeIs(0));
  run_and_look();
  EXPECT_THAT(mails_, SizeIs(1));
}

TEST_F(Notifications, GoOnceToARecipientThatIsNamedTwice) {
  apply(
      "  - {on: [failed, done], email: ops@example.com}\n"
      "  - {on: [started, done], email: ops@example.com}\n");
  run_and_look();
  EXPECT_THAT(mails_, ElementsAre(HasSubstr(" started"), HasSubstr(" done")));
}

TEST_F(Notifications, OfOneRecipientKeepTheirOrderAndOthersDoNotWait) {
  apply(
      "  - {on: [started, done], webhook: 'http://127.0.0.1:9000/'}\n"
      "  - {on: done, command: [notify]}\n");
  hook_.fail = 1;
  ASSERT_TRUE(h_.run_to_end(h_.start_scavenge(book_->find("nightly").value().policy.plan)));
  notifier_->look();
  h_.run_until([this] { return !commands_.empty(); }, std::chrono::seconds(1));
  EXPECT_THAT(commands_, ElementsAre("notify done"));
  deliver_all();
  ASSERT_THAT(hook_.bodies, SizeIs(3));
  EXPECT_EQ(hook_.bodies.at(1).at("moment"), "started");
  EXPECT_EQ(hook_.bodies.at(2).at("moment"), "done");
}

TEST_F(Notifications, OfACommandThatFailsAreRepeated) {
  apply("  - {on: done, command: [notify]}\n");
  command_fails_ = true;
  run_and_look();
  EXPECT_GT(commands_.size(), 2U);
  EXPECT_EQ(notifier_->counts().commands.sent, 0U);
  command_fails_ = false;
  deliver_all(std::chrono::minutes(20));
  EXPECT_EQ(notifier_->counts().commands.sent, 1U);
}

TEST_F(Notifications, AreTestedWithOneAttemptForEachRecipient) {
  apply(
      "  - {on: done, webhook: 'http://127.0.0.1:9000/secret', format: slack}\n"
      "  - {on: failed, webhook: 'http://127.0.0.1:9000/secret', format: slack}\n"
      "  - {on: failed, email: ops@example.com}\n"
      "  - {on: failed, command: [notify]}\n");
  hook_.fail = 1;
  const auto tested = h_.wait_for(notifier_->test("nightly", "ann"));
  ASSERT_TRUE(tested.has_value());
  ASSERT_THAT(*tested, SizeIs(3));
  EXPECT_EQ(tested->at(0).to, "http://127.0.0.1:9000") << "the path may be a secret";
  EXPECT_EQ(tested->at(0).problem, "it answered 503");
  EXPECT_EQ(tested->at(1).problem, "");
  EXPECT_THAT(hook_.bodies.at(0).at("text").get<std::string>(), HasSubstr("ann has asked"));
  hook_.unreachable = true;
  EXPECT_EQ(h_.wait_for(notifier_->test("nightly", "ann"))->at(0).problem, "POST /...: refused");
  EXPECT_THAT(commands_, ElementsAre("notify test", "notify test"));
  EXPECT_EQ(notifier_->active(), 0U) << "no attempt but these";
  EXPECT_EQ(h_.wait_for(notifier_->test("none", "ann")).error().code, Errc::kNotFound);
}

TEST_F(Notifications, GoNowhereElseWithoutTls) {
  apply("  - {on: done, webhook: 'http://example.com/'}\n");
  run_and_look();
  EXPECT_THAT(hook_.got, SizeIs(0));
  EXPECT_EQ(notifier_->counts().webhooks.sent, 0U);
}

}  // namespace
}  // namespace verger::controller
