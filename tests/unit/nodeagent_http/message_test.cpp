#include "nodeagent/http/message.h"

#include <gtest/gtest.h>

#include "nodeagent/http/base64.h"
#include "nodeagent/http/client.h"
#include "nodeagent/http/loopback.h"

namespace verger::http {
namespace {

TEST(HttpHeaders, CompareNamesWithoutCaseAndKeepTheirOrder) {
  Headers headers{{"B", "1"}};
  headers.add("a", "2");
  headers.add("A", "3");
  EXPECT_EQ(headers.get("A"), "2");
  headers.set("a", "4");
  ASSERT_EQ(headers.all().size(), 2U);
  EXPECT_EQ(headers.all()[0].first, "B");
  EXPECT_EQ(headers.get("A"), "4");
  EXPECT_EQ(headers.get("c"), std::nullopt);
}

TEST(HttpTarget, SplitsBeforeItDecodes) {
  const auto target = parse_target("/streams/%24scavenges/a%2Fb?embed=body&x=a+b%2B&y");
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->path, "/streams/$scavenges/a/b");
  EXPECT_EQ(target->segments, (std::vector<std::string>{"streams", "$scavenges", "a/b"}));
  EXPECT_EQ(target->parameter("EMBED"), "body");
  EXPECT_EQ(target->parameter("x"), "a b+");
  EXPECT_EQ(target->parameter("y"), "");
  EXPECT_EQ(target->parameter("z"), std::nullopt);
}

TEST(HttpTarget, KeepsTheLastOfRepeatedParametersAndTheTrailingSlash) {
  const auto target = parse_target("/admin/scavenge/?threads=2&threads=0");
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->parameter("threads"), "0");
  EXPECT_EQ(target->segments, (std::vector<std::string>{"admin", "scavenge", ""}));
  EXPECT_TRUE(parse_target("/")->segments.empty());
}

TEST(HttpTarget, RefusesWhatIsNoPath) {
  for (const std::string_view bad : {"", "streams", "/a%", "/a%2", "/a%zz", "/?q=%1"}) {
    const auto target = parse_target(bad);
    ASSERT_FALSE(target.has_value()) << bad;
    EXPECT_EQ(target.error().code, Errc::kInvalidArgument) << bad;
  }
}

TEST(HttpTarget, ReadsBackWhatWasEncoded) {
  const std::string text = "a b/$%?&=#\xC3\xA9+";
  const auto target = parse_target("/" + percent_encode(text) + "?" + percent_encode(text) + "=" +
                                   percent_encode(text));
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->segments, std::vector<std::string>{text});
  EXPECT_EQ(target->parameter(text), text);
}

TEST(HttpBase64, ReadsBackWhatItWrites) {
  std::string bytes;
  for (int i = 0; i < 70; ++i) {
    EXPECT_EQ(base64_decode(base64_encode(bytes)), bytes);
    bytes += static_cast<char>(i * 37);
  }
  EXPECT_EQ(base64_encode("admin:changeit"), "YWRtaW46Y2hhbmdlaXQ=");
  EXPECT_EQ(basic_authorization("admin", "changeit"), "Basic YWRtaW46Y2hhbmdlaXQ=");
  for (const std::string_view bad : {"A", "AAA", "A===", "=AAA", "AA=A", "AA A", "@@@@"}) {
    EXPECT_EQ(base64_decode(bad), std::nullopt) << bad;
  }
}

TEST(HttpEndpoint, ReadsUrls) {
  EXPECT_EQ(parse_endpoint("http://127.0.0.1:2114"), (Endpoint{false, "127.0.0.1", 2114}));
  EXPECT_EQ(parse_endpoint("https://n1.example.com/"), (Endpoint{true, "n1.example.com", 2113}));
  EXPECT_EQ(parse_endpoint("http://[::1]:80"), (Endpoint{false, "::1", 80}));
  EXPECT_EQ((Endpoint{false, "::1", 80}).url(), "http://[::1]:80");
  EXPECT_EQ(parse_endpoint("https://v1", kControllerPort), (Endpoint{true, "v1", 2115}));
  EXPECT_EQ(parse_endpoint("https://hooks.example.com", 0),
            (Endpoint{true, "hooks.example.com", 443}));
  EXPECT_EQ(parse_endpoint("http://localhost", 0), (Endpoint{false, "localhost", 80}));
  for (const std::string_view bad :
       {"", "n1:2113", "ftp://n1", "http://", "http://:2113", "http://n1:", "http://n1:0",
        "http://n1:70000", "http://n1:2113x", "http://n1/gossip", "http://u:p@n1", "http://[::1",
        "http://[::1]x", "http://a b", "http://n1?x"}) {
    const auto endpoint = parse_endpoint(bad);
    ASSERT_FALSE(endpoint.has_value()) << bad;
    EXPECT_EQ(endpoint.error().code, Errc::kInvalidArgument);
  }
}

TEST(HttpLoopback, KnowsTheMachinesOwnAddresses) {
  for (const std::string_view own :
       {"localhost", "LOCALHOST", "127.0.0.1", "127.255.0.9", "::1", "[::1]", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(is_loopback(own)) << own;
  }
  for (const std::string_view other :
       {"", "0.0.0.0", "10.0.0.1", "127.0.0.1.example.com", "127.0.0", "127.0.0.1.2", "127.0.0.256",
        "localhost.example.com", "::", "::ffff:10.0.0.1", "1127.0.0.1"}) {
    EXPECT_FALSE(is_loopback(other)) << other;
  }
}

}  // namespace
}  // namespace verger::http
