#include "nodeagent/http/request_signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "tests/support/manual_clock.h"

namespace verger::http {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Endpoint kAgent{.tls = false, .host = "127.0.0.1", .port = 2114};

class RequestSignature : public ::testing::Test {
 protected:
  RequestSignature() {
    restart();
    clock_.advance_seconds(1);
  }
  void restart() { check_.emplace("s3cret", clock_); }
  /// As it arrives there.
  Request signed_request(std::string method, std::string_view secret = "s3cret",
                         const Endpoint& to = kAgent) {
    Request request{.method = std::move(method), .target = "/agent/v1/permits", .body = "{}"};
    sign_request(request, to, secret, clock_.now(), random_);
    request.headers.set("Host", to.host + ":" + std::to_string(to.port));
    return request;
  }
  Request permit(std::string_view secret = "s3cret") { return signed_request("POST", secret); }
  std::string refusal(const Request& request) {
    const auto checked = check_->check(request);
    return checked ? "" : checked.error().message;
  }

  test::ManualClock clock_;
  SeededRandom random_{1};
  std::optional<SignatureCheck> check_;
};

TEST_F(RequestSignature, IsAcceptedForTheRequestItWasMadeFor) {
  EXPECT_EQ(refusal(permit()), "");
  const auto early = permit();
  clock_.advance_seconds(59);
  EXPECT_EQ(refusal(early), "");
}

TEST_F(RequestSignature, IsRefusedForAnyOther) {
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

TEST_F(RequestSignature, DoesNotLastAndDoesNotShowTheSecret) {
  const auto old = permit();
  clock_.advance_seconds(61);
  EXPECT_THAT(refusal(old), HasSubstr("61 seconds off"));
  EXPECT_THAT(std::string(*old.headers.get("Authorization")), ::testing::Not(HasSubstr("s3cret")));
}

TEST_F(RequestSignature, ACommandCountsOnce) {
  const auto command = permit();
  EXPECT_EQ(refusal(command), "");
  EXPECT_THAT(refusal(command), HasSubstr("came before"));
  EXPECT_EQ(refusal(permit()), "") << "another one that says the same, at the same time";
  clock_.advance_seconds(59);
  EXPECT_EQ(refusal(permit()), "");
  EXPECT_THAT(refusal(command), HasSubstr("came before")) << "as long as it would be accepted";
  const auto read = signed_request("GET");
  EXPECT_EQ(refusal(read), "");
  EXPECT_EQ(refusal(read), "") << "as clients repeat it where a kept connection broke";
}

TEST_F(RequestSignature, WhatWasRecordedBeforeTheStartIsRefused) {
  const auto recorded = permit();
  clock_.advance_seconds(1);
  restart();
  EXPECT_THAT(refusal(recorded), HasSubstr("before this agent started"));
  clock_.advance_seconds(1);
  EXPECT_EQ(refusal(permit()), "");
}

TEST_F(RequestSignature, WithoutOneOnlyTheTokenItselfDoes) {
  Request request{.target = "/agent/v1/facts"};
  EXPECT_THAT(refusal(request), HasSubstr("not signed"));
  for (const auto* wrong :
       {"Bearer ", "Bearer s3cre", "Verger-Signature", "Verger-Signature x", "Verger-Signature 5 ",
        "Verger-Signature 5 6", "Verger-Signature 5  ", "Basic czNjcmV0"}) {
    request.headers.set("Authorization", wrong);
    EXPECT_NE(refusal(request), "") << wrong;
  }
  request.headers.set("Authorization", "Bearer s3cret");
  EXPECT_EQ(refusal(request), "");
}

/// Answers as configured, and keeps what it was asked.
class ListenerInstead final : public Client {
 public:
  net::awaitable<Result<Response>> send(Endpoint, Request request,
                                        std::chrono::milliseconds) override {
    co_return answer(request);
  }
  std::function<Response(const Request&)> answer;
};

class SignedAnswer : public RequestSignature {
 protected:
  Result<Response> ask(std::string method, bool tls = false) {
    SigningClient client(peer_, "s3cret", clock_, random_);
    auto to = kAgent;
    to.tls = tls;
    net::io_context context;
    auto answer = net::co_spawn(
        context, client.send(to, Request{.method = std::move(method), .target = "/x"}, {}),
        net::use_future);
    context.run();
    return answer.get();
  }
  /// As the agent does it.
  static Response answer_to(const Request& request, int status, std::string body,
                            std::string_view secret = "s3cret") {
    Response out{.status = status, .body = std::move(body)};
    sign_answer(out, *request.headers.get("Authorization"), secret);
    return out;
  }
  ListenerInstead peer_;
};

TEST_F(SignedAnswer, IsTaken) {
  peer_.answer = [](const Request& request) { return answer_to(request, 202, "{}"); };
  const auto answer = ask("POST");
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(answer->status, 202);
  EXPECT_EQ(answer->body, "{}");
}

TEST_F(SignedAnswer, OfAnotherProcessThatListensThereDoesNotCount) {
  std::optional<Response> before;
  const std::vector<std::function<Response(const Request&)>> others{
      [](const Request&) { return Response{.status = 200, .body = "done"}; },
      [](const Request& request) { return answer_to(request, 200, "done", "a guess"); },
      [](const Request& request) {
        auto changed = answer_to(request, 200, "running");
        changed.body = "done";
        return changed;
      },
      [](const Request& request) {
        auto changed = answer_to(request, 409, "{}");
        changed.status = 204;
        return changed;
      },
      // The agent's own answer to the same request of before.
      [&before](const Request& request) {
        before = before ? before : answer_to(request, 200, "done");
        return *before;
      }};
  peer_.answer = others.back();
  ASSERT_TRUE(ask("POST").has_value());
  for (std::size_t i = 0; i < others.size(); ++i) {
    SCOPED_TRACE(i);
    peer_.answer = others[i];
    const auto command = ask("POST");
    ASSERT_FALSE(command.has_value());
    EXPECT_EQ(command.error().code, Errc::kUnknownOutcome);
    EXPECT_THAT(command.error().message,
                AllOf(HasSubstr("POST http://127.0.0.1:2114/x"), HasSubstr("--agents-token-file"),
                      HasSubstr("may have been carried out")));
    const auto read = ask("GET");
    ASSERT_FALSE(read.has_value());
    EXPECT_THAT(read.error().message, ::testing::Not(HasSubstr("carried out")));
  }
}

TEST_F(SignedAnswer, IsNotNeededOverHttps) {
  peer_.answer = [](const Request& request) {
    return Response{.status = request.headers.get("Authorization") ? 500 : 200};
  };
  EXPECT_EQ(ask("POST", true)->status, 200);
}

}  // namespace
}  // namespace verger::http
