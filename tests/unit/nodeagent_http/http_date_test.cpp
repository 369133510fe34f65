#include "nodeagent/http/http_date.h"

#include <gtest/gtest.h>

#include "engine/base/clock.h"

namespace verger::http {
namespace {

using std::chrono::seconds;

TEST(HttpDate, IsReadInTheFormThatServersSend) {
  const auto date = parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT");
  ASSERT_TRUE(date.has_value());
  EXPECT_EQ(format_ticks(*date).substr(0, 19), "1994-11-06T08:49:37");
  for (const auto* wrong :
       {"", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 GMT and more",
        "Thu, 31 Feb 2030 08:49:37 GMT", "1994-11-06T08:49:37Z", "784111777"}) {
    EXPECT_FALSE(parse_http_date(wrong).has_value()) << wrong;
  }
}

std::optional<seconds> asked(Headers headers) {
  const auto now = parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT");
  return retry_after({.status = 429, .headers = std::move(headers)}, *now);
}

TEST(RetryAfter, IsANumberOfSecondsOrADate) {
  EXPECT_EQ(asked({{"retry-after", "30"}}), seconds(30));
  EXPECT_EQ(asked({{"Retry-After", "0"}}), seconds(0));
  EXPECT_EQ(asked({{"Retry-After", "0.4"}}), seconds(1)) << "as some chat services send it";
  EXPECT_EQ(asked({{"Retry-After", "Sun, 06 Nov 1994 08:50:07 GMT"}}), seconds(30));
  EXPECT_EQ(asked({{"Retry-After", "Sun, 06 Nov 1994 08:49:00 GMT"}}), seconds(0)) << "it is over";
}

TEST(RetryAfter, IsMeasuredByTheServersOwnClock) {
  EXPECT_EQ(asked({{"Date", "Sun, 06 Nov 1994 09:00:00 GMT"},
                   {"Retry-After", "Sun, 06 Nov 1994 09:00:20 GMT"}}),
            seconds(20));
}

TEST(RetryAfter, ThatCannotBeUnderstoodAsksForNothing) {
  EXPECT_EQ(asked({}), std::nullopt);
  for (const auto* wrong : {"", "soon", "-1", "5 s", "5.", "1e9", "99999999999999999999"}) {
    EXPECT_EQ(asked({{"Retry-After", wrong}}), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace verger::http
