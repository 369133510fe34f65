#include "engine/base/number_from_text.h"

#include <cstdint>
#include <gtest/gtest.h>

namespace verger {
namespace {

TEST(NumberFromText, TakesWhatIsANumberFromEndToEnd) {
  EXPECT_EQ(number_from_text<std::int64_t>("0"), 0);
  EXPECT_EQ(number_from_text<std::int64_t>("-7"), -7);
  EXPECT_EQ(number_from_text<std::uint8_t>("255"), 255);
  EXPECT_EQ(number_from_text<double>("2.5"), 2.5);
  for (const auto* text : {"", " 1", "1 ", "+1", "1x", "0x1", "1.0", "-"}) {
    EXPECT_EQ(number_from_text<std::int64_t>(text), std::nullopt) << text;
  }
}

TEST(NumberFromText, RefusesWhatTheTypeDoesNotHold) {
  EXPECT_EQ(number_from_text<std::uint8_t>("256"), std::nullopt);
  EXPECT_EQ(number_from_text<std::uint8_t>("-1"), std::nullopt);
  EXPECT_EQ(number_from_text<std::int32_t>("2147483648"), std::nullopt);
}

}  // namespace
}  // namespace verger
