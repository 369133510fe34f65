// Events that are not as usual, on a database that lay there before, beside the node that serves
// it: two streams of one hash, one event at two positions, streams that were deleted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nodeagent/node/detail/core.h"
#include "nodeagent/redaction/online_redaction.h"
#include "tests/integration/online_redaction/program_run.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/redaction/redact.h"
#include "tests/support/results.h"
#include "tests/support/socket_node/socket_node.h"

namespace verger::online {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string person(int n) {
  return fmt::format("Grace Hopper {:04}, 1 Cobol Street, Arlington, born 1906-12-09", n);
}

class UnusualEvents : public test::SocketNode {
 public:
  /// One hash in the index.
  static constexpr auto kThis = "c2ffqlptrdepdm";
  static constexpr auto kThat = "cedldnj4ssvq4i";

  UnusualEvents() {
    test::DatabaseBuilder builder(posix_file_system(), database());
    write(builder, kThis, 1);
    write(builder, kThat, 2);
    for (const int n : {3, 4}) {
      builder.write_number_0("twice", event_of(builder, n));
    }
    write(builder, "tombstoned", 5);
    builder.hard_delete("tombstoned");
    write(builder, "deleted", 6);
    builder.soft_delete("deleted");
    builder.point();
    builder.close();
    node::NodeOptions options;
    options.chunk_size = builder.options().chunk_size;
    options.max_mem_table_size = builder.options().max_mem_table_size;
    open(options);
    run(become_leader());
  }
  ~UnusualEvents() override { run(stop()); }

  static streams::NewEvent event_of(test::DatabaseBuilder& builder, int n) {
    auto event = builder.event();
    const auto text = person(n);
    const auto bytes = as_bytes(text);
    event.data.assign(bytes.begin(), bytes.end());
    return event;
  }
  static void write(test::DatabaseBuilder& builder, const char* stream, int n) {
    builder.write(stream, {event_of(builder, n)});
  }

  std::shared_ptr<client::RedactionClient> connect() {
    return value(client::RedactionClient::connect(
        context_.get_executor(), value(client::find_redaction_socket(database().string())), {},
        http::system_timers(), null_log()));
  }
  net::awaitable<void> redact(std::string stream) {
    report_ = std::make_shared<OnlineReport>();
    ok(co_await redact_online(connect(),
                              {.directory = database(),
                               .events = {{.stream = std::move(stream), .number = EventNumber(0)}}},
                              {.files = posix_file_system(),
                               .random = system_random(),
                               .jobs = jobs_,
                               .timers = http::system_timers(),
                               .log = null_log()},
                              report_, std::make_shared<node::StopFlag>()));
  }
  std::vector<std::string> files_with(int n) {
    return test::files_with(posix_file_system(), database(), person(n));
  }
  std::size_t blanked() const {
    std::size_t out = 0;
    for (const auto& chunk : report_->chunks) {
      out += chunk.records;
    }
    return out;
  }

  std::shared_ptr<OnlineReport> report_;
};

TEST_F(UnusualEvents, AStreamWithTheSameHashIsLeftAlone) {
  ASSERT_EQ(node_->core()->db().stream_index().hash(kThis),
            node_->core()->db().stream_index().hash(kThat));
  run(redact(kThat));
  EXPECT_EQ(blanked(), 1U);
  EXPECT_THAT(files_with(2), IsEmpty());
  EXPECT_THAT(files_with(1), SizeIs(1));
  const auto kept = value(node_->core()->db().read_forward(kThis, EventNumber(0), 1));
  EXPECT_EQ(as_text(kept.events.at(0).data), person(1));
}

TEST_F(UnusualEvents, EachRecordOfAnEventThatHasTwoIsBlanked) {
  run(redact("twice"));
  EXPECT_EQ(blanked(), 2U);
  EXPECT_THAT(files_with(3), IsEmpty());
  EXPECT_THAT(files_with(4), IsEmpty());
}

TEST_F(UnusualEvents, EventsOfDeletedStreamsAreBlankedWhileTheirRecordsAreThere) {
  run(redact("tombstoned"));
  EXPECT_EQ(blanked(), 1U);
  EXPECT_THAT(files_with(5), IsEmpty());
  run(redact("deleted"));
  EXPECT_EQ(blanked(), 1U);
  EXPECT_THAT(files_with(6), IsEmpty());
  const auto read_back = [](UnusualEvents* at) -> net::awaitable<void> {
    const auto client = at->connect();
    const auto sizes = client::to_result(
        co_await client->data_sizes({{.stream = "tombstoned", .number = EventNumber(0)},
                                     {.stream = "deleted", .number = EventNumber(0)}}));
    EXPECT_EQ(value(sizes), (std::vector<std::optional<std::size_t>>{std::nullopt, std::nullopt}))
        << "readers get neither";
  };
  run(read_back(this));
}

TEST_F(UnusualEvents, TheProgramRedactsAllOfThem) {
  const auto events = fmt::format("0@{},0@twice,0@tombstoned,0@deleted", kThat);
  const auto ended = run_program(context_, {"--db", database().string(), "--events", events});
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.err, "");
  EXPECT_THAT(ended.out, HasSubstr("5 records blanked"));
  for (const int n : {2, 3, 4, 5, 6}) {
    EXPECT_THAT(files_with(n), IsEmpty()) << n;
  }
  EXPECT_THAT(files_with(1), SizeIs(1));
}

}  // namespace
}  // namespace verger::online
