#include "controller/journal/etcd_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "nodeagent/http/base64.h"
#include "tests/integration/etcd_journal/lossy_proxy.h"
#include "tests/support/journal/journal_contract.h"
#include "tests/support/processes/etcd.h"
#include "tests/support/processes/https_caller.h"
#include "tests/support/results.h"

namespace verger::controller {
namespace {

using test::LossyProxy;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class EtcdStore final : public JournalStore {
 public:
  Result<std::unique_ptr<Journal>> open(Clock& clock) override {
    VERGER_TRY(auto endpoints, parse_etcd_endpoints(etcd_.url()));
    return open_etcd_journal({.endpoints = std::move(endpoints)}, clock);
  }

 private:
  test::EtcdServer etcd_;
};

INSTANTIATE_TEST_SUITE_P(Etcd, JournalContract,
                         ::testing::Values([] { return std::make_unique<EtcdStore>(); }),
                         [](const auto&) { return std::string("Server"); });

class EtcdJournalTest : public ::testing::Test {
 protected:
  EtcdOptions options() const { return {.endpoints = value(parse_etcd_endpoints(etcd_.url()))}; }
  EtcdOptions through(const LossyProxy& proxy) const {
    auto out = options();
    out.endpoints = {proxy.endpoint()};
    return out;
  }
  std::unique_ptr<Journal> open(const EtcdOptions& with) {
    return value(open_etcd_journal(with, clock_));
  }
  static std::vector<std::string> types(Journal& journal, std::string_view stream) {
    std::vector<std::string> out;
    for (const auto& event : value(journal.read(stream))) {
      out.push_back(event.type);
    }
    return out;
  }
  /// Queries etcd itself, as a person with curl would.
  nlohmann::json ask(const std::string& path, const nlohmann::json& body) {
    auto answer = value(
        caller_.ask(etcd_.url(), {.method = "POST", .target = path, .body = body.dump()}, false));
    return nlohmann::json::parse(answer.body);
  }

  CountingClock clock_;
  test::EtcdServer etcd_;
  test::HttpsCaller caller_;
};

TEST_F(EtcdJournalTest, TheFormerOneIsRefusedFromTheMomentTheOtherBegan) {
  const auto first = open(options());
  const auto old = value(first->begin_epoch("first"));
  ASSERT_TRUE(first->append("s", kAnyRevision, {{"a", "{}"}}, old).has_value());
  const auto second = open(options());
  const auto now = value(second->begin_epoch("second"));
  EXPECT_EQ(now.value(), old.value() + 1);
  const auto late = first->append("s", kAnyRevision, {{"b", "{}"}}, old);
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Errc::kRefused);
  const auto snapshot = first->save_snapshot({"s", Revision(1), "x", "y"}, old);
  ASSERT_FALSE(snapshot.has_value());
  EXPECT_EQ(snapshot.error().code, Errc::kRefused);
  EXPECT_EQ(first->epoch().value(), now);
  ASSERT_TRUE(second->append("s", Revision(1), {{"c", "{}"}}, now).has_value());
  // What the first one remembered is not what it answers now.
  EXPECT_THAT(types(*first, "s"), ElementsAre("a", "c"));
  EXPECT_EQ(first->last_sequence().value(), Sequence(2));
  EXPECT_EQ(second->verify().value(), Sequence(2));
}

TEST_F(EtcdJournalTest, ALostReplyIsUnknownAndReadingTellsThatItIsThere) {
  LossyProxy proxy(options().endpoints.front());
  const auto journal = open(through(proxy));
  const auto epoch = value(journal->begin_epoch("x"));
  proxy.next(LossyProxy::Fate::kLoseReply);
  const auto lost = journal->append("s", Revision(0), {{"a", "{}"}}, epoch);
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().code, Errc::kUnknownOutcome) << lost.error().message;
  EXPECT_THAT(types(*journal, "s"), ElementsAre("a"));
  StreamWriter writer(*journal, "s", epoch, Revision(1));
  proxy.next(LossyProxy::Fate::kLoseReply);
  ASSERT_TRUE(writer.append({{"b", "{}"}}).has_value());
  EXPECT_THAT(types(*journal, "s"), ElementsAre("a", "b"));
  EXPECT_EQ(journal->verify().value(), Sequence(2));
}

TEST_F(EtcdJournalTest, WhatWasSaidNotToBeWrittenIsNotWrittenLaterEither) {
  LossyProxy proxy(options().endpoints.front());
  const auto journal = open(through(proxy));
  const auto epoch = value(journal->begin_epoch("x"));
  StreamWriter writer(*journal, "s", epoch, Revision(0));
  ASSERT_TRUE(writer.append({{"a", "{}"}}).has_value());
  for (const auto fate : {LossyProxy::Fate::kLoseRequest, LossyProxy::Fate::kHoldBack}) {
    proxy.next(fate);
    const auto lost = writer.append({{"late", "{}"}});
    ASSERT_FALSE(lost.has_value());
    EXPECT_EQ(lost.error().code, Errc::kUnavailable) << lost.error().message;
  }
  // The request was under way all the time and arrives now.
  EXPECT_THAT(proxy.release(), ::testing::Not(HasSubstr("succeeded")));
  EXPECT_THAT(types(*journal, "s"), ElementsAre("a"));
  ASSERT_TRUE(writer.append({{"b", "{}"}}).has_value());
  EXPECT_THAT(types(*open(options()), "s"), ElementsAre("a", "b"));
  EXPECT_EQ(journal->verify().value(), Sequence(2));
}

TEST_F(EtcdJournalTest, WithoutItsStoreItReportsThatAndContinuesAfterwards) {
  const auto journal = open(options());
  const auto epoch = value(journal->begin_epoch("x"));
  ASSERT_TRUE(journal->append("s", Revision(0), {{"a", "{}"}}, epoch).has_value());
  etcd_.kill();
  const auto away = journal->append("s", Revision(1), {{"b", "{}"}}, epoch);
  ASSERT_FALSE(away.has_value());
  // A pooled connection may have taken the request before it broke.
  EXPECT_THAT(away.error().code, ::testing::AnyOf(Errc::kUnavailable, Errc::kUnknownOutcome));
  const auto again = journal->append("s", Revision(1), {{"b", "{}"}}, epoch);
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, Errc::kUnavailable) << again.error().message;
  etcd_.start();
  ASSERT_TRUE(journal->append("s", Revision(1), {{"c", "{}"}}, epoch).has_value());
  EXPECT_THAT(types(*journal, "s"), ElementsAre("a", "c"));
  EXPECT_EQ(journal->verify().value(), Sequence(2));
}

TEST_F(EtcdJournalTest, AsksTheNextEndpointWhereOneIsGone) {
  auto with = options();
  const test::PortLease nobody(1);
  with.endpoints.insert(with.endpoints.begin(),
                        http::Endpoint{.tls = false, .host = "127.0.0.1", .port = nobody[0]});
  const auto journal = open(with);
  const auto epoch = value(journal->begin_epoch("x"));
  ASSERT_TRUE(journal->append("s", Revision(0), {{"a", "{}"}}, epoch).has_value());
  EXPECT_THAT(types(*journal, "s"), ElementsAre("a"));
}

TEST(EtcdOverTls, AcceptsOnlyAClientWithACertificate) {
  const test::TempDirectory directory;
  const test::OpensslAuthority authority(directory.path() / "authority", "etcd test root");
  const test::EtcdServer etcd(&authority);
  const auto own = (directory.path() / "vergerd").string();
  authority.issue(own, "vergerd", "", "clientAuth");
  EtcdOptions options{.endpoints = value(parse_etcd_endpoints(etcd.url()))};
  options.tls.trusted_roots = authority.root();
  CountingClock clock;
  EXPECT_FALSE(open_etcd_journal(options, clock).has_value());
  options.tls.certificate = own + ".crt";
  options.tls.private_key = own + ".key";
  const auto journal = value(open_etcd_journal(options, clock));
  const auto epoch = value(journal->begin_epoch("x"));
  EXPECT_TRUE(journal->append("s", Revision(0), {{"a", "{}"}}, epoch).has_value());
}

/// With a lease, as one of a pair has it.
class EtcdTermTest : public EtcdJournalTest {
 protected:
  EtcdTerm term(const std::string& acting) {
    Result<std::shared_ptr<EtcdLease>> lease = Error{Errc::kUnavailable, "not asked"};
    wait_for(EtcdLease::grant(client_, std::chrono::seconds(60), system_clock()), lease);
    return {.lease = value(lease), .acting = acting};
  }
  template <class T>
  void wait_for(net::awaitable<T> work, T& into) {
    auto result = net::co_spawn(context_, std::move(work), net::use_future);
    context_.restart();
    context_.run();
    into = result.get();
  }
  std::unique_ptr<Journal> open_for(const EtcdTerm& term) {
    return value(open_etcd_journal(options(), system_clock(), term));
  }

  net::io_context context_{1};
  http::BeastClient http_{context_.get_executor()};
  EtcdClient client_{options().endpoints, http_, std::chrono::seconds(5)};
};

TEST_F(EtcdTermTest, NoControllerBeginsWhileAnotherIsActive) {
  const auto first = term("one");
  const auto second = term("two");
  const auto acting = open_for(first);
  const auto epoch = value(acting->begin_epoch("one"));
  const auto waiting = open_for(second);
  const auto early = waiting->begin_epoch("two");
  ASSERT_FALSE(early.has_value());
  EXPECT_EQ(early.error().code, Errc::kRefused);
  EXPECT_EQ(acting->epoch().value(), epoch);
  ASSERT_TRUE(acting->append("s", Revision(0), {{"a", "{}"}}, epoch).has_value());
  Result<void> revoked;
  wait_for(EtcdLease::revoke(first.lease, client_), revoked);
  ASSERT_TRUE(revoked.has_value());
  const auto next = value(waiting->begin_epoch("two"));
  EXPECT_EQ(next.value(), epoch.value() + 1);
  EXPECT_THAT(types(*waiting, "s"), ElementsAre("a"));
}

TEST_F(EtcdTermTest, WithoutItsLeaseNothingIsAppendedThoughNoOtherIsActive) {
  const auto held = term("one");
  const auto journal = open_for(held);
  const auto epoch = value(journal->begin_epoch("one"));
  ASSERT_TRUE(journal->append("s", Revision(0), {{"a", "{}"}}, epoch).has_value());
  held.lease->end();
  const auto late = journal->append("s", Revision(1), {{"b", "{}"}}, epoch);
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Errc::kRefused);
  EXPECT_EQ(journal->begin_epoch("one").error().code, Errc::kRefused);
  EXPECT_THAT(types(*journal, "s"), ElementsAre("a"));
}

TEST_F(EtcdTermTest, OneThatSeesANewerEpochGivesItsLeaseUp) {
  const auto held = term("one");
  const auto journal = open_for(held);
  const auto epoch = value(journal->begin_epoch("one"));
  const auto other = open(options());
  ASSERT_TRUE(other->begin_epoch("by hand").has_value());
  EXPECT_TRUE(held.lease->held());
  const auto late = journal->append("s", Revision(0), {{"a", "{}"}}, epoch);
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Errc::kRefused);
  EXPECT_FALSE(held.lease->held());
}

TEST_F(EtcdTermTest, ALeaseThatIsOverIsKnownByAsking) {
  const auto gone = term("one");
  Result<void> done;
  wait_for(client_.revoke_lease(gone.lease->id()), done);
  ASSERT_TRUE(done.has_value());
  EXPECT_TRUE(gone.lease->held());
  wait_for(EtcdLease::renew(gone.lease, client_), done);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Errc::kNotFound);
  EXPECT_FALSE(gone.lease->held());
}

TEST_F(EtcdJournalTest, AsksTheStoreForNothingThatItKnowsItself) {
  LossyProxy proxy(options().endpoints.front());
  const auto journal = open(through(proxy));
  const auto epoch = value(journal->begin_epoch("x"));
  ASSERT_TRUE(journal->append("s", Revision(0), {{"a", "{}"}, {"b", "{}"}}, epoch).has_value());
  const auto asked = proxy.requests();
  EXPECT_EQ(journal->last_sequence().value(), Sequence(2));
  EXPECT_EQ(journal->revision("s").value(), Revision(2));
  EXPECT_THAT(value(journal->read("s", Revision(2))), IsEmpty());
  EXPECT_EQ(value(journal->read("s", Revision(1))).size(), 1U);
  EXPECT_THAT(value(journal->read_all(Sequence(2))), IsEmpty());
  EXPECT_EQ(value(journal->read_all(Sequence(1))).size(), 1U);
  EXPECT_EQ(proxy.requests(), asked);
}

TEST_F(EtcdJournalTest, ChainNoticesAChangedEventAndAMissingEnd) {
  const auto journal = open(options());
  const auto epoch = value(journal->begin_epoch("x"));
  ASSERT_TRUE(journal->append("s", Revision(0), {{"a", "{}"}, {"b", "{}"}, {"c", "{}"}}, epoch)
                  .has_value());
  const auto key_of = [](int revision) {
    return http::base64_encode(std::string("/verger/events/s") + '\0' +
                               fmt::format("{:020}", revision));
  };
  const auto kept =
      ask("/v3/kv/range", {{"key", key_of(2)}}).at("kvs").at(0).at("value").get<std::string>();
  auto changed = http::base64_decode(kept).value();
  changed += ' ';
  ask("/v3/kv/put", {{"key", key_of(2)}, {"value", http::base64_encode(changed)}});
  auto verified = open(options())->verify();
  ASSERT_FALSE(verified.has_value());
  EXPECT_EQ(verified.error().code, Errc::kCorruption);
  EXPECT_THAT(verified.error().message, HasSubstr("event 2 (b in s)"));
  ask("/v3/kv/put", {{"key", key_of(2)}, {"value", kept}});
  EXPECT_EQ(open(options())->verify().value(), Sequence(3));
  ask("/v3/kv/deleterange", {{"key", key_of(3)}});
  verified = open(options())->verify();
  ASSERT_FALSE(verified.has_value());
  EXPECT_EQ(verified.error().code, Errc::kCorruption);
}

TEST_F(EtcdJournalTest, ASnapshotOfOtherEventsCountsAsNone) {
  const auto journal = open(options());
  const auto epoch = value(journal->begin_epoch("x"));
  ASSERT_TRUE(journal->append("s", Revision(0), {{"a", "{}"}}, epoch).has_value());
  ASSERT_TRUE(journal->save_snapshot({"s", Revision(1), "x", "y"}, epoch).has_value());
  ASSERT_TRUE(value(journal->snapshot("s")).has_value());
  const nlohmann::json other{{"revision", 1}, {"hash", "00"}, {"summary", "x"}};
  ask("/v3/kv/put", {{"key", http::base64_encode("/verger/snapshots/s")},
                     {"value", http::base64_encode(other.dump())}});
  EXPECT_FALSE(value(journal->snapshot("s")).has_value());
  EXPECT_THAT(value(journal->current_snapshots("")), IsEmpty());
}

TEST_F(EtcdJournalTest, RefusesWhatEtcdWouldNotTake) {
  const auto journal = open(options());
  const auto epoch = value(journal->begin_epoch("x"));
  const auto large =
      journal->append("s", Revision(0), {{"a", "\"" + std::string(2'000'000, 'x') + "\""}}, epoch);
  ASSERT_FALSE(large.has_value());
  EXPECT_EQ(large.error().code, Errc::kInvalidArgument);
  const auto many =
      journal->append("s", Revision(0), std::vector<NewEvent>(51, NewEvent{"a", "{}"}), epoch);
  ASSERT_FALSE(many.has_value());
  EXPECT_EQ(many.error().code, Errc::kInvalidArgument);
  ASSERT_TRUE(
      journal->append("s", Revision(0), std::vector<NewEvent>(50, NewEvent{"a", "{}"}), epoch)
          .has_value());
  ASSERT_TRUE(
      journal->append("s", Revision(50), {{"a", "\"" + std::string(990'000, 'x') + "\""}}, epoch)
          .has_value());
}

}  // namespace
}  // namespace verger::controller
