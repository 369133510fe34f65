#include "nodeagent/daemon/controller_guard.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "nodeagent/http/request_signature.h"
#include "tests/support/manual_clock.h"
#include "tests/support/temp_directory.h"

namespace verger::agent {
namespace {

using ::testing::HasSubstr;

http::Response answer_of(const http::Handler& handler, http::Request request) {
  net::io_context context;
  auto answer = net::co_spawn(context, handler(std::move(request)), net::use_future);
  context.run();
  return answer.get();
}

int status_of(const http::Handler& handler, http::Request request) {
  return answer_of(handler, std::move(request)).status;
}

http::Handler inner() {
  return [](http::Request) -> net::awaitable<http::Response> {
    co_return http::Response{.status = 204};
  };
}

http::Request shown(std::optional<std::string> common_name, std::vector<std::string> names = {}) {
  http::Request request{.method = "POST", .target = "/agent/v1/permits"};
  request.peer.certificate_common_name = std::move(common_name);
  request.peer.certificate_names = std::move(names);
  return request;
}

TEST(ControllerGuard, OverHttpsACertificateOfTheRightRootsNeedsTheNameToo) {
  const auto guarded = only_the_controller_named("verger-1", inner(), null_log());
  EXPECT_EQ(status_of(guarded, shown("verger-1")), 204);
  EXPECT_EQ(status_of(guarded, shown("", {"verger-1"})), 204);
  EXPECT_EQ(status_of(guarded, shown("verger-node", {"n1", "127.0.0.1"})), 403);
  EXPECT_EQ(status_of(guarded, shown("verger-10")), 403);
  EXPECT_EQ(status_of(guarded, shown(std::nullopt)), 403);
}

TEST(ControllerGuard, WithoutTlsTheTokenIsNeeded) {
  test::ManualClock clock;
  const auto guarded = only_with_the_token("s3cret", inner(), clock, null_log());
  const http::Endpoint agent{.tls = false, .host = "127.0.0.1", .port = 2114};
  http::Request request{.method = "POST", .target = "/agent/v1/permits"};
  request.headers.set("Host", "127.0.0.1:2114");
  request.peer.address = "127.0.0.1";
  EXPECT_EQ(status_of(guarded, request), 401) << "being on this machine is not enough";
  clock.advance_seconds(1);
  SeededRandom random(1);
  auto signed_one = request;
  http::sign_request(signed_one, agent, "s3cret", clock.now(), random);
  EXPECT_EQ(status_of(guarded, signed_one), 204);
  EXPECT_EQ(status_of(guarded, signed_one), 401) << "a command counts once";
  http::sign_request(request, agent, "another", clock.now(), random);
  EXPECT_EQ(status_of(guarded, request), 401);
}

TEST(ControllerGuard, WithoutTlsWhatIsAnsweredIsSigned) {
  test::ManualClock clock;
  const auto guarded = only_with_the_token("s3cret", inner(), clock, null_log());
  clock.advance_seconds(1);
  const http::Endpoint agent{.tls = false, .host = "127.0.0.1", .port = 2114};
  SeededRandom random(1);
  http::Request request{.method = "POST", .target = "/agent/v1/permits"};
  request.headers.set("Host", "127.0.0.1:2114");
  http::sign_request(request, agent, "s3cret", clock.now(), random);
  for (const int status : {204, 401}) {  // refusals, too: the second time it is no new request
    const auto answer = answer_of(guarded, request);
    EXPECT_EQ(answer.status, status);
    auto expected = http::Response{.status = status, .body = answer.body};
    http::sign_answer(expected, *request.headers.get("Authorization"), "s3cret");
    EXPECT_EQ(answer.headers.get("Verger-Signature"), expected.headers.get("Verger-Signature"));
    EXPECT_NE(answer.headers.get("Verger-Signature").value_or(""), "");
  }
}

TEST(ControllerGuard, ATokenFileIsPrivateAndLongEnough) {
  const test::TempDirectory directory;
  const auto file = directory.path() / "agents-token";
  const auto refusal = [&] {
    const auto read = read_controller_token(file);
    return read ? "" : read.error().message;
  };
  EXPECT_THAT(refusal(), HasSubstr("vergerd makes it"));
  std::ofstream(file) << "0123456789012345678901\n";
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  EXPECT_THAT(refusal(), HasSubstr("chmod 600"));
  std::filesystem::permissions(file, std::filesystem::perms(0600));
  EXPECT_EQ(read_controller_token(file).value_or(""), "0123456789012345678901");
  std::ofstream(file, std::ios::trunc) << "short\n";
  EXPECT_THAT(refusal(), HasSubstr("20 characters"));
}

}  // namespace
}  // namespace verger::agent
