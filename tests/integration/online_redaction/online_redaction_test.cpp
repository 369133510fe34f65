// Events are redacted on an embedded node that serves, over its Unix socket, beside writes.
#include "nodeagent/redaction/online_redaction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>

#include <boost/asio/co_spawn.hpp>

#include "engine/base/random.h"
#include "nodeagent/http/server.h"
#include "nodeagent/node/detail/core.h"
#include "tests/integration/online_redaction/program_run.h"
#include "tests/support/redaction/redact.h"
#include "tests/support/results.h"
#include "tests/support/socket_node/socket_node.h"

namespace verger::online {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kEvents = 24;

std::string secret(int n) {
  return fmt::format(R"({{"name":"Ada Lovelace {:04}","address":"{}"}})", n,
                     std::string(2000, static_cast<char>('a' + n)));
}

class OnlineRedaction : public test::SocketNode {
 public:
  OnlineRedaction() {
    node::NodeOptions options;
    options.chunk_size = 16 * 1024;
    options.disable_scavenge_merging = true;
    open(options);  // all files are searched
    run(fill());
  }
  ~OnlineRedaction() override { run(stop()); }

  net::awaitable<void> fill() {
    while (co_await send("POST", "/streams/customer-7", secret(0)) != 201) {
      co_await pause();  // it has no leader yet
    }
    for (int n = 1; n < kEvents; ++n) {
      EXPECT_EQ(co_await send("POST", "/streams/customer-7", secret(n)), 201);
    }
    co_await scavenge();
  }
  /// Its point completes the chunk of the last event.
  net::awaitable<void> scavenge() {
    EXPECT_EQ(co_await send("POST", "/admin/scavenge"), 200);
    co_await scavenge_ends();
  }

  std::shared_ptr<client::RedactionClient> connect() {
    return value(client::RedactionClient::connect(
        context_.get_executor(), value(client::find_redaction_socket(database().string())), {},
        http::system_timers(), null_log()));
  }
  static redaction::EventName event(int number, std::string stream = "customer-7") {
    return {.stream = std::move(stream), .number = EventNumber(number)};
  }
  net::awaitable<Result<void>> redact(std::vector<redaction::EventName> events) {
    report_ = std::make_shared<OnlineReport>();
    co_return co_await redact_online(connect(),
                                     {.directory = database(), .events = std::move(events)},
                                     {.files = posix_file_system(),
                                      .random = system_random(),
                                      .jobs = jobs_,
                                      .timers = http::system_timers(),
                                      .log = null_log()},
                                     report_, std::make_shared<node::StopFlag>());
  }
  streams::Event read(int number) {
    return value(node_->core()->db().read_forward("customer-7", EventNumber(number), 1))
        .events.at(0);
  }
  std::vector<std::string> files_with(int number) {
    return test::files_with(posix_file_system(), database(), secret(number).substr(0, 60));
  }

  std::shared_ptr<OnlineReport> report_;
  bool writing_ = false;
  int written_ = 0;
  int not_written_ = 0;
};

TEST_F(OnlineRedaction, BlanksEventsOfSeveralChunksBesideWrites) {
  const auto write = [](OnlineRedaction* at) -> net::awaitable<void> {
    while (at->writing_) {
      const auto status =
          co_await at->send("POST", "/streams/orders", R"({"order":"something else"})");
      (status == 201 ? at->written_ : at->not_written_) += 1;
      co_await at->pause();  // a node alone answers at once
    }
  };
  const auto work =
      [](OnlineRedaction* at,
         std::function<net::awaitable<void>(OnlineRedaction*)> writer) -> net::awaitable<void> {
    at->writing_ = true;
    net::co_spawn(at->context_, writer(at),
                  [at](const std::exception_ptr& failure) { at->not_written_ += failure ? 1 : 0; });
    std::vector<redaction::EventName> events;
    for (int n = 0; n < kEvents; n += 2) {
      events.push_back(event(n));
    }
    ok(co_await at->redact(events));
    at->writing_ = false;
    EXPECT_GT(at->report_->chunks.size(), 1U);
    std::size_t blanked = 0;
    for (const auto& chunk : at->report_->chunks) {
      blanked += chunk.records;
    }
    EXPECT_EQ(blanked, kEvents / 2U);
    // Again: there is nothing to do, and no file changes.
    const auto files = at->chunk_files();
    ok(co_await at->redact(events));
    EXPECT_THAT(at->report_->chunks, IsEmpty());
    EXPECT_EQ(at->report_->already, kEvents / 2U);
    EXPECT_EQ(at->chunk_files(), files);
    // The lock is free.
    co_await at->scavenge();
  };
  run(work(this, write));
  EXPECT_GT(written_, 0);
  EXPECT_EQ(not_written_, 0);
  for (int n = 0; n < kEvents; ++n) {
    const bool redacted = n % 2 == 0;
    EXPECT_EQ(read(n).is_redacted, redacted) << n;
    EXPECT_EQ(as_text(read(n).data), redacted ? "" : secret(n)) << n;
    EXPECT_EQ(files_with(n).empty(), redacted) << n;
  }
}

TEST_F(OnlineRedaction, RefusesBeforeTheFirstChange) {
  const auto work = [](OnlineRedaction* at) -> net::awaitable<void> {
    const auto files = at->chunk_files();
    const auto refusal = [](OnlineRedaction* test,
                            std::vector<redaction::EventName> events) -> net::awaitable<Error> {
      const auto outcome = co_await test->redact(std::move(events));
      EXPECT_FALSE(outcome);
      co_return outcome ? Error{Errc::kIo, ""} : outcome.error();
    };
    auto error = co_await refusal(at, {event(0), event(77), event(0, "nobody")});
    EXPECT_EQ(error.code, Errc::kNotFound);
    EXPECT_THAT(error.message, HasSubstr("77@customer-7, 0@nobody"));
    EXPECT_EQ(co_await at->send("POST", "/streams/customer-7", secret(1)), 201);
    error = co_await refusal(at, {event(0), event(kEvents)});
    EXPECT_EQ(error.code, Errc::kRefused);
    EXPECT_THAT(error.message, HasSubstr("still written to"));
    error = co_await refusal(at, {event(0), event(0, "$scavengePoints")});
    EXPECT_EQ(error.code, Errc::kRefused);
    EXPECT_THAT(error.message, HasSubstr("system stream"));
    {
      const auto other = at->connect();
      const auto held = to_result(co_await other->lock());
      EXPECT_TRUE(held);
      error = co_await refusal(at, {event(0)});
      EXPECT_EQ(error.code, Errc::kUnavailable);
      EXPECT_THAT(error.message, HasSubstr("chunk lock"));
    }
    EXPECT_EQ(at->chunk_files(), files);
    EXPECT_FALSE(at->read(0).is_redacted);
  };
  run(work(this));
}

TEST_F(OnlineRedaction, RemovesTheCopiesThatAnInterruptedOneLeft) {
  const auto work = [](OnlineRedaction* at) -> net::awaitable<void> {
    const auto left = at->database() / "0e9f0000-0000-4000-8000-000000000001.redact.tmp";
    ok(write_file_durably(posix_file_system(), left, as_bytes(secret(3))));
    ok(co_await at->redact({event(3)}));
    EXPECT_THAT(at->report_->removed, SizeIs(1));
    EXPECT_THAT(at->files_with(3), IsEmpty());
  };
  run(work(this));
}

TEST_F(OnlineRedaction, TheClientPassesTheNodesReasonsOn) {
  const auto work = [](OnlineRedaction* at) -> net::awaitable<void> {
    const auto node = at->connect();
    const auto found = to_result(co_await node->positions({{"customer-7", EventNumber(0)}}));
    EXPECT_TRUE(found);
    const auto chunk = found->at(0).at(0).chunk_file;
    auto lock = co_await node->lock();
    EXPECT_TRUE(lock.done());
    auto switched = co_await (*lock.value)->switch_chunk(chunk, "none.tmp");
    EXPECT_TRUE(switched.refused());
    EXPECT_EQ(switched.code, "switch_refused");
    EXPECT_EQ(switched.why, "The new chunk file was not found in the database directory.");
    // The refusal has ended the call, and given the lock back.
    auto again = co_await node->lock();
    EXPECT_TRUE(again.done()) << again.why;
    EXPECT_EQ((co_await node->lock()).code, "chunk_lock_held");
    EXPECT_TRUE((co_await (*again.value)->release()).done());
    EXPECT_TRUE((co_await node->lock()).done());
    // By TCP the service is not offered.
    auto connected = co_await http::Http2Client::connect(
        at->context_.get_executor(), at->endpoint_, nullptr, {}, http::system_timers(), null_log());
    client::RedactionClient remote(value(std::move(connected)), "event_store.client.redaction", {});
    const auto refused = co_await remote.lock();
    EXPECT_EQ(refused.code, "wrong_socket");
    EXPECT_THAT(refused.why, HasSubstr("Redaction is only available via Unix Sockets"));
  };
  run(work(this));
}

TEST_F(OnlineRedaction, TheSocketIsItsOwnersAloneAndReplacesAStaleOne) {
  struct stat status{};
  ASSERT_EQ(::stat(socket().c_str(), &status), 0);
  EXPECT_TRUE(S_ISSOCK(status.st_mode));
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  http::Server second(context_.get_executor(), {}, node_->http_handler(), null_log());
  EXPECT_EQ(second.listen_at(socket()).error().code, Errc::kConflict);
  const auto work = [](OnlineRedaction* at) -> net::awaitable<void> {
    co_await at->unix_server_->stop(200ms);
  };
  run(work(this));
  unix_server_.reset();
  EXPECT_NE(::stat(socket().c_str(), &status), 0);
  EXPECT_EQ(client::find_redaction_socket(database().string()).error().code, Errc::kNotFound);
  {
    // As a killed process leaves it.
    net::local::stream_protocol::acceptor killed(context_);
    killed.open();
    killed.bind(net::local::stream_protocol::endpoint(socket()));
  }
  EXPECT_EQ(::stat(socket().c_str(), &status), 0);
  ok(second.listen_at(socket()));
  EXPECT_EQ(second.listen_at(std::string(200, 'x')).error().code, Errc::kInvalidArgument);
  run([](http::Server* server) -> net::awaitable<void> { co_await server->stop(200ms); }(&second));
}

TEST_F(OnlineRedaction, TheProgramSaysWhatItDid) {
  const auto program = [this](const std::vector<std::string>& arguments) {
    return run_program(context_, arguments);
  };
  const auto db = database().string();
  auto ended = program({"--help"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.out, HasSubstr("--events"));
  const auto manual = (directory_.path() / "man8").string();
  EXPECT_EQ(program({"man", manual}).code, 0);
  EXPECT_THAT(
      std::string(as_text(value(read_file(posix_file_system(), Path(manual) / "verger-redact.8")))),
      HasSubstr("EnableUnixSocket"));
  EXPECT_EQ(program({"--db", db}).code, 64);
  EXPECT_EQ(program({"--db", db, "--events", "customer-7"}).code, 64);
  ended = program({"--db", db, "--events", "900@customer-7"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("the node has no 900@customer-7"));
  ended = program({"--db", db, "--events", "2@customer-7,4@customer-7"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.out, HasSubstr("records blanked"));
  EXPECT_THAT(files_with(2), IsEmpty());
  EXPECT_TRUE(read(4).is_redacted);
  ended = program({"--db", db, "--events", "4@customer-7"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.out, HasSubstr("nothing to do"));
  ended = program({"--db", directory_.path().string(), "--events", "4@customer-7"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("EnableUnixSocket"));
}

}  // namespace
}  // namespace verger::online
