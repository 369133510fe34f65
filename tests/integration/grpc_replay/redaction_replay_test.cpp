// The recorded calls of Operations and Redaction (tests/fixtures/grpc, 09 and 10, of one server):
// the calls are made anew against an embedded node, whose files and ids have other names, and end
// as the recorded ones did.
#include <event_store/operations.pb.h>
#include <event_store/redaction.pb.h>
#include <event_store/streams.pb.h>
#include <fstream>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nodeagent/grpc/framing.h"
#include "nodeagent/grpc/status.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/grpc/node_services.h"
#include "tests/integration/grpc_replay/coverage.h"
#include "tests/integration/grpc_replay/recorded_exchange.h"
#include "tests/support/nodes/node_cluster.h"
#include "tests/support/results.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
namespace pb = event_store::client::redaction;
namespace ops = event_store::client::operations;
using Client = std::shared_ptr<MemoryExchange>;

class RedactionReplay : public ::testing::Test {
 protected:
  RedactionReplay() : world_(1), cluster_(world_, options()) {
    cluster_.boot_all();
    EXPECT_TRUE(cluster_.run_until_settled());
    table_ = node::make_services(*cluster_.node(0));
    for (int n = 0; n < 3; ++n) {
      EXPECT_EQ(cluster_.append(0, "red-1", R"({"x":"xxxxxxxxxxxxxxxxxxxx"})"), 201);
    }
    // Its point completes the chunk.
    EXPECT_EQ(value(cluster_.post(0, "/admin/scavenge")).status, 200);
    EXPECT_TRUE(world_.run_until([&] { return scavenge_ended(); }, 20s));
    use("10-redaction.json");
  }
  void use(const std::string& name) {
    std::ifstream file(std::string(VERGER_TEST_FIXTURES) + "/grpc/" + name);
    recording_ = json::parse(file);
  }

  static NodeClusterOptions options() {
    NodeClusterOptions out;
    out.voters = 1;
    return out;
  }
  bool scavenge_ended() {
    const auto answer = cluster_.get(0, "/admin/scavenge/current");
    return answer && answer->body.find(R"("scavengeId": "")") != std::string::npos;
  }

  Client call(const std::string& path, bool by_socket = true) {
    http::Request head{.method = "POST", .target = "/event_store.client." + path};
    head.headers.set("content-type", "application/grpc");
    head.peer.is_local_socket = by_socket;
    auto& host = cluster_.host(0);
    auto out = std::make_shared<MemoryExchange>(host.executor(), std::move(head));
    host.spawn(grpc::ServiceTable::serve(table_, out));
    world_.run_for(5ms);
    return out;
  }
  Client positions(const std::string& stream, std::initializer_list<std::uint64_t> numbers,
                   bool by_socket = true) {
    auto out = call("redaction.Redaction/GetEventPositions", by_socket);
    for (const auto number : numbers) {
      pb::GetEventPositionReq request;
      request.mutable_stream_identifier()->set_stream_name(stream);
      request.set_stream_revision(number);
      out->put(grpc::framed(request.SerializeAsString()));
    }
    out->half_close();
    return ended(out);
  }
  pb::EventPosition position(std::uint64_t number) {
    const auto answered = positions("red-1", {number});
    pb::GetEventPositionResp response;
    EXPECT_TRUE(response.ParseFromString(answered->messages().at(0)));
    return response.event_positions(0);
  }
  std::string live_file() { return position(0).chunk_info().file_name(); }
  Client lock() { return call("redaction.Redaction/SwitchChunks"); }
  static bool holds(const Client& client) {
    return client->status() == 200 && !client->ended() && client->messages().empty();
  }
  void ask(const Client& client, const std::string& target, const std::string& new_file) {
    pb::SwitchChunkReq request;
    request.set_target_chunk_file(target);
    request.set_new_chunk_file(new_file);
    client->put(grpc::framed(request.SerializeAsString()));
  }
  /// A call of its own for a switch that is to be refused.
  Client refused(const std::string& target, const std::string& new_file) {
    auto out = lock();
    EXPECT_TRUE(holds(out));
    ask(out, target, new_file);
    return ended(out);
  }
  Client ended(const Client& client) {
    EXPECT_TRUE(world_.run_until([&] { return client->ended(); }, 10s));
    return client;
  }
  Path file(const std::string& name) { return cluster_.options(0).database / name; }
  Bytes content(const std::string& name) {
    return value(read_file(cluster_.host(0).disk(), file(name)));
  }
  void copy(const std::string& from, const std::string& to, bool damaged = false,
            std::size_t size = 0) {
    auto bytes = content(from);
    if (damaged) {
      bytes[200] ^= std::byte{1};
    }
    bytes.resize(size == 0 ? bytes.size() : size);
    ok(write_file_durably(cluster_.host(0).disk(), file(to), bytes));
  }

  /// Status, text and trailers of exchange `number` are those of `got`.
  void same(int number, const Client& got) {
    const json* found = nullptr;
    for (const auto& exchange : recording_["exchanges"]) {
      found = exchange["n"] == number ? &exchange : found;
    }
    ASSERT_NE(found, nullptr);
    const auto& exchange = *found;
    SCOPED_TRACE(exchange["title"].get<std::string>());
    const auto field = [&](const std::string& name) {
      const auto at = got->fields().find(name);
      return at == got->fields().end() ? std::string() : at->second;
    };
    EXPECT_TRUE(got->ended());
    EXPECT_EQ(exchange["response_headers"][":status"].dump(), std::to_string(got->status()));
    EXPECT_EQ(exchange["response_headers"]["content-type"], field("content-type"));
    EXPECT_EQ(exchange["status"].is_null() ? "" : exchange["status"].dump(), field("grpc-status"));
    EXPECT_EQ(exchange["trailers_only"].get<bool>(), got->trailers_only());
    EXPECT_EQ(exchange["detail"].is_null() ? "" : exchange["detail"].get<std::string>(),
              grpc::decode_message(field("grpc-message")));
    for (const auto& [name, text] : exchange["trailers"].items()) {
      if (name == "scavenge-id") {
        EXPECT_NE(field(name), "") << "another one there";
      } else if (name != "grpc-message") {
        EXPECT_EQ(text.get<std::string>(), grpc::decode_message(field(name))) << name;
      }
    }
    if (!exchange["status"].is_null()) {
      EXPECT_EQ(exchange["responses"].size(), got->messages().size());
    }
    compared_.insert(number);
  }
  /// Exchange `number` had no answer but the head when its client cancelled it; nor has `got`.
  void same_until_cancelled(int number, const Client& got) {
    const auto& exchange = recording_["exchanges"].at(static_cast<std::size_t>(number - 1));
    ASSERT_EQ(exchange["n"], number);
    EXPECT_EQ(exchange["ended_by"], "client_cancel");
    EXPECT_EQ(exchange["response_headers"][":status"].dump(), std::to_string(got->status()));
    EXPECT_TRUE(exchange["responses"].empty());
    EXPECT_TRUE(holds(got));
    got->cancel();
    compared_.insert(number);
  }
  Client stop_scavenge(const std::string& id) {
    ops::StopScavengeReq request;
    request.mutable_options()->set_scavenge_id(id);
    const auto out = call("operations.Operations/StopScavenge", /*by_socket=*/false);
    out->put(grpc::framed(request.SerializeAsString()));
    out->half_close();
    return ended(out);
  }
  Client read_first(const std::string& stream) {
    event_store::client::streams::ReadReq request;
    auto& options = *request.mutable_options();
    options.mutable_stream()->mutable_stream_identifier()->set_stream_name(stream);
    options.mutable_stream()->mutable_start();
    options.set_count(1);
    options.mutable_no_filter();
    options.mutable_uuid_option()->mutable_string();
    const auto out = call("streams.Streams/Read");
    out->put(grpc::framed(request.SerializeAsString()));
    out->half_close();
    return ended(out);
  }
  /// The exchanges of the file that are this test's, and no other.
  void compared_all_of(const std::string& file) { EXPECT_EQ(compared_, wanted_of(file)); }

  SimWorld world_;
  NodeCluster cluster_;
  std::shared_ptr<grpc::ServiceTable> table_;
  json recording_;
  std::set<int> compared_;
};

TEST_F(RedactionReplay, PositionsAreAnsweredByTheSocketAlone) {
  const auto by_tcp = positions("red-1", {0}, false);
  same(1, by_tcp);
  EXPECT_EQ(by_tcp->body(), "\"Redaction is only available via Unix Sockets\"");
  same(2, ended(call("redaction.Redaction/SwitchChunks", false)));
  const auto both = positions("red-1", {0, 1});
  same(3, both);
  for (const std::uint64_t number : {0U, 1U}) {
    const auto found = position(number);
    EXPECT_EQ(found.chunk_info().event_offset(), found.log_position() + log::kChunkHeaderSize);
    EXPECT_TRUE(found.chunk_info().is_complete());
    EXPECT_EQ(found.chunk_info().version(), 4U);
    EXPECT_TRUE(value(cluster_.host(0).disk().exists(file(found.chunk_info().file_name()))));
  }
  same(4, positions("red-1", {77, 78}));
  EXPECT_EQ(positions("red-none", {0})->messages(), std::vector<std::string>{""});
  same(5, positions("$scavenges", {0}));
  EXPECT_EQ(cluster_.append(0, "red-1", R"({"x":"in the chunk that is written to"})"), 201);
  EXPECT_FALSE(position(3).chunk_info().is_complete());
  const auto nameless = call("redaction.Redaction/GetEventPositions");
  nameless->put(grpc::framed(pb::GetEventPositionReq().SerializeAsString()));
  same(6, ended(nameless));
  same(7, positions("red-1", {}));
  const auto read = read_first("red-1");
  same(8, read);
  event_store::client::streams::ReadResp first;
  EXPECT_TRUE(first.ParseFromString(read->messages().at(0)));
  EXPECT_EQ(first.event().event().data(), R"({"x":"xxxxxxxxxxxxxxxxxxxx"})");
  compared_all_of("10-redaction.json");
}

TEST_F(RedactionReplay, TheCallIsTheLock) {
  const auto held = lock();
  EXPECT_TRUE(holds(held));
  same(9, ended(lock()));
  // A scavenge is refused in both interfaces.
  const auto refusal = value(cluster_.post(0, "/admin/scavenge"));
  EXPECT_EQ(refusal.status, 400);
  EXPECT_NE(refusal.body.find("Failed to acquire the chunk switch lock"), std::string::npos);
  ops::StartScavengeReq start;
  start.mutable_options()->set_thread_count(1);
  const auto started = call("operations.Operations/StartScavenge");
  started->put(grpc::framed(start.SerializeAsString()));
  started->half_close();
  same(10, ended(started));
  ops::ScavengeResp answer;
  EXPECT_TRUE(answer.ParseFromString(started->messages().at(0)));
  EXPECT_EQ(answer.scavenge_id(), "00000000-0000-0000-0000-000000000000");
  EXPECT_EQ(answer.scavenge_result(), ops::ScavengeResp::InProgress);
  same(11, stop_scavenge("current"));
  // Two switches, and the names after them.
  const auto first = live_file();
  copy(first, "red-a.tmp");
  ask(held, first, "red-a.tmp");
  EXPECT_TRUE(world_.run_until([&] { return held->messages().size() == 1; }, 10s));
  const auto second = live_file();
  EXPECT_NE(second, first);
  EXPECT_FALSE(value(cluster_.host(0).disk().exists(file(first))));
  copy(second, "red-b.tmp");
  ask(held, second, "red-b.tmp");
  EXPECT_TRUE(world_.run_until([&] { return held->messages().size() == 2; }, 10s));
  same(12, positions("red-1", {0}));
  held->half_close();
  same(13, ended(held));
  // It is free again, also when the holder goes away.
  const auto next = lock();
  same_until_cancelled(23, next);
  world_.run_for(20ms);
  const auto last = lock();
  EXPECT_TRUE(holds(last));
  last->half_close();
  same(24, ended(last));
  EXPECT_EQ(value(cluster_.post(0, "/admin/scavenge")).status, 200);
  // While that runs, there is no lock.
  same(9, ended(lock()));
  EXPECT_TRUE(world_.run_until([&] { return scavenge_ended(); }, 20s));
  const auto after = lock();
  EXPECT_TRUE(holds(after));
  after->cancel();
  compared_all_of("10-redaction.json");
}

/// What exchanges of Operations ask for, and what they are answered.
class OperationsReplay : public RedactionReplay {
 protected:
  OperationsReplay() { use("09-operations.json"); }
  template <class Request>
  Client ask_for(const std::string& path, const Request& request) {
    const auto out = call(path);
    out->put(grpc::framed(request.SerializeAsString()));
    out->half_close();
    return ended(out);
  }
  Client start(int threads) {
    ops::StartScavengeReq request;
    request.mutable_options()->set_thread_count(threads);
    return ask_for("operations.Operations/StartScavenge", request);
  }
  Client stop(const std::string& id) {
    ops::StopScavengeReq request;
    request.mutable_options()->set_scavenge_id(id);
    return ask_for("operations.Operations/StopScavenge", request);
  }
  static ops::ScavengeResp answer_of(const Client& client) {
    ops::ScavengeResp out;
    EXPECT_TRUE(out.ParseFromString(client->messages().at(0)));
    return out;
  }
  /// As the recorded one, slowly, by the other interface. Its id.
  std::string start_slowly() {
    const auto started = value(cluster_.post(0, "/admin/scavenge?threads=1&throttlePercent=1"));
    EXPECT_EQ(started.status, 200);
    return json::parse(started.body).value("scavengeId", "");
  }
  void wait_for_its_end() {
    EXPECT_TRUE(world_.run_until([&] { return scavenge_ended(); }, 60s));
  }
};

TEST_F(OperationsReplay, EndAsRecorded) {
  const std::string other = "0f3f0d1c-2a86-4e0b-9d3e-5a7b1a5f8f10";
  same(1, stop("current"));
  same(2, stop(other));
  const auto first = start(1);
  same(3, first);
  EXPECT_EQ(answer_of(first).scavenge_result(), ops::ScavengeResp::Started);
  wait_for_its_end();
  auto running = start_slowly();
  same(4, ended(lock()));
  const auto beside = start(1);
  same(5, beside);
  EXPECT_EQ(answer_of(beside).scavenge_id(), running);
  EXPECT_EQ(answer_of(beside).scavenge_result(), ops::ScavengeResp::InProgress);
  same(6, stop(other));
  const auto stopped = stop(running);
  same(7, stopped);
  EXPECT_EQ(answer_of(stopped).scavenge_id(), running);
  EXPECT_EQ(answer_of(stopped).scavenge_result(), ops::ScavengeResp::Stopped);
  // What is left of that run takes too short to be stopped: the next one is to a point of its own.
  start(1);
  wait_for_its_end();
  running = start_slowly();
  same(8, stop(running));
  const auto again = start(2);
  same(9, again);
  EXPECT_NE(answer_of(again).scavenge_id(), running) << "under a new id";
  wait_for_its_end();
  const auto last = start(0);
  same(10, last);
  wait_for_its_end();
  same(11, ask_for("operations.Operations/StartScavenge", ops::StartScavengeReq()));
  same(12, ask_for("operations.Operations/StopScavenge", ops::StopScavengeReq()));
  namespace es = event_store::client::streams;
  es::ReadReq read;
  auto& options = *read.mutable_options();
  options.mutable_stream()->mutable_stream_identifier()->set_stream_name("$scavenges");
  options.mutable_stream()->mutable_end();
  options.set_read_direction(es::ReadReq::Options::Backwards);
  options.set_resolve_links(true);
  options.set_count(2);
  options.mutable_no_filter();
  options.mutable_uuid_option()->mutable_string();
  const auto log = ask_for("streams.Streams/Read", read);
  same(13, log);
  es::ReadResp newest;
  EXPECT_TRUE(newest.ParseFromString(log->messages().at(0)));
  EXPECT_EQ(newest.event().event().metadata().at("type"), "$scavengeCompleted");
  EXPECT_EQ(newest.event().event().stream_identifier().stream_name(),
            "$scavenges-" + answer_of(last).scavenge_id());
  same(14, ask_for("operations.Operations/MergeIndexes", event_store::client::Empty()));
  ops::SetNodePriorityReq priority;
  priority.set_priority(5);
  same(15, ask_for("operations.Operations/SetNodePriority", priority));
  same(16, ask_for("operations.Operations/RestartPersistentSubscriptions",
                   event_store::client::Empty()));
  compared_all_of("09-operations.json");
}

TEST_F(RedactionReplay, ARefusalEndsTheCallWithItsReason) {
  const auto live = live_file();
  copy(live, "red-c.tmp");
  copy(live, "red-c.dat");
  copy(live, "red-d.tmp", true);
  copy(live, "red-e.tmp", false, 100);
  same(14, refused("chunk-000000.000999", "red-c.tmp"));
  same(15, refused(live, "red-none.tmp"));
  same(16, refused(live, "red-c.dat"));
  same(17, refused("../" + live, "red-c.tmp"));
  same(18, refused("", "red-c.tmp"));
  same(19, refused("chunk-000001.000000", "red-c.tmp"));
  same(20, refused(live, "red-d.tmp"));
  same(21, refused(live, "red-e.tmp"));
  // The next scavenge merges the next chunk with this one; a copy from before has another range.
  copy(live, "red-f.tmp");
  EXPECT_EQ(value(cluster_.post(0, "/admin/scavenge")).status, 200);
  EXPECT_TRUE(world_.run_until([&] { return scavenge_ended(); }, 20s));
  EXPECT_NE(live_file(), live);
  same(22, refused(live_file(), "red-f.tmp"));
  // What was refused is still there, and nothing else has changed.
  EXPECT_TRUE(value(cluster_.host(0).disk().exists(file("red-f.tmp"))));
  compared_all_of("10-redaction.json");
}

}  // namespace
}  // namespace verger::testing
