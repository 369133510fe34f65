#include "engine/base/json_escape.h"

#include <gtest/gtest.h>
#include <string>

namespace verger {
namespace {

TEST(JsonEscape, TheFirstCharacterThatNeedsOneIsFoundWhereverItStands) {
  const std::string plain(25, '~');
  EXPECT_EQ(plain_length(plain), plain.size());
  EXPECT_EQ(plain_ascii_length(plain), plain.size());
  EXPECT_EQ(plain_ascii_length(""), 0U);
  for (std::size_t at = 0; at < plain.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      const auto c = static_cast<char>(value);
      auto text = plain;
      text[at] = c;
      const bool escaped = value < 0x20 || c == '"' || c == '\\';
      EXPECT_EQ(plain_length(text), escaped ? at : text.size()) << value;
      EXPECT_EQ(plain_ascii_length(text), escaped || value >= 0x80 ? at : text.size()) << value;
    }
  }
}

}  // namespace
}  // namespace verger
