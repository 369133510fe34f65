#include "nodeagent/grpc/framing.h"

#include <gtest/gtest.h>

namespace verger::grpc {
namespace {

using namespace std::chrono_literals;

TEST(GrpcFraming, TakesMessagesOutOfPieces) {
  MessageReader reader(100, Encoding::kNone);
  const auto bytes = framed("first") + framed("") + framed("third");
  std::vector<std::string> messages;
  for (const char byte : bytes) {
    reader.add({&byte, 1});
    for (auto next = reader.next(); next && *next; next = reader.next()) {
      messages.push_back(**next);
    }
  }
  EXPECT_EQ(messages, (std::vector<std::string>{"first", "", "third"}));
  EXPECT_FALSE(reader.has_rest());
}

TEST(GrpcFraming, AMessageThatIsCutOffIsARest) {
  MessageReader reader(100, Encoding::kNone);
  reader.add(std::string_view(framed("whole")).substr(0, 7));
  const auto next = reader.next();
  ASSERT_TRUE(next.has_value());
  EXPECT_FALSE(next->has_value());
  EXPECT_TRUE(reader.has_rest());
}

TEST(GrpcFraming, RefusesAMessageByItsLength) {
  MessageReader reader(4, Encoding::kNone);
  reader.add(std::string_view(framed("12345")).substr(0, 5));
  const auto next = reader.next();
  ASSERT_FALSE(next.has_value());
  EXPECT_EQ(next.error().code, Code::kResourceExhausted);
}

TEST(GrpcFraming, ACompressedMessageNeedsItsEncoding) {
  auto bytes = framed("text");
  bytes[0] = 1;
  MessageReader reader(100, Encoding::kNone);
  reader.add(bytes);
  const auto next = reader.next();
  ASSERT_FALSE(next.has_value());
  EXPECT_EQ(next.error().code, Code::kInternal);
}

TEST(GrpcFraming, ATextThatGrowsBeyondTheLimitIsRefused) {
  // gzip of 100 letters "a".
  const std::string packed(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x4b\x4c"
      "\xa4\x3d\x00\x00\x64\x7a\x70\xaf\x64\x00\x00\x00",
      24);
  EXPECT_EQ(inflated(packed, 100), std::string(100, 'a'));
  EXPECT_FALSE(inflated(packed, 50).has_value());
  EXPECT_FALSE(inflated("no gzip", 50).has_value());
}

TEST(GrpcFraming, ReadsTimeouts) {
  EXPECT_EQ(parse_timeout("500m"), 500ms);
  EXPECT_EQ(parse_timeout("3S"), 3s);
  EXPECT_EQ(parse_timeout("7u"), 7us);
  EXPECT_EQ(parse_timeout("99999999H"), 24h * 365);
  for (const auto* wrong : {"", "5", "m", "-5m", "5x", "999999999S"}) {
    EXPECT_EQ(parse_timeout(wrong), std::nullopt) << wrong;
  }
}

TEST(GrpcFraming, MessagesOfStatusesArePercentEncoded) {
  EXPECT_EQ(encode_message("50% grün\n"), "50%25 gr%C3%BCn%0A");
  EXPECT_EQ(decode_message("50%25 gr%C3%BCn%0A"), "50% grün\n");
  EXPECT_EQ(decode_message("%4"), "%4");
}

}  // namespace
}  // namespace verger::grpc
