#include "engine/base/json_number.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace verger {
namespace {

using nlohmann::json;

TEST(JsonNumber, IsAWholeNumberThatFits) {
  EXPECT_EQ(json_integer<std::int64_t>(json::parse("9223372036854775807")), INT64_MAX);
  EXPECT_EQ(json_integer<std::int64_t>(json::parse("-9223372036854775808")), INT64_MIN);
  EXPECT_EQ(json_integer<std::uint64_t>(json::parse("18446744073709551615")), UINT64_MAX);
  EXPECT_EQ(json_integer<std::int32_t>(json::parse("-1")), -1);
}

TEST(JsonNumber, RefusesTheRest) {
  for (const auto* text : {"1e300", "0.5", "1.0", "\"1\"", "null", "true", "[]", "2147483648",
                           "-2147483649", "18446744073709551615", "99999999999999999999"}) {
    EXPECT_THROW(json_integer<std::int32_t>(json::parse(text)), std::out_of_range) << text;
  }
  EXPECT_THROW(json_integer<std::uint16_t>(json::parse("-1")), std::out_of_range);
}

TEST(JsonNumber, OfAMissingMemberIsTheOther) {
  const auto object = json::parse(R"({"a":7,"b":null})");
  EXPECT_EQ(json_integer_or<int>(object, "a", 1), 7);
  EXPECT_EQ(json_integer_or<int>(object, "c", 1), 1);
  EXPECT_THROW(json_integer_or<int>(object, "b", 1), std::out_of_range);
}

}  // namespace
}  // namespace verger
