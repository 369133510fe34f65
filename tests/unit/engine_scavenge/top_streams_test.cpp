#include "engine/scavenge/detail/top_streams.h"

#include <gtest/gtest.h>

namespace verger::scavenge::detail {
namespace {

std::string name_of(int number) { return "stream-with-a-longer-name-" + std::to_string(number); }

TEST(TopStreams, AddUpWhatGoesOfEach) {
  TopStreams top;
  for (int round = 0; round < 3; ++round) {
    for (int number = 0; number < 2000; ++number) {
      const auto name = name_of(number);
      auto& stream = top.at(name);
      EXPECT_EQ(stream.name, name);
      EXPECT_EQ(stream.removed.records, static_cast<std::uint64_t>(round));
      stream.removed += {1, static_cast<std::uint64_t>(number)};
    }
  }
  EXPECT_TRUE(top.exact());
  EXPECT_EQ(top.streams(), 2000U);
  const auto largest = top.largest(3);
  ASSERT_EQ(largest.size(), 3U);
  EXPECT_EQ(largest[0].stream, name_of(1999));
  EXPECT_EQ(largest[0].removed, (Volume{3, 3 * 1999}));
  EXPECT_EQ(largest[2].stream, name_of(1997));
  EXPECT_EQ(top.largest(5000).size(), 2000U);
}

TEST(TopStreams, DropTheLesserOnesOfVeryMany) {
  constexpr int kStreams = 900'000;
  TopStreams top;
  for (int number = 0; number < kStreams; ++number) {
    const bool large = number % 1000 == 0;
    top.at(name_of(number)).removed += {1, large ? 1'000'000U + static_cast<unsigned>(number) : 1U};
  }
  EXPECT_FALSE(top.exact());
  EXPECT_EQ(top.streams(), static_cast<std::uint64_t>(kStreams));
  const auto largest = top.largest(kStreams / 1000);
  for (int n = 0; n < kStreams / 1000; ++n) {
    EXPECT_EQ(largest[static_cast<std::size_t>(n)].stream, name_of(kStreams - 1000 * (n + 1)));
  }
}

}  // namespace
}  // namespace verger::scavenge::detail
