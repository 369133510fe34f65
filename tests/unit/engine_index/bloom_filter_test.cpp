#include "engine/index/bloom_filter.h"

#include "engine/base/digest.h"
#include "engine/base/memory_file_system.h"
#include "engine/index/stream_hash.h"

namespace verger::index {
namespace {

using Bits = std::array<std::uint64_t, kBloomProbes>;

TEST(BloomFilter, HasTheServersFileSizes) {
  EXPECT_EQ(bloom_file_size(10'000), 10'752U);
  EXPECT_EQ(bloom_file_size(30'000), 32'128U);
  EXPECT_EQ(bloom_file_size(250'000), 266'752U);
  EXPECT_EQ(bloom_file_size(500'000), 533'440U);
  EXPECT_EQ(bloom_file_size(256'000'000), 273'066'752U);
  EXPECT_EQ(bloom_file_size(4'000'000'000), 4'266'666'752U);
}

TEST(BloomFilter, ProbesTheServersBits) {
  EXPECT_EQ(bloom_bits(hash_stream("account-1"), 80'000),
            (Bits{73159, 74572, 51793, 29014, 30427, 7648}));
  EXPECT_EQ(bloom_bits(hash_stream("$$account-1"), 80'000),
            (Bits{5905, 55411, 49109, 18615, 12313, 6011}));
  EXPECT_EQ(bloom_bits(StreamHash(0xd808a9472d2f8d98U), 80'000),
            (Bits{45336, 65280, 5224, 25168, 45112, 65056}));
}

TEST(BloomFilter, BuildsTheFileOfTheReference) {
  BloomBuilder builder(10'000);
  builder.add(hash_stream("account-1"));
  builder.add(hash_stream("$$account-1"));
  const auto file = builder.finish();
  EXPECT_EQ(file.size(), 10'752U);
  EXPECT_EQ(to_hex(md5(file)), "765ecc6f650e34604e6db8d33f128bc8");
}

TEST(BloomFilter, BuildsTheLinesTheServerWrote) {
  BloomBuilder builder(10'000);
  builder.add(StreamHash(0xe13439f19243cbf6U));
  builder.add(StreamHash(0xd808a9472d2f8d98U));
  const auto file = builder.finish();
  EXPECT_EQ(to_hex(ByteView(file).first(16)), "01000000000000008038010000000000");
  EXPECT_EQ(file[704 + 53], std::byte{0x80});
  EXPECT_EQ(to_hex(ByteView(file).subspan(704 + 60, 4)), "9cc5325f");
  EXPECT_EQ(file[3840], std::byte{0x80});
  EXPECT_EQ(to_hex(ByteView(file).subspan(3840 + 60, 4)), "206b8387");
}

class BloomFile : public testing::Test {
 protected:
  std::unique_ptr<BloomFilter> open(const Bytes& content) {
    EXPECT_TRUE(write_file_durably(files_, path_, content));
    auto filter = BloomFilter::open(files_, path_);
    EXPECT_TRUE(filter) << filter.error().message;
    return filter ? std::move(*filter) : nullptr;
  }
  static Bytes sample() {
    BloomBuilder builder(10'000);
    for (std::uint64_t i = 0; i < 500; ++i) {
      builder.add(StreamHash(i * 0x9E3779B97F4A7C15U));
    }
    return builder.finish();
  }

  MemoryFileSystem files_;
  Path path_ = "/filter";
};

TEST_F(BloomFile, HasNoFalseNegativesAndFewFalsePositives) {
  const auto filter = open(sample());
  int false_positives = 0;
  for (std::uint64_t i = 0; i < 500; ++i) {
    EXPECT_TRUE(filter->may_contain(StreamHash(i * 0x9E3779B97F4A7C15U)));
    false_positives += filter->may_contain(StreamHash(i * 0x9E3779B97F4A7C15U + 1)) ? 1 : 0;
  }
  EXPECT_LT(false_positives, 10);
}

TEST_F(BloomFile, TakesADamagedLineAsMightContainEverything) {
  auto content = sample();
  const auto intact = open(content);
  const auto missing = StreamHash(12345);
  ASSERT_FALSE(intact->may_contain(missing));
  for (const auto bit : bloom_bits(missing, 80'000)) {
    const auto at = (locate_bloom_bit(bit).line + 1) * kBloomLineSize;
    for (std::size_t i = 0; i < 8; ++i) {
      content[at + i] ^= std::byte{0xFF};
    }
  }
  const auto damaged = open(content);
  EXPECT_TRUE(damaged->may_contain(missing));
  EXPECT_EQ(damaged->damaged_lines()->count, 6U);
}

TEST_F(BloomFile, AcceptsALineWithOneBitTooMany) {
  auto content = sample();
  content[kBloomLineSize * 7 + 3] ^= std::byte{0x10};
  const bool was_set = (content[kBloomLineSize * 7 + 3] & std::byte{0x10}) == std::byte{0};
  const auto filter = open(content);
  EXPECT_EQ(filter->damaged_lines()->count, was_set ? 1U : 0U);
}

TEST_F(BloomFile, WithTooManyDamagedLinesNeverSaysNo) {
  auto content = sample();
  for (std::size_t line = 1; line <= 9; ++line) {
    content[line * kBloomLineSize] ^= std::byte{0xFF};
    content[line * kBloomLineSize + 1] ^= std::byte{0xFF};
  }
  const auto filter = open(content);
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_TRUE(filter->may_contain(StreamHash(i * 7919)));
  }
}

TEST_F(BloomFile, RefusesAnotherVersionAndAnotherLength) {
  auto content = sample();
  content[0] = std::byte{2};
  ASSERT_TRUE(write_file_durably(files_, path_, content));
  EXPECT_EQ(BloomFilter::open(files_, path_).error().code, Errc::kUnsupported);
  content[0] = std::byte{1};
  content.resize(content.size() - kBloomLineSize);
  ASSERT_TRUE(write_file_durably(files_, path_, content));
  EXPECT_EQ(BloomFilter::open(files_, path_).error().code, Errc::kCorruption);
}

}  // namespace
}  // namespace verger::index
