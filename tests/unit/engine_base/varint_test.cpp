#include "engine/base/varint.h"

#include <gtest/gtest.h>
#include <limits>

namespace verger {
namespace {

TEST(Varint, IsReadAsItWasWritten) {
  const std::vector<std::uint64_t> numbers = {
      0, 1, 127, 128, 300, 16'383, 16'384, std::numeric_limits<std::uint64_t>::max()};
  Bytes bytes;
  for (const auto number : numbers) {
    append_varint(bytes, number);
  }
  EXPECT_EQ(bytes.size(), 3 * 1 + 3 * 2 + 3 + kMostBytesOfVarint);
  ByteView left = bytes;
  for (const auto number : numbers) {
    EXPECT_EQ(take_varint(left), number);
  }
  EXPECT_TRUE(left.empty());
}

TEST(Varint, IsRefusedWhereItHasNoEnd) {
  const Bytes without_end(3, std::byte{0x80});
  const Bytes too_long(kMostBytesOfVarint + 1, std::byte{0x80});
  for (ByteView left : {ByteView(), ByteView(without_end), ByteView(too_long)}) {
    const auto size = left.size();
    EXPECT_EQ(take_varint(left), std::nullopt);
    EXPECT_EQ(left.size(), size);
  }
}

}  // namespace
}  // namespace verger
