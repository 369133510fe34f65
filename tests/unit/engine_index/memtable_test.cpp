#include "engine/index/detail/memtable.h"

#include <algorithm>
#include <set>

#include "engine/base/random.h"

namespace verger::index::detail {
namespace {

class MemtableTest : public testing::Test {
 protected:
  IndexEntry random_entry() {
    return {StreamHash(random_.below(50)),
            EventNumber(static_cast<std::int64_t>(random_.below(40))),
            LogPosition(static_cast<std::int64_t>(random_.below(100'000)))};
  }
  SeededRandom random_{11};
  std::shared_ptr<const Memtable> table_ = std::make_shared<Memtable>();
  std::multiset<IndexEntry> model_;
};

TEST_F(MemtableTest, AnswersLikeASortedSet) {
  for (int round = 0; round < 3000; ++round) {
    std::vector<IndexEntry> added(random_.below(4) + (round % 500 == 0 ? 300 : 0));
    for (auto& entry : added) {
      entry = random_entry();
      model_.insert(entry);
    }
    table_ = table_->with(added);
    if (round % 7 != 0) {
      continue;
    }
    const auto asked = random_entry();
    const auto from = asked.number;
    const auto to = random_entry().number;
    const auto limit = random_.below(10) + 1;
    std::vector<IndexEntry> expected;
    std::optional<IndexEntry> latest, previous, next;
    for (const auto& entry : model_) {  // ascending
      if (entry.hash != asked.hash) {
        continue;
      }
      latest = entry;
      previous = entry.number < from ? std::optional(entry) : previous;
      next = !next && entry.number > from ? std::optional(entry) : next;
      if (entry.number >= from && entry.number <= to) {
        expected.push_back(entry);
      }
    }
    std::vector<IndexEntry> found;
    table_->range_forward(asked.hash, from, to, limit, found);
    auto forward = expected;
    forward.resize(std::min<std::size_t>(forward.size(), limit));
    EXPECT_EQ(found, forward);
    std::ranges::reverse(expected);
    expected.resize(std::min<std::size_t>(expected.size(), limit));
    found.clear();
    table_->range(asked.hash, from, to, limit, found);
    EXPECT_EQ(found, expected);
    EXPECT_EQ(table_->latest(asked.hash), latest);
    EXPECT_EQ(table_->previous(asked.hash, from), previous);
    EXPECT_EQ(table_->next(asked.hash, from), next);
    EXPECT_EQ(table_->may_contain(asked.hash), latest.has_value());
  }
  EXPECT_EQ(table_->count(), model_.size());
  EXPECT_EQ(table_->sorted(), std::vector<IndexEntry>(model_.rbegin(), model_.rend()));
}

TEST_F(MemtableTest, KeepsWhatAReaderHolds) {
  const IndexEntry first{StreamHash(1), EventNumber(0), LogPosition(0)};
  const IndexEntry second{StreamHash(1), EventNumber(1), LogPosition(50)};
  table_ = table_->with(std::span(&first, 1));
  const auto held = table_;
  table_ = table_->with(std::span(&second, 1));
  EXPECT_EQ(held->latest(StreamHash(1)), first);
  EXPECT_EQ(table_->latest(StreamHash(1)), second);
}

TEST_F(MemtableTest, ForgetsEntriesOnRequest) {
  std::vector<IndexEntry> entries;
  for (int i = 0; i < 2000; ++i) {
    entries.push_back(random_entry());
  }
  table_ = table_->with(entries)->filtered(
      [](const IndexEntry& e) { return e.position < LogPosition(40'000); });
  std::erase_if(entries, [](const IndexEntry& e) { return e.position >= LogPosition(40'000); });
  std::ranges::sort(entries, std::greater{});
  EXPECT_EQ(table_->sorted(), entries);
  EXPECT_EQ(table_->count(), entries.size());
}

}  // namespace
}  // namespace verger::index::detail
