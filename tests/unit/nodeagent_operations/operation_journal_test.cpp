#include "nodeagent/operations/operation_journal.h"

#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "tests/support/manual_clock.h"

namespace verger::agent {
namespace {

const Path kPath = "/agent/operations.db";

class OperationJournalTest : public ::testing::Test {
 protected:
  OperationJournalTest() {
    EXPECT_TRUE(disk_.make_directories("/agent").has_value());
    EXPECT_TRUE(disk_.sync_directory("/").has_value());
  }
  std::unique_ptr<OperationJournal> open() {
    auto journal = OperationJournal::open(disk_, kPath, system_clock());
    EXPECT_TRUE(journal.has_value()) << journal.error().message;
    return *std::move(journal);
  }
  static api::OperationRequest request(std::string id, std::string step = "scavenge-n1") {
    return {.id = std::move(id),
            .run = "run",
            .step = std::move(step),
            .controller_epoch = 3,
            .kind = "scavenge",
            .parameters_json = R"({"threads":2})",
            .expected_instance_id = "i"};
  }
  MemoryFileSystem disk_;
};

TEST_F(OperationJournalTest, AnIdIsNewOnce) {
  auto journal = open();
  const auto first = journal->accept(request("a"));
  ASSERT_TRUE(first.has_value());
  EXPECT_TRUE(first->is_new);
  const auto again = journal->accept(request("a"));
  ASSERT_TRUE(again.has_value());
  EXPECT_FALSE(again->is_new);
}

TEST_F(OperationJournalTest, TheSameIdWithOtherContentIsAConflict) {
  auto journal = open();
  ASSERT_TRUE(journal->accept(request("a")).has_value());
  const auto other = journal->accept(request("a", "scavenge-n2"));
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, Errc::kConflict);
}

TEST_F(OperationJournalTest, WhatItAnsweredSurvivesThePower) {
  {
    auto journal = open();
    auto accepted = journal->accept(request("a"));
    ASSERT_TRUE(accepted.has_value());
    auto record = accepted->record;
    record.status.state = api::OperationState::kActing;
    record.memory_json = R"({"scavenge_id":"x"})";
    ASSERT_TRUE(journal->update(record).has_value());
    ASSERT_TRUE(journal->raise_epoch(7).has_value());
    disk_.cut_power();
  }
  auto journal = open();
  const auto unfinished = journal->unfinished();
  ASSERT_TRUE(unfinished.has_value());
  ASSERT_EQ(unfinished->size(), 1U);
  EXPECT_EQ(unfinished->front().status.state, api::OperationState::kActing);
  EXPECT_EQ(unfinished->front().memory_json, R"({"scavenge_id":"x"})");
  EXPECT_EQ(unfinished->front().request.parameters_json, R"({"threads":2})");
  EXPECT_EQ(journal->highest_epoch(), 7);
}

TEST_F(OperationJournalTest, AnOlderControllerIsRefused) {
  auto journal = open();
  ASSERT_TRUE(journal->raise_epoch(5).has_value());
  EXPECT_TRUE(journal->raise_epoch(5).has_value());
  const auto older = journal->raise_epoch(4);
  ASSERT_FALSE(older.has_value());
  EXPECT_EQ(older.error().code, Errc::kRefused);
}

TEST_F(OperationJournalTest, AJumpOfTheEpochLocksTheRealControllerOutOfNothing) {
  auto journal = open();
  ASSERT_TRUE(journal->raise_epoch(5).has_value());
  const auto jump = journal->raise_epoch(std::int64_t{1} << 62U);
  ASSERT_FALSE(jump.has_value());
  EXPECT_EQ(jump.error().code, Errc::kRefused);
  EXPECT_NE(jump.error().message.find("verger-agent epoch"), std::string::npos);
  EXPECT_EQ(journal->highest_epoch(), 5);
  EXPECT_TRUE(journal->raise_epoch(6).has_value());
  EXPECT_TRUE(journal->raise_epoch(6 + kEpochJump).has_value());
}

TEST_F(OperationJournalTest, AWrongEpochCanBeRepairedWhileTheAgentIsStopped) {
  {
    auto journal = open();
    ASSERT_TRUE(journal->raise_epoch(kEpochJump).has_value());
    EXPECT_FALSE(set_highest_epoch(disk_, kPath, 7).has_value()) << "an agent uses it";
  }
  EXPECT_EQ(set_highest_epoch(disk_, kPath, 7).value_or(0), kEpochJump);
  EXPECT_EQ(read_highest_epoch(disk_, kPath).value_or(0), 7);
  auto journal = open();
  EXPECT_EQ(journal->highest_epoch(), 7);
  EXPECT_TRUE(journal->raise_epoch(8).has_value());
  EXPECT_EQ(set_highest_epoch(disk_, "/nowhere.db", 7).error().code, Errc::kNotFound);
}

TEST_F(OperationJournalTest, EndedOnesAreNotUnfinishedAndComeNewestFirst) {
  auto journal = open();
  for (const auto* id : {"a", "b", "c"}) {
    auto accepted = journal->accept(request(id));
    ASSERT_TRUE(accepted.has_value());
    if (std::string(id) != "b") {
      accepted->record.status.state = api::OperationState::kDone;
      ASSERT_TRUE(journal->update(accepted->record).has_value());
    }
  }
  const auto unfinished = journal->unfinished();
  ASSERT_TRUE(unfinished.has_value());
  ASSERT_EQ(unfinished->size(), 1U);
  EXPECT_EQ(unfinished->front().request.id, "b");
  const auto ended = journal->newest_ended(1);
  ASSERT_TRUE(ended.has_value());
  ASSERT_EQ(ended->size(), 1U);
  EXPECT_EQ(ended->front().request.id, "c");
}

TEST_F(OperationJournalTest, EndedOnesGoByAgeAndCountAndUnfinishedOnesStay) {
  test::ManualClock clock;
  const OperationRetention rules{
      .age = std::chrono::days(100), .kept = 2, .count = 5, .settled = std::chrono::days(10)};
  auto journal = OperationJournal::open(disk_, kPath, clock, rules).value();
  const auto end = [&](const std::string& id, api::OperationState state) {
    auto accepted = journal->accept(request(id));
    ASSERT_TRUE(accepted.has_value());
    accepted->record.status.state = state;
    accepted->record.status.finished_at = format_ticks(clock.now());
    ASSERT_TRUE(journal->update(accepted->record).has_value());
  };
  const auto known = [&](const std::string& id) { return journal->find(id).value().has_value(); };
  ASSERT_TRUE(journal->accept(request("under way")).has_value());
  for (int i = 0; i < 8; ++i) {
    end("old " + std::to_string(i),
        i % 2 == 0 ? api::OperationState::kDone : api::OperationState::kFailed);
  }
  end("newer 0", api::OperationState::kDone);
  EXPECT_TRUE(known("old 0")) << "more than five, but a controller may still ask";

  clock.advance_seconds(11 * 86'400);
  end("newer 1", api::OperationState::kDone);
  EXPECT_FALSE(known("old 3"));
  EXPECT_TRUE(known("old 4")) << "the newest five as it came";

  clock.advance_seconds(101 * 86'400);
  journal.reset();
  journal = OperationJournal::open(disk_, kPath, clock, rules).value();
  EXPECT_FALSE(known("old 7"));
  EXPECT_TRUE(known("newer 0"));
  EXPECT_TRUE(known("newer 1"));
  EXPECT_TRUE(known("under way")) << "at any age";
}

TEST_F(OperationJournalTest, ReadsTheNamesThatVersion01Wrote) {
  {
    auto journal = open();
    auto old = request("a");
    old.parameters_json = R"({"sync_only":true,"throttle_percent":50})";
    auto record = journal->accept(old)->record;
    record.status.state = api::OperationState::kDone;
    record.status.result_json = R"({"point":{"effective_now":"x"},"space_saved":5})";
    ASSERT_TRUE(journal->update(record).has_value());
  }
  auto journal = open();
  const auto known = journal->find("a");
  ASSERT_TRUE(known.has_value() && known->has_value());
  EXPECT_EQ((*known)->request.parameters_json, R"({"syncOnly":true,"throttlePercent":50})");
  EXPECT_EQ((*known)->status.result_json, R"({"point":{"effectiveNow":"x"},"spaceSaved":5})");
  // A controller of that version asks for the same operation in its own words.
  const auto again = api::parse_operation_request(
      R"({"id":"a","run":"run","step":"scavenge-n1","controllerEpoch":3,"kind":"scavenge",)"
      R"("expectedInstanceId":"i","parameters":{"throttle_percent":50,"sync_only":true}})");
  ASSERT_TRUE(again.has_value()) << again.error().message;
  const auto accepted = journal->accept(*again);
  ASSERT_TRUE(accepted.has_value()) << accepted.error().message;
  EXPECT_FALSE(accepted->is_new);
}

}  // namespace
}  // namespace verger::agent
