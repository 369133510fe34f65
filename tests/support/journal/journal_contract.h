#pragma once

#include <algorithm>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/journal/journal.h"

// What controller/journal/journal.h promises, for every store. Included once by each test binary,
// which says on what: INSTANTIATE_TEST_SUITE_P(NAME, JournalContract, testing::Values(MAKE)).
namespace verger::controller {

class CountingClock final : public Clock {
 public:
  Ticks now() override { return Ticks(kUnixEpoch.value() + ++calls_); }
  Monotonic monotonic() override { return Monotonic(++calls_); }

 private:
  std::int64_t calls_ = 0;
};

/// Where a journal is kept; it outlives the journals that are opened on it.
class JournalStore {
 public:
  virtual ~JournalStore() = default;
  virtual Result<std::unique_ptr<Journal>> open(Clock& clock) = 0;
};
using MakeJournalStore = std::function<std::unique_ptr<JournalStore>()>;

/// A journal under an epoch of its own; SetUp() of a test says where it is kept.
class OpenJournal : public ::testing::Test {
 protected:
  void open() {
    auto opened = store_->open(clock_);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    journal_ = std::move(*opened);
    auto epoch = journal_->begin_epoch("test");
    ASSERT_TRUE(epoch.has_value()) << epoch.error().message;
    epoch_ = *epoch;
  }
  Result<Revision> add(std::string_view stream, std::string type,
                       Revision expected = kAnyRevision) {
    VERGER_TRY(const auto written,
               journal_->append(stream, expected, {{std::move(type), "{\"a\":1}"}}, epoch_));
    return written.back().revision;
  }
  std::vector<std::string> types(std::string_view stream) {
    std::vector<std::string> out;
    const auto events = journal_->read(stream);
    for (const auto& event : *events) {
      out.push_back(event.type);
    }
    return out;
  }

  std::unique_ptr<JournalStore> store_;
  CountingClock clock_;
  std::unique_ptr<Journal> journal_;
  ControllerEpoch epoch_;
};

class JournalContract : public OpenJournal, public ::testing::WithParamInterface<MakeJournalStore> {
 protected:
  void SetUp() override {
    store_ = GetParam()();
    open();
  }
};

TEST_P(JournalContract, GivesBackWhatWasAppendedInOrder) {
  ASSERT_EQ(add("run/1", "started", Revision(0)).value(), Revision(1));
  ASSERT_EQ(add("run/2", "started").value(), Revision(1));
  const auto two = journal_->append("run/1", Revision(1), {{"b", "{}"}, {"c", "{}"}}, epoch_);
  ASSERT_EQ(two.value().size(), 2U);
  EXPECT_EQ(two->back().revision, Revision(3));
  // What an append returns is what a reader finds.
  const auto read = journal_->read("run/1", Revision(1)).value();
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*two)[i].type, read[i].type);
    EXPECT_EQ((*two)[i].at, read[i].at);
    EXPECT_EQ((*two)[i].hash, read[i].hash);
    EXPECT_EQ((*two)[i].sequence, read[i].sequence);
  }
  EXPECT_THAT(types("run/1"), ::testing::ElementsAre("started", "b", "c"));
  const auto all = journal_->read_all(Sequence(1));
  ASSERT_EQ(all->size(), 3U);
  EXPECT_EQ(all->front().stream, "run/2");
  EXPECT_EQ(all->front().sequence, Sequence(2));
  EXPECT_EQ(journal_->last_sequence().value(), Sequence(4));
  EXPECT_THAT(journal_->streams("run/").value(), ::testing::ElementsAre("run/1", "run/2"));
  EXPECT_THAT(journal_->streams("run/2").value(), ::testing::ElementsAre("run/2"));
}

TEST_P(JournalContract, RefusesAnotherRevision) {
  ASSERT_TRUE(add("s", "a").has_value());
  const auto again = add("s", "b", Revision(0));
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, Errc::kConflict);
  EXPECT_THAT(types("s"), ::testing::ElementsAre("a"));
}

TEST_P(JournalContract, RefusesAnOlderEpoch) {
  const auto old = epoch_;
  ASSERT_TRUE(journal_->begin_epoch("the other").has_value());
  const auto late = journal_->append("s", kAnyRevision, {{"a", "{}"}}, old);
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Errc::kRefused);
}

TEST_P(JournalContract, TakesTheNextEpochAtEachStart) {
  EXPECT_EQ(epoch_, ControllerEpoch(1));
  journal_.reset();
  open();
  EXPECT_EQ(epoch_, ControllerEpoch(2));
}

TEST_P(JournalContract, NotifiesListenersUntilTheyGo) {
  std::vector<std::int64_t> heard;
  auto subscription = journal_->subscribe([&](Sequence last) { heard.push_back(last.value()); });
  ASSERT_TRUE(add("s", "a").has_value());
  subscription.reset();
  ASSERT_TRUE(add("s", "b").has_value());
  EXPECT_THAT(heard, ::testing::ElementsAre(1));
}

TEST_P(JournalContract, KeepsTheNewestSnapshotOfAStream) {
  EXPECT_FALSE(journal_->snapshot("run/1").value().has_value());
  ASSERT_TRUE(add("run/1", "a").has_value());
  ASSERT_TRUE(add("run/2", "a").has_value());
  ASSERT_TRUE(journal_->save_snapshot({"run/1", Revision(1), "one", "1"}, epoch_).has_value());
  ASSERT_TRUE(journal_->save_snapshot({"run/2", Revision(1), "two", "2"}, epoch_).has_value());
  ASSERT_TRUE(add("run/1", "b").has_value());
  journal_.reset();
  open();
  const auto kept = journal_->snapshot("run/1").value();
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(kept->revision, Revision(1));
  EXPECT_EQ(kept->state, "1");
  // Of the first there is a newer event.
  const auto current = journal_->current_snapshots("run/").value();
  ASSERT_EQ(current.size(), 1U);
  EXPECT_EQ(current[0].stream, "run/2");
  EXPECT_EQ(current[0].summary, "two");
  EXPECT_TRUE(journal_->current_snapshots("plan/").value().empty());
  ASSERT_TRUE(journal_->save_snapshot({"run/1", Revision(2), "one", "12"}, epoch_).has_value());
  EXPECT_EQ(journal_->snapshot("run/1").value()->state, "12");
  EXPECT_EQ(journal_->current_snapshots("run/").value().size(), 2U);
  EXPECT_TRUE(journal_->verify().has_value());
}

TEST_P(JournalContract, RefusesASnapshotOfAnotherRevisionOrEpoch) {
  ASSERT_TRUE(add("s", "a").has_value());
  for (const auto wrong : {Revision(0), Revision(2)}) {
    EXPECT_EQ(journal_->save_snapshot({"s", wrong, "", ""}, epoch_).error().code, Errc::kConflict);
  }
  EXPECT_EQ(journal_->save_snapshot({"none", Revision(1), "", ""}, epoch_).error().code,
            Errc::kConflict);
  const auto old = epoch_;
  ASSERT_TRUE(journal_->begin_epoch("the other").has_value());
  EXPECT_EQ(journal_->save_snapshot({"s", Revision(1), "", ""}, old).error().code, Errc::kRefused);
}

/// The events with these sequence numbers, as a removal names them.
inline Removal removal_of(Journal& journal, const std::vector<std::int64_t>& sequences,
                          std::vector<std::string> streams = {}) {
  Removal out{.events = {}, .streams = std::move(streams)};
  for (const auto& event : journal.read_all(Sequence(0), 10'000).value()) {
    if (std::ranges::find(sequences, event.sequence.value()) != sequences.end()) {
      out.events.push_back({event.sequence, event.stream, event.revision, event.hash});
    }
  }
  return out;
}

inline std::vector<std::pair<std::int64_t, std::int64_t>> gaps_of(Journal& journal) {
  std::vector<std::pair<std::int64_t, std::int64_t>> out;
  for (const auto& range : journal.removed().value()) {
    out.emplace_back(range.first.value(), range.last.value());
  }
  return out;
}

TEST_P(JournalContract, RemovesEventsAndItsChainStillHolds) {
  using ::testing::ElementsAre;
  using ::testing::Pair;
  for (int i = 1; i <= 12; ++i) {
    ASSERT_TRUE(add(i % 2 == 0 ? "even" : "odd", std::to_string(i)).has_value());
  }
  const auto record = [&](const std::string& ranges) {
    ASSERT_TRUE(journal_
                    ->append(kJournalStream, kAnyRevision,
                             {{std::string(events::kEventsRemoved), "{\"ranges\":" + ranges + "}"}},
                             epoch_)
                    .has_value());
  };
  record("[[2,3],[5,6],[8,8]]");
  ASSERT_TRUE(journal_->remove(removal_of(*journal_, {2, 3, 5, 6, 8}), epoch_).has_value());
  EXPECT_THAT(gaps_of(*journal_), ElementsAre(Pair(2, 3), Pair(5, 6), Pair(8, 8)));
  EXPECT_EQ(journal_->verify().value(), Sequence(13));
  record("[[4,4],[7,7],[1,1]]");
  const auto more = journal_->remove(removal_of(*journal_, {1, 4, 7}), epoch_);
  ASSERT_TRUE(more.has_value()) << more.error().message;
  EXPECT_THAT(gaps_of(*journal_), ElementsAre(Pair(1, 8)));
  for (const bool again : {false, true}) {
    if (again) {
      journal_.reset();
      open();
    }
    EXPECT_EQ(journal_->verify().value(), Sequence(14));
    EXPECT_THAT(types("odd"), ElementsAre("9", "11"));
    EXPECT_EQ(journal_->read("odd", Revision(5), 1).value().front().type, "11");
    EXPECT_EQ(journal_->revision("even").value(), Revision(6));
    EXPECT_EQ(journal_->read_all(Sequence(0)).value().front().sequence, Sequence(9));
    EXPECT_EQ(journal_->size().value().events, 6);
  }
  EXPECT_GT(journal_->size().value().bytes, 0);
  EXPECT_TRUE(journal_->reclaim().has_value());
  EXPECT_EQ(add("odd", "13", Revision(6)).value(), Revision(7));
  EXPECT_EQ(journal_->verify().value(), Sequence(15));
}

TEST_P(JournalContract, RemovesAStreamWithItsSnapshot) {
  for (const auto* stream : {"run/1", "run/2", "run/1", "other"}) {
    ASSERT_TRUE(add(stream, "a").has_value());
  }
  ASSERT_TRUE(journal_->save_snapshot({"run/1", Revision(2), "one", "1"}, epoch_).has_value());
  ASSERT_TRUE(journal_
                  ->append(kJournalStream, kAnyRevision,
                           {{std::string(events::kEventsRemoved), R"({"ranges":[[1,1],[3,3]]})"}},
                           epoch_)
                  .has_value());
  ASSERT_TRUE(journal_->remove(removal_of(*journal_, {1, 3}, {"run/1"}), epoch_).has_value());
  EXPECT_THAT(journal_->streams("run/").value(), ::testing::ElementsAre("run/2"));
  EXPECT_FALSE(journal_->snapshot("run/1").value().has_value());
  EXPECT_TRUE(journal_->current_snapshots("run/").value().empty());
  EXPECT_TRUE(journal_->verify().has_value());
  EXPECT_EQ(add("run/1", "anew", Revision(0)).value(), Revision(1));
}

TEST_P(JournalContract, FindsWhatIsMissingWithoutARecordOfItsRemoval) {
  for (const auto* type : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(add("s", type).has_value());
  }
  ASSERT_TRUE(journal_->remove(removal_of(*journal_, {2}), epoch_).has_value());
  const auto verified = journal_->verify();
  ASSERT_FALSE(verified.has_value());
  EXPECT_EQ(verified.error().code, Errc::kCorruption);
  EXPECT_THAT(verified.error().message, ::testing::HasSubstr("the events 2 to 2 are missing"));
}

TEST_P(JournalContract, RefusesToRemoveWhatStatesHangOn) {
  for (const auto* stream : {"s", "t", "s"}) {
    ASSERT_TRUE(add(stream, "a").has_value());
  }
  const auto code = [&](const std::vector<std::int64_t>& sequences) {
    return journal_->remove(removal_of(*journal_, sequences), epoch_).error().code;
  };
  EXPECT_EQ(code({3}), Errc::kInvalidArgument) << "the newest of all";
  EXPECT_EQ(code({1, 2}), Errc::kInvalidArgument) << "the newest of its stream";
  const auto old = epoch_;
  ASSERT_TRUE(journal_->begin_epoch("the other").has_value());
  EXPECT_EQ(journal_->remove(removal_of(*journal_, {1}), old).error().code, Errc::kRefused);
  EXPECT_EQ(journal_->read_all(Sequence(0)).value().size(), 3U);
}

TEST_P(JournalContract, AppendsAllOrNothing) {
  ASSERT_TRUE(add("s", "a").has_value());
  EXPECT_FALSE(journal_->append("s", Revision(7), {{"b", "{}"}, {"c", "{}"}}, epoch_).has_value());
  const auto none = journal_->append("s", Revision(1), {}, epoch_);
  ASSERT_TRUE(none.has_value());
  EXPECT_TRUE(none->empty());
  EXPECT_EQ(journal_->revision("s").value(), Revision(1));
  EXPECT_EQ(journal_->last_sequence().value(), Sequence(1));
}

TEST_P(JournalContract, KeepsStreamsApartWhoseNamesBeginAlike) {
  for (const auto* stream : {"a", "a/b", "a/b/c", "ab"}) {
    ASSERT_TRUE(add(stream, stream, Revision(0)).has_value());
  }
  for (const auto* stream : {"a", "a/b", "a/b/c", "ab"}) {
    EXPECT_THAT(types(stream), ::testing::ElementsAre(stream));
  }
  EXPECT_THAT(journal_->streams("a/").value(), ::testing::ElementsAre("a/b", "a/b/c"));
  EXPECT_THAT(journal_->streams("").value(), ::testing::SizeIs(4));
  EXPECT_THAT(types("b"), ::testing::IsEmpty());
}

TEST_P(JournalContract, IsTheSameWhenItIsReopened) {
  const std::string data = R"({"text":"line\n \"quoted\" \u00fc","n":[1,2]})";
  ASSERT_TRUE(
      journal_->append("x/1", kAnyRevision, {{"t", data}, {"u", "{}"}}, epoch_).has_value());
  ASSERT_TRUE(add("y", "v").has_value());
  const auto before = journal_->read_all(Sequence(0)).value();
  journal_.reset();
  open();
  const auto after = journal_->read_all(Sequence(0)).value();
  ASSERT_EQ(before.size(), 3U);
  ASSERT_EQ(after.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(after[i].sequence, before[i].sequence);
    EXPECT_EQ(after[i].stream, before[i].stream);
    EXPECT_EQ(after[i].revision, before[i].revision);
    EXPECT_EQ(after[i].type, before[i].type);
    EXPECT_EQ(after[i].data, before[i].data);
    EXPECT_EQ(after[i].at, before[i].at);
    EXPECT_EQ(after[i].epoch, before[i].epoch);
    EXPECT_EQ(after[i].hash, before[i].hash);
  }
  EXPECT_EQ(after[0].data, data);
  EXPECT_EQ(add("x/1", "w", Revision(2)).value(), Revision(3));
  EXPECT_EQ(journal_->verify().value(), Sequence(4));
}

TEST_P(JournalContract, ReadsWhatIsAskedForAndNoMore) {
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(
        journal_
            ->append(i % 3 == 0 ? "other" : "s", kAnyRevision, {{std::to_string(i), "{}"}}, epoch_)
            .has_value());
  }
  // Once from what this journal remembers, once from the store.
  for (const bool again : {false, true}) {
    if (again) {
      journal_.reset();
      open();
    }
    const auto some = journal_->read("s", Revision(10), 5).value();
    ASSERT_EQ(some.size(), 5U);
    EXPECT_EQ(some.front().revision, Revision(11));
    EXPECT_EQ(journal_->read("s").value().size(), 200U);
    EXPECT_EQ(journal_->read("s", Revision(199)).value().size(), 1U);
    EXPECT_EQ(journal_->read("s", Revision(200)).value().size(), 0U);
    const auto all = journal_->read_all(Sequence(7), 280).value();
    ASSERT_EQ(all.size(), 280U);
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(all[i].sequence.value(), static_cast<std::int64_t>(i) + 8);
      ASSERT_EQ(all[i].type, std::to_string(i + 7));
    }
    EXPECT_EQ(journal_->read_all(Sequence(298)).value().size(), 2U);
    EXPECT_TRUE(journal_->read_all(Sequence(300)).value().empty());
    EXPECT_EQ(journal_->verify().value(), Sequence(300));
  }
}

}  // namespace verger::controller
