#include "controller/cluster/agent_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "tests/support/manual_clock.h"
#include "tests/support/temp_directory.h"

namespace verger::controller {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AgentBookTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(disk_.make_directories("/state").has_value());
    auto opened = open_sqlite_journal(disk_, "/state/journal.db", clock_);
    ASSERT_TRUE(opened.has_value());
    journal_ = std::move(*opened);
    authority_.emplace(
        *certificates::Authority::open_or_make(directory_.path() / "ca.pem", clock_.now()));
    start();
  }
  void start() {
    book_ = std::make_unique<AgentBook>(AgentBook::Parts{.journal = *journal_,
                                                         .epoch = *journal_->begin_epoch("test"),
                                                         .random = random_,
                                                         .clock = clock_,
                                                         .authority = &*authority_,
                                                         .certificate_lifetime = hours(240)});
    ASSERT_TRUE(book_->load().has_value());
  }
  std::string token(const std::string& node = "n1") {
    const auto made = book_->create_token("orders", node, {"n1.example.com"}, minutes(30), "ann");
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return made->secret;
  }
  static certificates::KeyAndRequest request() { return *certificates::make_key_and_request(); }

  MemoryFileSystem disk_;
  test::ManualClock clock_;
  test::TempDirectory directory_;
  SeededRandom random_{7};
  std::unique_ptr<Journal> journal_;
  std::optional<certificates::Authority> authority_;
  std::unique_ptr<AgentBook> book_;
};

TEST_F(AgentBookTest, ATokenGivesTheNodesOwnCertificate) {
  const auto mine = request();
  const auto enrolled = book_->enrol(token(), mine.request);
  ASSERT_TRUE(enrolled.has_value()) << enrolled.error().message;
  const auto checked =
      certificates::check_issued(enrolled->certificate, mine.key, enrolled->authority);
  ASSERT_TRUE(checked.has_value()) << checked.error().message;
  EXPECT_EQ(checked->identity, certificates::agent_identity("orders", "n1"));
  ASSERT_NE(book_->find("orders", "n1"), nullptr);
  EXPECT_THAT(book_->find("orders", "n1")->serials, ElementsAre(checked->serial));
  EXPECT_EQ(book_->find("orders", "n2"), nullptr);
  EXPECT_THAT(book_->open_tokens(), IsEmpty());
}

TEST_F(AgentBookTest, NoSecretIsInTheJournal) {
  const auto text = token();
  const auto secret = text.substr(text.find('_', 14) + 1, 64);
  ASSERT_EQ(secret.size(), 64U);
  for (const auto& event : *journal_->read_all(Sequence(0))) {
    EXPECT_THAT(event.data, ::testing::Not(HasSubstr(secret)));
  }
}

TEST_F(AgentBookTest, ATokenIsGoodForOneKeyOnly) {
  const auto text = token();
  const auto mine = request();
  const auto first = book_->enrol(text, mine.request);
  ASSERT_TRUE(first.has_value());
  start();
  const auto again = book_->enrol(text, mine.request);
  ASSERT_TRUE(again.has_value()) << "its answer may have been lost: " << again.error().message;
  EXPECT_EQ(again->certificate, first->certificate);
  const auto thief = book_->enrol(text, request().request);
  ASSERT_FALSE(thief.has_value());
  EXPECT_EQ(thief.error().code, Errc::kConflict);
  EXPECT_THAT(thief.error().message, HasSubstr("used already"));
}

TEST_F(AgentBookTest, RefusesWhatIsNoTokenOfItsOwn) {
  auto text = token();
  const auto mine = request();
  text[20] = text[20] == '0' ? '1' : '0';
  for (const auto& wrong : {text, std::string("vergeragent_"), std::string("hello"),
                            std::string("vergeragent_0_0_0"), std::string()}) {
    const auto refused = book_->enrol(wrong, mine.request);
    ASSERT_FALSE(refused.has_value()) << wrong;
    EXPECT_EQ(refused.error().code, Errc::kUnauthorized) << wrong;
  }
  const auto newer = token();
  EXPECT_TRUE(book_->enrol(newer, mine.request).has_value());
}

TEST_F(AgentBookTest, ANewerTokenTakesThePlaceOfAnOpenOne) {
  const auto old = token();
  const auto of_another_node = token("n2");
  const auto newer = token();
  EXPECT_EQ(book_->enrol(old, request().request).error().code, Errc::kUnauthorized);
  EXPECT_TRUE(book_->enrol(newer, request().request).has_value());
  EXPECT_TRUE(book_->enrol(of_another_node, request().request).has_value());
}

TEST_F(AgentBookTest, ATokenExpires) {
  const auto text = token();
  clock_.advance_seconds(30 * 60 - 1);
  EXPECT_EQ(book_->enrol(text, "no request").error().code, Errc::kInvalidArgument);
  clock_.advance_seconds(1);
  const auto late = book_->enrol(text, request().request);
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Errc::kTimeout);
  EXPECT_THAT(late.error().message, HasSubstr("has expired at 2024-01-01T00:30:00Z"));
}

TEST_F(AgentBookTest, ARenewedCertificateIsAcceptedBesideTheFormerUntilItHasArrived) {
  const auto first = book_->enrol(token(), request().request);
  ASSERT_TRUE(first.has_value());
  const auto before = book_->find("orders", "n1")->serials.back();
  const auto due = AgentBook::renew_at(*book_->find("orders", "n1"));
  EXPECT_EQ(format_ticks(due), "2024-01-07T16:00:00Z") << "after two thirds of ten days";
  clock_.advance_seconds(7 * 86'400);
  const auto second = book_->renew("orders", "n1", request().request);
  ASSERT_TRUE(second.has_value());
  for (int lives = 0; lives < 2; ++lives) {
    const auto* agent = book_->find("orders", "n1");
    EXPECT_THAT(agent->serials, ElementsAre(before, second->serial));
    EXPECT_EQ(agent->not_after, first->not_after) << "it may still have the former one";
    EXPECT_EQ(AgentBook::renew_at(*agent), due) << "so that it is tried again";
    start();
  }
  const auto third = book_->renew("orders", "n1", request().request);
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(book_->has_arrived("orders", "n1", second->serial).error().code, Errc::kNotFound);
  ASSERT_TRUE(book_->has_arrived("orders", "n1", third->serial).has_value());
  for (int lives = 0; lives < 2; ++lives) {
    const auto* agent = book_->find("orders", "n1");
    EXPECT_THAT(agent->serials, ElementsAre(third->serial));
    EXPECT_EQ(agent->not_after, third->not_after);
    start();
  }
  EXPECT_EQ(book_->renew("orders", "n9", request().request).error().code, Errc::kNotFound);
}

TEST_F(AgentBookTest, WhoIsForgottenNeedsANewToken) {
  const auto text = token();
  const auto mine = request();
  ASSERT_TRUE(book_->enrol(text, mine.request).has_value());
  const auto open = token();
  ASSERT_TRUE(book_->forget("orders", "n1", "ann").has_value());
  start();
  EXPECT_EQ(book_->find("orders", "n1"), nullptr);
  EXPECT_EQ(book_->enrol(text, mine.request).error().code, Errc::kConflict);
  EXPECT_EQ(book_->enrol(open, mine.request).error().code, Errc::kUnauthorized);
  EXPECT_EQ(book_->forget("orders", "n1", "ann").error().code, Errc::kNotFound);
  EXPECT_TRUE(book_->enrol(token(), mine.request).has_value());
}

TEST_F(AgentBookTest, SaysWhatATokenNeeds) {
  EXPECT_THAT(book_->create_token("orders", "n1", {}, minutes(1), "ann").error().message,
              HasSubstr("--host"));
  EXPECT_FALSE(book_->create_token("or/ders", "n1", {"h"}, minutes(1), "ann").has_value());
  EXPECT_FALSE(book_->create_token("orders", "n1", {"h"}, seconds(0), "ann").has_value());
  EXPECT_FALSE(book_->create_token("orders", "n1", {"h"}, hours(24 * 8), "ann").has_value());
  EXPECT_FALSE(book_->create_token("orders", "n1", {"*"}, minutes(1), "ann").has_value());
}

}  // namespace
}  // namespace verger::controller
