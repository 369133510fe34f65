#include "engine/streams/detail/partition_sum.h"

#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "engine/base/random.h"
#include "tests/support/results.h"

namespace verger::streams::detail {
namespace {

Sha256Digest digest_of(std::uint8_t first, std::uint8_t last) {
  Sha256Digest digest{};
  digest.front() = std::byte{first};
  digest.back() = std::byte{last};
  return digest;
}

TEST(DigestSum, CarriesFromByteToByteAndOverItsEnd) {
  DigestSum sum;
  Sha256Digest ones;
  ones.fill(std::byte{0xff});
  sum.add(ones);
  sum.add(digest_of(3, 0));
  EXPECT_EQ(sum.value(), digest_of(2, 0)) << "2^256 - 1 + 3, modulo 2^256";
  DigestSum other;
  other.add(digest_of(0, 7));
  sum.add(other);
  EXPECT_EQ(sum.value(), digest_of(2, 7));
  EXPECT_EQ(sum.count(), 3U);
}

StreamKey key_of(std::uint8_t stream) {
  StreamKey key{};
  key[8] = std::byte{stream};
  return key;
}

class PartitionSumTest : public testing::Test {
 protected:
  static constexpr std::size_t kPartition = 5;

  PartitionSumTest() {
    options_.files = &files_;
    options_.temporary_directory = "/tmp";
    options_.memory_bytes = 1000;
    options_.keep_free = 0;
    EXPECT_TRUE(files_.make_directories("/tmp"));
    spill_.emplace(options_);
  }
  void add(std::uint8_t stream, std::int64_t number) {
    SpilledEvent event;
    event.stream = key_of(stream);
    event.number = EventNumber(number);
    event.position = LogPosition(position_ += 100);
    event.digest.front() = std::byte{1};  // so that a sum is a count
    ASSERT_TRUE(spill_->add(kPartition, event));
  }
  void add_metadata(std::uint8_t stream, std::int64_t number, SpilledLimits limits) {
    SpilledEvent event;
    event.stream = key_of(stream + 100);
    event.number = EventNumber(number);
    event.position = LogPosition(position_ += 100);
    event.digest.front() = std::byte{1};
    event.originals = {key_of(stream)};
    event.limits = limits;
    ASSERT_TRUE(spill_->add(kPartition, event));
  }
  PartitionSum finished(std::uint64_t most_kept) const {
    PartitionSum part(*spill_, kPartition, Ticks(0), most_kept);
    part.finish();
    EXPECT_TRUE(part.outcome() && *part.outcome());
    return part;
  }

  MemoryFileSystem files_;
  DigestOptions options_;
  std::optional<EventSpill> spill_;
  std::int64_t position_ = 0;
};

TEST_F(PartitionSumTest, IsTheSameWhetherItsEventsStayInMemoryOrAreReadTwice) {
  SeededRandom random(3);
  for (int n = 0; n < 3000; ++n) {
    const auto stream = static_cast<std::uint8_t>(random.below(20));
    if (random.below(20) == 0) {
      add_metadata(stream, n, {.max_count = static_cast<std::int64_t>(random.below(200))});
    } else {
      add(stream, n - static_cast<std::int64_t>(random.below(30)));  // some numbers repeat
    }
  }
  ASSERT_GT(spill_->bytes_on_disk(), 0U);
  ASSERT_GT(spill_->segments(kPartition), 2U);
  const auto kept = finished(PartitionSum::kMostKept);
  const auto read_twice = finished(0);
  EXPECT_EQ(kept.sum().value(), read_twice.sum().value());
  EXPECT_EQ(kept.sum().count(), read_twice.sum().count());
  EXPECT_GT(kept.sum().count(), 100U);
  EXPECT_LT(kept.sum().count(), 2900U);
  ASSERT_GT(kept.repeated().size(), 0U);
  ASSERT_EQ(kept.repeated().size(), read_twice.repeated().size());
  for (std::size_t n = 0; n < kept.repeated().size(); ++n) {
    EXPECT_EQ(kept.repeated()[n].position, read_twice.repeated()[n].position);
  }
}

TEST_F(PartitionSumTest, LeavesARepeatedNumberToItsCaller) {
  add(1, 0);
  add(1, 1);
  add(1, 1);
  const auto part = finished(PartitionSum::kMostKept);
  EXPECT_EQ(part.sum().count(), 2U);
  ASSERT_EQ(part.repeated().size(), 1U);
  EXPECT_EQ(part.repeated().front().position, LogPosition(300));
}

TEST_F(PartitionSumTest, LearnsLimitsFromWhatComesAfterTheEvents) {
  add(1, 0);
  add(1, 1);
  add(1, 2);
  add_metadata(1, 0, {.truncate_before = 2});
  for (const auto most_kept : {PartitionSum::kMostKept, std::uint64_t{0}}) {
    EXPECT_EQ(finished(most_kept).sum().count(), 2U) << "event 2, and the metadata";
  }
}

}  // namespace
}  // namespace verger::streams::detail
