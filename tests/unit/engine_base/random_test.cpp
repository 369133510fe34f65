#include "engine/base/random.h"

#include <array>
#include <gtest/gtest.h>
#include <set>

namespace verger {
namespace {

TEST(SeededRandom, GivesTheNumbersOfItsSeed) {
  // From an independent xoshiro256** seeded by splitmix64(42).
  SeededRandom random(42);
  EXPECT_EQ(random.next(), 0x15780b2e0c2ec716U);
  EXPECT_EQ(random.next(), 0x6104d9866d113a7eU);
  EXPECT_EQ(random.next(), 0xae17533239e499a1U);
  EXPECT_EQ(random.next(), 0xecb8ad4703b360a1U);
}

TEST(Random, BelowStaysBelowAndReachesEverything) {
  SeededRandom random(1);
  std::array<int, 7> seen{};
  for (int i = 0; i < 7000; ++i) {
    ++seen.at(random.below(7));
  }
  for (const int count : seen) {
    EXPECT_GT(count, 850);
    EXPECT_LT(count, 1150);
  }
  EXPECT_EQ(random.below(1), 0U);
}

TEST(Random, BelowDrawsAgainWhereTheRemainderWouldBeUneven) {
  struct Fixed final : Random {
    std::uint64_t next() override { return ++calls == 1 ? 0 : 5; }
    int calls = 0;
  } random;
  EXPECT_EQ(random.below(3), 2U);  // 2^64 mod 3 is 1, so 0 is drawn again
  EXPECT_EQ(random.calls, 2);
}

TEST(Random, MakesVersionFourGuids) {
  SeededRandom random(3);
  for (int i = 0; i < 100; ++i) {
    const auto text = random.uuid().to_string();
    EXPECT_EQ(text[14], '4') << text;
    EXPECT_NE(std::string("89ab").find(text[19]), std::string::npos) << text;
  }
}

TEST(SystemRandom, DoesNotRepeatItself) {
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    seen.insert(system_random().next());
  }
  EXPECT_EQ(seen.size(), 1000U);
}

}  // namespace
}  // namespace verger
