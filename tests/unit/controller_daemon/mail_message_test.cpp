#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <vector>

#include "controller/daemon/mailer.h"

namespace verger::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The headers of a mail with that subject, a line each.
std::vector<std::string> headers_with(const std::string& subject) {
  const auto message = mail_message(
      {.to = "ops@example.com", .subject = subject, .text = "the text\n.\n", .id = "17-abcdef01"},
      "verger@example.com", Ticks(0));
  EXPECT_THAT(message.substr(message.find("\r\n\r\n")), HasSubstr("dGhlIHRleHQKLgo="));
  std::istringstream in(message.substr(0, message.find("\r\n\r\n")));
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) {
      line.pop_back();
    }
    out.push_back(line);
  }
  return out;
}

TEST(MailMessage, HasNoHeaderMoreForWhatIsInASubject) {
  const auto lines = headers_with("prod: failed");
  EXPECT_THAT(lines, ::testing::Contains("Subject: [verger] prod: failed"));
  EXPECT_THAT(lines, ::testing::Contains("Message-ID: <17-abcdef01@example.com>"));
  for (const auto* subject : {"a\r\nBcc: eve@example.com", "a\nBcc: eve@example.com\r\n\r\nbody",
                              "a\rBcc: eve@example.com", "a\x7f\x01 b"}) {
    const auto other = headers_with(subject);
    EXPECT_EQ(other.size(), lines.size());
    EXPECT_THAT(other, Not(::testing::Contains(::testing::StartsWith("Bcc"))));
  }
}

TEST(MailMessage, EncodesOtherCharactersInLinesThatAreShortEnough) {
  std::string long_subject;
  for (int i = 0; i < 90; ++i) {
    long_subject += "\u20ac";
  }
  std::size_t words = 0;
  for (const auto& line : headers_with(long_subject)) {
    if (line.contains("=?UTF-8?B?")) {
      ++words;
      EXPECT_LE(line.size(), 76U) << line;
      EXPECT_TRUE(line.ends_with("?=")) << line;
    }
  }
  EXPECT_GT(words, 3U);
  EXPECT_LT(words, 9U) << "it is cut";
  // What is no UTF-8 at all has an end, too.
  EXPECT_FALSE(headers_with(std::string(150, '\x80')).empty());
}

TEST(MailMessage, ShowsWhatLooksLikeAnEncodedWordAsItIs) {
  const auto lines = headers_with("=?UTF-8?B?YWxsIGlzIHdlbGw=?=");
  EXPECT_THAT(lines, ::testing::Contains(::testing::StartsWith("Subject: =?UTF-8?B?W3Zlcmdlcl0g")));
}

}  // namespace
}  // namespace verger::controller
