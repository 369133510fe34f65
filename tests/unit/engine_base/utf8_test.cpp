#include "engine/base/utf8.h"

#include <gtest/gtest.h>

namespace verger {
namespace {

TEST(Utf8, AcceptsTextAndRefusesTheRest) {
  const std::string ascii(7, 'a');
  for (const std::string_view good :
       {"", "plain", "käse", "日本", "\U0001F427", "\U0010FFFF", "\uD7FF", "\uE000"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
    EXPECT_TRUE(is_utf8(ascii + std::string(good) + ascii)) << good;
  }
  for (const std::string_view bad :
       {"\x80", "\xC3", "\xC3\x28", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF",
        "\xED\xA0\x80", "\xE2\x82\x28", "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xFF", "a\xE2\x82"}) {
    EXPECT_FALSE(is_utf8(bad));
    EXPECT_FALSE(is_utf8(ascii + std::string(bad) + ascii));
  }
}

/// Each code point, written, is one sequence; each surrogate's is none.
TEST(Utf8, WritesWhatItAccepts) {
  for (std::uint32_t code = 0; code <= 0x10FFFF; ++code) {
    std::string text;
    append_utf8(text, code);
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    ASSERT_EQ(utf8_length(text), surrogate ? 0 : text.size()) << code;
    ASSERT_EQ(utf8_length(text + "x"), surrogate ? 0 : text.size()) << code;
  }
  EXPECT_EQ(utf8_length(""), 0U);
}

TEST(Utf8, KnowsHowMuchAFirstSequenceTakes) {
  EXPECT_EQ(utf8_length("ab"), 1U);
  EXPECT_EQ(utf8_length("ä"), 2U);
  EXPECT_EQ(utf8_length("€ "), 3U);
  EXPECT_EQ(utf8_length("\U0001F427\x80"), 4U);
  EXPECT_EQ(utf8_length("\x80"), 0U);
}

}  // namespace
}  // namespace verger
