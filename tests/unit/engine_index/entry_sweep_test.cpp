#include "engine/index/entry_sweep.h"

#include "tests/unit/engine_index/index_fixture.h"

namespace verger::index {
namespace {

/// Fourteen streams of very different lengths, one in many tables and in memory, some missing.
class EntrySweepTest : public IndexTest {
 protected:
  void SetUp() override {
    options_.max_mem_table_size = 1000;
    index_ = open();
    std::vector<std::int64_t> next(kStreams, 0);
    for (int n = 0; n < 11'500; ++n) {
      auto stream = static_cast<std::size_t>(random_.below(kStreams));
      if (stream > 3 && n % 16 != 0) {
        stream = 1;
      }
      // Two streams have numbers out of order.
      const bool back = stream < 4 && stream % 2 == 0 && random_.below(4) == 0;
      write_entry(stream, back ? next[stream] / 2 : next[stream]++);
      if (n % 1000 == 0) {
        value(index_->maintain());
      }
    }
  }
  void write_entry(std::size_t stream, std::int64_t number) {
    const LogPosition position(position_ += 100);
    value(
        index_->add({{{hash_of(stream), EventNumber(number), position}}, position, position, {}}));
    value(index_->maintain());
  }
  StreamHash hash_of(std::size_t stream) const {
    return index_->hash("stream-" + std::to_string(stream));
  }
  /// Also of streams that are not there.
  std::vector<StreamHash> hashes() const {
    std::vector<StreamHash> all;
    for (std::size_t stream = 0; stream < kStreams + 20; ++stream) {
      all.push_back(hash_of(stream));
    }
    return all;
  }
  void expect_same(const std::vector<StreamHash>& order) {
    EntrySweep sweep(*index_);
    EntrySweep::Found found;
    for (const auto hash : order) {
      ASSERT_TRUE(value(sweep.find(hash, 100'000, found)));
      auto entries = found.entries;
      std::ranges::sort(entries, std::greater{});
      EXPECT_EQ(entries, value(index_->range(hash, EventNumber(0), kDeletedStream, 1'000'000)));
      for (const auto limit : {LogPosition(5'000), LogPosition(600'000), LogPosition(1U << 30U)}) {
        // Behind the limit some entries belong to another stream.
        const EntryFilter filter = [limit](const IndexEntry& entry) -> Result<bool> {
          return entry.position < limit || entry.position.value() % 700 != 0;
        };
        EXPECT_EQ(value(EntrySweep::latest_before(found, limit, filter)),
                  value(index_->latest_before(hash, limit, filter)));
        EXPECT_EQ(value(EntrySweep::latest_before(found, limit, nullptr)),
                  value(index_->latest_before(hash, limit, nullptr)));
      }
    }
  }

  static constexpr std::size_t kStreams = 14;
  std::unique_ptr<Index> index_;
  std::int64_t position_ = 0;
};

TEST_F(EntrySweepTest, FindsWhatTheIndexFindsInAscendingOrder) {
  ASSERT_GT(index_->tables().size(), 2U);
  ASSERT_GT(index_->memory_entry_count(), 0U);
  auto order = hashes();
  std::ranges::sort(order);
  expect_same(order);
}

TEST_F(EntrySweepTest, FindsWhatTheIndexFindsInAnyOrder) {
  auto order = hashes();
  std::ranges::sort(order, {},
                    [](StreamHash hash) { return static_cast<std::int64_t>(hash.value()); });
  expect_same(order);
  std::ranges::reverse(order);
  expect_same(order);
  for (int n = 0; n < 200; ++n) {
    order.push_back(order[random_.below(order.size())]);
  }
  expect_same(order);
}

TEST_F(EntrySweepTest, LeavesLongStreamsToTheIndex) {
  EntrySweep sweep(*index_);
  EntrySweep::Found found;
  EXPECT_FALSE(value(sweep.find(hash_of(1), 3000, found)));
  ASSERT_TRUE(value(sweep.find(hash_of(0), 3000, found)));
  EXPECT_EQ(found.entries.size(),
            value(index_->range(hash_of(0), EventNumber(0), kDeletedStream, 10'000)).size());
}

TEST_F(EntrySweepTest, HoldsTheTablesThereWere) {
  const auto before = value(index_->range(hash_of(2), EventNumber(0), kDeletedStream, 10'000));
  EntrySweep sweep(*index_);
  for (int n = 0; n < 2500; ++n) {
    write_entry(2, 100'000 + n);
  }
  EntrySweep::Found found;
  ASSERT_TRUE(value(sweep.find(hash_of(2), 100'000, found)));
  EXPECT_EQ(found.entries.size(), before.size());
}

}  // namespace
}  // namespace verger::index
