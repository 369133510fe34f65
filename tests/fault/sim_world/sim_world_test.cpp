#include "tests/support/cluster/sim_world.h"

#include <gtest/gtest.h>
#include <optional>

#include <boost/asio/experimental/awaitable_operators.hpp>

namespace verger::testing {
namespace {

using std::chrono::milliseconds;

http::Endpoint at(const char* host) { return {.tls = false, .host = host, .port = 80}; }

/// Two machines; "b" answers with what it was sent, after `work`.
struct Pair {
  explicit Pair(std::uint64_t seed = 1, milliseconds work = milliseconds(10))
      : world(seed), a(world.add_host("a")), b(world.add_host("b")) {
    a.boot();
    b.boot();
    b.serve_http(80, [this, work](http::Request request) -> net::awaitable<http::Response> {
      ++arrived;
      co_await b.timers().sleep_for(work);
      co_return http::Response{.body = request.body};
    });
  }

  net::awaitable<void> ask(milliseconds deadline) {
    answer = co_await a.client().send(at("b"), {.method = "POST", .body = "hello"}, deadline);
    answered_at = world.now();
  }

  /// Its answer, once there is one.
  const Result<http::Response>& asked(milliseconds deadline = milliseconds(500)) {
    a.spawn(ask(deadline));
    EXPECT_TRUE(world.run_until([this] { return answer.has_value(); }, milliseconds(5000)));
    return *answer;
  }

  SimWorld world;
  SimHost& a;
  SimHost& b;
  int arrived = 0;
  std::optional<Result<http::Response>> answer;
  Monotonic answered_at{};
};

TEST(SimWorld, CarriesARequestAndItsAnswer) {
  Pair pair;
  const auto& answer = pair.asked();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "hello");
  EXPECT_GE(pair.answered_at, milliseconds(10));
  EXPECT_LT(pair.answered_at, milliseconds(20));
}

TEST(SimWorld, RefusesWhereNothingListens) {
  Pair pair;
  pair.b.crash(/*power=*/false);
  EXPECT_EQ(pair.asked().error().code, Errc::kUnavailable);
}

TEST(SimWorld, LostRequestAndLostAnswerAreUnknownAtTheDeadline) {
  for (const bool request : {true, false}) {
    Pair pair;
    (request ? pair.world.faults.lose_request : pair.world.faults.lose_response) = 1000;
    EXPECT_EQ(pair.asked().error().code, Errc::kUnknownOutcome);
    EXPECT_EQ(pair.answered_at, milliseconds(500));
    EXPECT_EQ(pair.arrived, request ? 0 : 1);
    EXPECT_EQ(pair.world.counts.requests_lost + pair.world.counts.responses_lost, 1U);
  }
}

TEST(SimWorld, DuplicateArrivesTwiceAndIsAnsweredOnce) {
  Pair pair;
  pair.world.faults.duplicate_request = 1000;
  EXPECT_TRUE(pair.asked());
  pair.world.run_for(milliseconds(1000));
  EXPECT_EQ(pair.arrived, 2);
  EXPECT_EQ(pair.world.counts.requests_duplicated, 1U);
}

TEST(SimWorld, KilledProcessResetsItsConnections) {
  Pair pair(1, milliseconds(100));
  pair.world.schedule(milliseconds(50), [&] { pair.b.crash(/*power=*/false); });
  EXPECT_EQ(pair.asked().error().code, Errc::kUnknownOutcome);
  EXPECT_LT(pair.answered_at, milliseconds(100));
}

TEST(SimWorld, MachineWithoutPowerIsSilent) {
  Pair pair(1, milliseconds(100));
  pair.world.schedule(milliseconds(50), [&] { pair.b.crash(/*power=*/true); });
  EXPECT_EQ(pair.asked().error().code, Errc::kUnknownOutcome);
  EXPECT_EQ(pair.answered_at, milliseconds(500));
}

TEST(SimWorld, CutStopsMessagesUntilItHeals) {
  Pair pair;
  pair.world.cut("a", "b");
  EXPECT_EQ(pair.asked().error().code, Errc::kUnknownOutcome);
  EXPECT_EQ(pair.world.counts.partitioned, 1U);
  pair.world.heal();
  pair.answer.reset();
  EXPECT_TRUE(pair.asked());
}

TEST(SimWorld, DyingFromInsideReachesNeitherDiskNorNetwork) {
  Pair pair;
  pair.b.serve_http(80, [&](http::Request) -> net::awaitable<http::Response> {
    pair.b.die(/*power=*/false);
    EXPECT_FALSE(write_file_durably(pair.b.disk(), "/late", as_bytes(std::string_view("x"))));
    co_return http::Response{};
  });
  EXPECT_FALSE(pair.asked());
  EXPECT_FALSE(pair.b.up());
  EXPECT_FALSE(*pair.b.disk().exists("/late"));
  pair.b.boot();
  EXPECT_TRUE(write_file_durably(pair.b.disk(), "/early", as_bytes(std::string_view("x"))));
}

/// What "b" got of the frames 0 to 9, and how the link ended there.
struct Received {
  std::string frames;
  std::optional<Error> end;
};

net::awaitable<void> receive_all(std::shared_ptr<http::FrameConnection> link, Received& into) {
  for (;;) {
    auto frame = co_await link->receive();
    if (!frame) {
      into.end = frame.error();
      co_return;
    }
    into.frames += static_cast<char>(frame->front());
  }
}

net::awaitable<void> send_ten(SimHost& from) {
  auto link = co_await from.frames().connect(at("b"), milliseconds(500));
  EXPECT_TRUE(link);
  for (char c = '0'; link && c <= '9'; ++c) {
    EXPECT_TRUE(co_await (*link)->send(Bytes{static_cast<std::byte>(c)}));
  }
}

TEST(SimWorld, FramesArriveInOrderThenTheEnd) {
  Pair pair;
  Received received;
  pair.world.faults.long_delay = 500;
  pair.b.serve_frames(80, [&](std::shared_ptr<http::FrameConnection> link) {
    return receive_all(std::move(link), received);
  });
  pair.a.spawn(send_ten(pair.a));
  pair.world.run_for(milliseconds(10'000));
  EXPECT_EQ(received.frames, "0123456789");
  ASSERT_TRUE(received.end);
  EXPECT_EQ(received.end->code, Errc::kUnavailable);
}

TEST(SimWorld, WhatABusyProcessDoesNextItDoesLater) {
  Pair pair;
  Monotonic before{};
  Monotonic after{};
  pair.b.serve_http(80, [&](http::Request request) -> net::awaitable<http::Response> {
    before = pair.b.clock().monotonic();
    pair.b.stay_busy(milliseconds(60));
    pair.b.stay_busy(milliseconds(40));
    after = pair.b.clock().monotonic();
    co_return http::Response{.body = request.body};
  });
  ASSERT_TRUE(pair.asked());
  EXPECT_EQ(after, before + milliseconds(100));
  EXPECT_GE(pair.answered_at, after);
  EXPECT_LT(pair.answered_at, after + milliseconds(10));
}

TEST(SimWorld, WhatReachesABusyProcessWaits) {
  Pair pair;
  pair.b.spawn([](SimHost& busy) -> net::awaitable<void> {
    busy.stay_busy(milliseconds(200));
    co_return;
  }(pair.b));
  ASSERT_TRUE(pair.asked());
  EXPECT_GE(pair.answered_at, milliseconds(210));
  EXPECT_LT(pair.answered_at, milliseconds(220));
  // Others do not wait for it: the caller learns of its deadline in time.
  pair.answer.reset();
  const auto asked_at = pair.world.now();
  pair.b.stay_busy(milliseconds(1000));
  EXPECT_EQ(pair.asked(milliseconds(100)).error().code, Errc::kUnknownOutcome);
  EXPECT_EQ(pair.answered_at, asked_at + milliseconds(100));
}

TEST(SimWorld, FramesOfABusyProcessStayInOrder) {
  Pair pair;
  Received received;
  pair.world.faults.long_delay = 500;
  pair.b.serve_frames(80, [&](std::shared_ptr<http::FrameConnection> link) {
    return receive_all(std::move(link), received);
  });
  pair.a.spawn([](SimHost& from) -> net::awaitable<void> {
    auto link = co_await from.frames().connect(at("b"), milliseconds(500));
    EXPECT_TRUE(link);
    for (char c = '0'; link && c <= '9'; ++c) {
      from.stay_busy(milliseconds(c % 3 == 0 ? 100 : 0));
      EXPECT_TRUE(co_await (*link)->send(Bytes{static_cast<std::byte>(c)}));
      if (c % 2 == 0) {
        co_await from.timers().sleep_for(milliseconds(1));
      }
    }
  }(pair.a));
  pair.world.run_for(milliseconds(10'000));
  EXPECT_EQ(received.frames, "0123456789");
}

TEST(SimWorld, SameSeedGivesTheSameTimes) {
  const auto answered = [](std::uint64_t seed) {
    Pair pair(seed);
    pair.world.faults.long_delay = 500;
    EXPECT_TRUE(pair.asked(milliseconds(4000)));
    return pair.answered_at;
  };
  EXPECT_EQ(answered(5), answered(5));
  EXPECT_NE(answered(5), answered(6));
}

TEST(SimWorld, CancelledSleepEndsAtOnce) {
  Pair pair;
  std::optional<std::size_t> first;
  Monotonic ended{};
  pair.a.spawn(
      [](Pair& of, std::optional<std::size_t>& into, Monotonic& when) -> net::awaitable<void> {
        using net::experimental::awaitable_operators::operator||;
        auto& timers = of.a.timers();
        const auto outcome =
            co_await (timers.sleep_for(milliseconds(1000)) || timers.sleep_for(milliseconds(20)));
        into = outcome.index();
        when = of.world.now();
      }(pair, first, ended));
  pair.world.run_for(milliseconds(2000));
  EXPECT_EQ(first, 1U);
  EXPECT_EQ(ended, milliseconds(20));
}

}  // namespace
}  // namespace verger::testing
