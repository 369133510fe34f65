#include "nodeagent/http/request_signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verger::http {
namespace {

using ::testing::HasSubstr;

constexpr Ticks kNow{638'000'000'000'000'000};
Ticks later(std::int64_t seconds) { return Ticks(kNow.value() + seconds * 10'000'000); }
const Endpoint kAgent{.tls = false, .host = "127.0.0.1", .port = 2114};

/// As it arrives there.
Request permit(std::string_view secret = "s3cret", const Endpoint& to = kAgent) {
  Request request{.method = "POST", .target = "/agent/v1/permits", .body = "{}"};
  sign_request(request, to, secret, kNow);
  request.headers.set("Host", to.host + ":" + std::to_string(to.port));
  return request;
}

std::string refusal(const Request& request, Ticks now = kNow) {
  const auto checked = check_signature(request, "s3cret", now);
  return checked ? "" : checked.error().message;
}

TEST(RequestSignature, IsAcceptedForTheRequestItWasMadeFor) {
  EXPECT_EQ(refusal(permit()), "");
  EXPECT_EQ(refusal(permit(), later(59)), "");
  EXPECT_EQ(refusal(permit(), later(-59)), "");
}

TEST(RequestSignature, IsRefusedForAnyOther) {
  for (const auto change : {+[](Request& r) { r.method = "PUT"; },
                            +[](Request& r) { r.target = "/agent/v1/operations"; },
                            +[](Request& r) { r.body = "{\"x\":1}"; },
                            +[](Request& r) { r.headers.set("Host", "127.0.0.1:2115"); }}) {
    auto request = permit();
    change(request);
    EXPECT_THAT(refusal(request), HasSubstr("signature"));
  }
  EXPECT_THAT(refusal(permit("another")), HasSubstr("controller token file"));
}

TEST(RequestSignature, DoesNotLastAndDoesNotShowTheSecret) {
  EXPECT_THAT(refusal(permit(), later(61)), HasSubstr("61 seconds off"));
  EXPECT_THAT(refusal(permit(), later(-61)), HasSubstr("clock"));
  const auto request = permit();
  EXPECT_THAT(std::string(*request.headers.get("Authorization")),
              ::testing::Not(HasSubstr("s3cret")));
}

TEST(RequestSignature, WithoutOneOnlyTheTokenItselfDoes) {
  Request request{.target = "/agent/v1/facts"};
  EXPECT_THAT(refusal(request), HasSubstr("not signed"));
  for (const auto* wrong : {"Bearer ", "Bearer s3cre", "Verger-Signature", "Verger-Signature x",
                            "Verger-Signature 5 ", "Basic czNjcmV0"}) {
    request.headers.set("Authorization", wrong);
    EXPECT_NE(refusal(request), "") << wrong;
  }
  request.headers.set("Authorization", "Bearer s3cret");
  EXPECT_EQ(refusal(request), "");
}

}  // namespace
}  // namespace verger::http
