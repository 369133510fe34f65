#include "nodeagent/http/detail/wire.h"

#include <gtest/gtest.h>

namespace verger::http {
namespace {

TEST(HttpWire, ReadsARequestWithItsBody) {
  const auto request = decode_request(
      "POST http://n1:2113/streams/a?x=1 HTTP/1.1\r\nHost: n1\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
      1024, 1024);
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_EQ(request->method, "POST");
  EXPECT_EQ(request->target, "/streams/a?x=1");
  EXPECT_EQ(request->body, "abcde");
}

TEST(HttpWire, RefusesAmbiguousAndMalformedRequests) {
  for (const std::string_view bad :
       {"GET / HTTP/1.1\r\n\r\n",                                  // no Host
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",            // two
        "GET /\r\n\r\n",                                           // HTTP/0.9
        "GET / HTTP/1.1\r\nHost a\r\n\r\n",                        // no colon
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",  //
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
        "0\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 TLS\r\n\r\n",      // https to http
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab"}) {  // half
    const auto request = decode_request(bad, 1024, 1024);
    ASSERT_FALSE(request.has_value()) << bad;
    EXPECT_EQ(request.error().code, Errc::kCorruption) << bad;
  }
}

TEST(HttpWire, KeepsItsLimits) {
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(
      decode_request(head + "X: " + std::string(2000, 'x') + "\r\n\r\n", 1024, 10).error().code,
      Errc::kNoSpace);
  EXPECT_EQ(decode_request(head + "Content-Length: 11\r\n\r\n12345678901", 1024, 10).error().code,
            Errc::kNoSpace);
  EXPECT_TRUE(decode_request(head + "Content-Length: 10\r\n\r\n1234567890", 1024, 10).has_value());
}

TEST(HttpWire, NoBytesEndTheDecoder) {
  const std::string whole =
      "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decode_request(whole.substr(0, size), 1024, 1024).has_value()) << size;
    for (const char c : {'\0', '\r', '\n', ':', '\x80', '9'}) {
      auto changed = whole;
      changed[size] = c;
      static_cast<void>(decode_request(changed, 1024, 1024));
      static_cast<void>(decode_response(changed, false, 1024));
    }
  }
}

TEST(HttpWire, PassesTheReasonPhraseThrough) {
  Response response{.status = 400, .reason = "Wrong expected EventNumber"};
  response.headers.set("ES-CurrentVersion", "3");
  const auto bytes = response_head(response, 0, false, true);
  EXPECT_EQ(bytes,
            "HTTP/1.1 400 Wrong expected EventNumber\r\nES-CurrentVersion: 3\r\n"
            "Content-Length: 0\r\n\r\n");
  const auto back = decode_response(bytes, false, 10);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->reason, "Wrong expected EventNumber");
  EXPECT_EQ(back->headers.get("es-currentversion"), "3");
}

TEST(HttpWire, LetsNoValueAddAHeaderLine) {
  Response response{.status = 200, .reason = "OK\r\nX: 1", .headers = {{"A\r\nB", "c\r\nD: e"}}};
  EXPECT_EQ(response_head(response, 0, false, true),
            "HTTP/1.1 200 OKX: 1\r\nAB: cD: e\r\nContent-Length: 0\r\n\r\n");
}

TEST(HttpWire, SendsALengthWithEveryPost) {
  const Endpoint to{false, "n1", 2113};
  Request post{.method = "POST", .target = "/admin/shutdown"};
  EXPECT_EQ(request_bytes(to, post),
            "POST /admin/shutdown HTTP/1.1\r\nHost: n1:2113\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(request_bytes(to, Request{}), "GET / HTTP/1.1\r\nHost: n1:2113\r\n\r\n");
}

TEST(HttpWire, ReadsAnAnswerThatEndsWithTheConnection) {
  const auto response = decode_response("HTTP/1.1 200 OK\r\n\r\nall of it", false, 100);
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->body, "all of it");
  EXPECT_FALSE(
      decode_response("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", false, 100).has_value());
  const auto head = decode_response("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", true, 100);
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->body, "");
}

}  // namespace
}  // namespace verger::http
