#include "controller/api/retention.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <utility>

#include "controller/journal/chain.h"
#include "controller/journal/sealed_snapshots.h"
#include "controller/operations/redaction/redaction_support.h"
#include "planner/redaction/redaction_policy.h"
#include "tests/unit/controller_api/api_harness.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using testing::ApiHarness;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class RetentionTest : public ::testing::Test {
 protected:
  RetentionTest() {
    a_.h.cluster.scavenge_takes = std::chrono::minutes(5);
    a_.h.cluster.tells_progress = true;
  }
  Result<Compacted> try_to_compact() {
    Retention retention({.journal = *a_.h.journal,
                         .runs = *a_.h.executor,
                         .clock = a_.h.time,
                         .log = null_log(),
                         .epoch = a_.h.epoch,
                         .files = a_.h.disk,
                         .archive = "/state/archive",
                         .rules = rules_});
    return a_.h.wait_for(retention.compact("ann", "a test"));
  }
  Compacted compact() {
    const auto done = try_to_compact();
    EXPECT_TRUE(done.has_value()) << done.error().message;
    const auto verified = a_.h.journal->verify();
    EXPECT_TRUE(verified.has_value()) << verified.error().message;
    return done ? *done : Compacted();
  }
  std::string begin_run() {
    return ApiHarness::json_of(a_.call("POST", "/plans/" + a_.planned() + "/apply")).at("id");
  }
  std::string run() {
    auto id = begin_run();
    EXPECT_TRUE(a_.h.run_to_end(id, std::chrono::hours(3)));
    return id;
  }
  std::size_t count(const std::string& stream, std::string_view type) {
    const auto all = a_.h.journal->read(stream).value();
    return static_cast<std::size_t>(std::ranges::count(all, type, &JournalEvent::type));
  }
  void later(int hours) { a_.h.time.jump(std::chrono::hours(hours)); }
  void restart() {
    a_.crash();
    a_.boot();
  }

  ApiHarness a_;
  RetentionRules rules_;
};

TEST_F(RetentionTest, TakesProgressOfWhichThereIsNewerAndNothingElseOfAFreshRun) {
  const auto id = run();
  const auto stream = "run/" + id;
  const auto before = a_.get("/runs/" + id);
  const auto reported = count(stream, "step-progress");
  const auto all = a_.h.journal->read(stream)->size();
  ASSERT_GT(reported, 20U);
  EXPECT_EQ(compact().events(), 0) << "it is too young";
  later(3);
  const auto done = compact();
  EXPECT_GT(done.progress, 20);
  EXPECT_EQ(done.events(), done.progress);
  EXPECT_LE(count(stream, "step-progress"), 10U);
  EXPECT_EQ(a_.h.journal->read(stream)->size(), all - static_cast<std::size_t>(done.progress));
  EXPECT_EQ(done.before.events - done.after.events + 1, done.events()) << "one is the record";
  EXPECT_TRUE(done.archived.empty());
  EXPECT_EQ(a_.get("/runs/" + id), before);
  restart();
  EXPECT_EQ(a_.get("/runs/" + id), before);
  EXPECT_EQ(compact().events(), 0) << "nothing is left to do";
}

TEST_F(RetentionTest, KeepsWhatARunUnderWayNeeds) {
  const auto id = begin_run();
  ASSERT_TRUE(a_.h.run_until(
      [&] { return std::exchange(a_.h.news, false) && count("run/" + id, "step-progress") > 30; },
      std::chrono::hours(1)));
  later(24 * 500);
  EXPECT_GT(compact().progress, 10);
  restart();
  ASSERT_TRUE(a_.h.run_to_end(id, std::chrono::hours(3)));
  EXPECT_EQ(a_.get("/runs/" + id)["state"], "done");
  EXPECT_EQ(a_.h.cluster.nodes.size(), 3U);
  for (const auto& node : a_.h.cluster.nodes) {
    EXPECT_EQ(node.scavenge_starts, 1) << node.name << ": nothing began twice";
  }
}

TEST_F(RetentionTest, OfAnOldRunItKeepsPlanStateAndReport) {
  const auto id = run();
  const auto before = a_.get("/runs/" + id);
  const std::string plan = before["plan"];
  later(24 * 31);
  const auto done = compact();
  EXPECT_GT(done.run_details, 20);
  EXPECT_EQ(done.plans, 1);
  EXPECT_EQ(a_.h.journal->read("run/" + id)->size(), 2U);
  EXPECT_EQ(a_.get("/runs/" + id), before);
  restart();
  EXPECT_EQ(a_.get("/runs/" + id), before);
  EXPECT_EQ(a_.get("/runs")["runs"].size(), 1U);
  EXPECT_EQ(a_.call("GET", "/plans/" + plan).status, 404);
  EXPECT_FALSE(a_.planned().empty()) << "the same plan can be made anew";
}

TEST_F(RetentionTest, ACompactedRunWhoseSnapshotIsLostIsNotTakenForAnEmptyOne) {
  const auto id = run();
  later(24 * 31);
  EXPECT_GT(compact().run_details, 20);
  Snapshot other{"run/" + id, a_.h.journal->revision("run/" + id).value(), "{}",
                 R"({"format":99})"};
  ASSERT_TRUE(a_.h.journal->save_snapshot(other, a_.h.epoch).has_value());
  const auto answer = a_.call("GET", "/runs/" + id);
  EXPECT_GE(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr("a snapshot that this program cannot read"));
}

TEST_F(RetentionTest, RunsGoByAgeAndByCount) {
  std::vector<std::string> ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(run());
    later(24);
  }
  rules_.runs_kept = 1;
  rules_.runs_of_cluster = 3;
  EXPECT_GT(compact().runs, 0);
  EXPECT_EQ(a_.get("/runs")["runs"].size(), 3U);
  EXPECT_EQ(a_.call("GET", "/runs/" + ids[0]).status, 404);
  later(24 * 401);
  EXPECT_GT(compact().runs, 0);
  ASSERT_EQ(a_.get("/runs")["runs"].size(), 1U);
  EXPECT_EQ(a_.get("/runs")["runs"][0]["id"], ids[3]) << "the newest stays";
  restart();
  EXPECT_EQ(a_.get("/runs")["runs"].size(), 1U);
}

TEST_F(RetentionTest, RunsWhoseListOfRedactionsRestoresNeedStay) {
  const auto list = redactions::list_text({{.stream = "customer-7",
                                            .number = 12,
                                            .position = 100,
                                            .metadata = false,
                                            .digest = std::string(64, 'a')}});
  a_.h.cluster.operate_more = [&list](test::FakeNode& /*node*/, test::FakeOperation& operation) {
    if (operation.request.kind != "redaction_check") {
      return false;
    }
    operation.status.result_json = json{
        {"list", list},
        {"toDo", 0},
        {"missing", json::array()},
        {"refused", json::array()},
        {"obstacles", json::array()}}.dump();
    operation.status.state = api::OperationState::kDone;
    return true;
  };
  auto policy = test::ControllerHarness::quick_policy();
  planner::RedactionPolicy wanted;
  wanted.events = "12@customer-7";
  wanted.reason = "request 4711";
  policy.operation = std::move(wanted);
  const auto redaction = a_.h.start_scavenge(policy);
  ASSERT_TRUE(a_.h.run_to_end(redaction, std::chrono::hours(3)));
  for (int i = 0; i < 2; ++i) {
    run();
    later(24);
  }
  rules_.runs_kept = 1;
  later(24 * 401);
  EXPECT_GT(compact().runs, 0);
  restart();
  EXPECT_EQ(a_.get("/runs")["runs"].size(), 2U);
  EXPECT_EQ(a_.get("/runs/" + redaction)["report"]["list"], list);
}

TEST_F(RetentionTest, TheAuditIsArchivedBeforeItIsCutAndItsChainContinues) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(a_.call("POST", "/clusters/prod/pause", {{"reason", "r" + std::to_string(i)}}).status,
              202);
  }
  const auto last = a_.h.journal->last_sequence().value();
  later(24 * 401);
  ASSERT_EQ(a_.call("POST", "/clusters/prod/resume").status, 202);
  const auto done = compact();
  EXPECT_EQ(done.audit, 10) << "asked and answered, of each";
  ASSERT_THAT(done.archived, SizeIs(1));
  const auto bytes = read_file(a_.h.disk, Path("/state/archive") / done.archived[0]).value();
  const std::string text(as_text(bytes));
  std::istringstream lines(text);
  std::size_t found = 0;
  for (std::string line; std::getline(lines, line); ++found) {
    const auto entry = json::parse(line);
    EXPECT_LE(entry["sequence"], last.value());
    const JournalEvent event{Sequence(entry["sequence"].get<std::int64_t>()),
                             entry["stream"],
                             Revision(entry["revision"].get<std::int64_t>()),
                             entry["type"],
                             entry["data"],
                             Ticks(entry["at"].get<std::int64_t>()),
                             ControllerEpoch(entry["epoch"].get<std::int64_t>()),
                             entry["hash"]};
    EXPECT_EQ(to_hex(chain_hash(bytes_of_hex(entry["hash_before"].get<std::string>()), event)),
              event.hash)
        << line;
  }
  EXPECT_EQ(found, 10U);
  const auto records = a_.h.journal->read(kJournalStream).value();
  ASSERT_FALSE(records.empty());
  EXPECT_THAT(records.back().data, HasSubstr(done.archived[0]));
  EXPECT_THAT(records.back().data, HasSubstr(to_hex(sha256(bytes))));
  EXPECT_EQ(a_.get("/audit/verify")["removed"], 10);
}

TEST_F(RetentionTest, AnswersThatWereKeptGo) {
  ASSERT_EQ(
      a_.call("POST", "/clusters/prod/pause", json::object(), {{"Idempotency-Key", "k1"}}).status,
      202);
  later(49);
  EXPECT_EQ(compact().answers, 1);
  EXPECT_THAT(a_.h.journal->streams(kAnswerStreams).value(), SizeIs(0));
}

TEST_F(RetentionTest, OfNotificationsItKeepsWhatARestartWouldSendAgain) {
  const auto ended = [this](int of, int up_to) {
    const json data{
        {"of", of}, {"to", "a"}, {"outcome", "sent"}, {"attempts", 1}, {"up_to", up_to}};
    EXPECT_TRUE(a_.h.journal
                    ->append("notifications", kAnyRevision,
                             {NewEvent{"notification-ended", data.dump()}}, a_.h.epoch)
                    .has_value());
  };
  EXPECT_EQ(compact().notifications, 0);
  ended(3, 3);
  ended(6, 4);  // another recipient still waits for 5
  ended(7, 4);
  later(49);
  EXPECT_EQ(compact().notifications, 1);
  EXPECT_EQ(a_.h.journal->read("notifications")->size(), 2U);
  ended(5, 8);
  EXPECT_EQ(compact().notifications, 2);
}

TEST_F(RetentionTest, OfSealsItKeepsThoseThatSnapshotsNeed) {
  ASSERT_TRUE(a_.h.disk.make_directories("/other").has_value());
  const auto open = [this] {
    return std::make_unique<SealedSnapshots>(
        open_sqlite_journal(a_.h.disk, "/other/journal.db", a_.h.time).value(), null_log());
  };
  auto opened = open();
  Journal& journal = *opened;
  const auto epoch = journal.begin_epoch("a").value();
  const auto keep = [&](const std::string& stream, int times) {
    for (int i = 1; i <= times; ++i) {
      ASSERT_TRUE(journal.append(stream, kAnyRevision, {NewEvent{"e", "{}"}}, epoch).has_value());
      ASSERT_TRUE(
          journal.save_snapshot({stream, Revision(i), "{}", std::to_string(i)}, epoch).has_value());
    }
  };
  keep("run/gone", 3);
  keep("run/stays", 40);
  Removal all{.events = {}, .streams = {"run/gone"}};
  for (const auto& event : journal.read("run/gone").value()) {
    all.events.push_back({event.sequence, event.stream, event.revision, event.hash});
  }
  ASSERT_TRUE(journal
                  .append(kJournalStream, kAnyRevision,
                          {NewEvent{std::string(events::kEventsRemoved),
                                    R"({"ranges": [[1, 1], [3, 3], [5, 5]]})"}},
                          epoch)
                  .has_value());
  ASSERT_TRUE(journal.remove(all, epoch).has_value());

  Retention retention({.journal = journal,
                       .runs = *a_.h.executor,
                       .clock = a_.h.time,
                       .log = null_log(),
                       .epoch = epoch,
                       .files = a_.h.disk,
                       .archive = "/other/archive",
                       .rules = rules_});
  const auto done = a_.h.wait_for(retention.compact("ann", "a test"));
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_EQ(done->seals, 3 + 38);
  EXPECT_EQ(done->events(), done->seals);
  EXPECT_THAT(journal.read(SealedSnapshots::kStream).value(), SizeIs(2));
  EXPECT_TRUE(journal.verify().has_value());
  opened.reset();
  const auto kept = open()->snapshot("run/stays").value();
  ASSERT_TRUE(kept.has_value()) << "its seal is there";
  EXPECT_EQ(kept->state, "40");
}

TEST_F(RetentionTest, ARestartSealsNoCompactedRunAgain) {
  const auto id = run();
  later(24 * 31);
  EXPECT_GT(compact().run_details, 20);
  const auto before = a_.h.journal->snapshot("run/" + id).value();
  ASSERT_TRUE(before.has_value());
  auto marked = *before;
  marked.summary += " ";
  ASSERT_TRUE(a_.h.journal->save_snapshot(marked, a_.h.epoch).has_value());
  restart();
  compact();
  EXPECT_EQ(a_.h.journal->snapshot("run/" + id).value()->summary, marked.summary)
      << "the snapshot was kept again";
}

TEST_F(RetentionTest, APowerCutAnywhereLeavesAJournalThatHolds) {
  const auto id = run();
  later(24 * 31);
  const auto before = a_.get("/runs/" + id);
  bool ended = false;
  for (std::uint64_t nth = 0; !ended; nth += 3) {
    SCOPED_TRACE(nth);
    a_.h.disk.reset_count();
    a_.h.disk.set_fault_hook([nth](const DiskOperation& operation) -> std::optional<Error> {
      return operation.number < nth ? std::nullopt
                                    : std::optional(Error{Errc::kIo, "the power is gone"});
    });
    ended = try_to_compact().has_value();
    a_.crash();
    a_.h.disk.set_fault_hook({});
    a_.boot();
    const auto verified = a_.h.journal->verify();
    ASSERT_TRUE(verified.has_value()) << verified.error().message;
    ASSERT_EQ(a_.get("/runs/" + id), before);
  }
  EXPECT_EQ(a_.h.journal->read("run/" + id)->size(), 2U);
}

}  // namespace
}  // namespace verger::controller
