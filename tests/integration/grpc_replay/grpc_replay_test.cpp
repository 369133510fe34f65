// The recordings of a real server's gRPC calls (tests/fixtures/grpc), replayed against embedded
// nodes: each call's status, text, trailers and messages have to be the recorded ones.
#include <algorithm>
#include <event_store/gossip.pb.h>
#include <event_store/monitoring.pb.h>
#include <event_store/operations.pb.h>
#include <event_store/server_features.pb.h>
#include <event_store/streams.pb.h>
#include <fstream>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <set>

#include <nlohmann/json.hpp>

#include "nodeagent/grpc/framing.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/grpc/node_services.h"
#include "tests/integration/grpc_replay/recorded_exchange.h"
#include "tests/support/nodes/node_cluster.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;
using google::protobuf::Message;
using nlohmann::json;
namespace es = event_store::client;

std::string from_hex(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return out;
}

json recording(const std::string& name) {
  std::ifstream file(std::string(VERGER_TEST_FIXTURES) + "/grpc/" + name);
  return json::parse(file);
}

std::unique_ptr<Message> empty_response(const std::string& call) {
  const auto is = [&](std::string_view end) { return call.ends_with(end); };
  if (is("Streams/Read")) {
    return std::make_unique<es::streams::ReadResp>();
  }
  if (is("Streams/Append")) {
    return std::make_unique<es::streams::AppendResp>();
  }
  if (is("Streams/BatchAppend")) {
    return std::make_unique<es::streams::BatchAppendResp>();
  }
  if (is("Streams/Delete")) {
    return std::make_unique<es::streams::DeleteResp>();
  }
  if (is("Streams/Tombstone")) {
    return std::make_unique<es::streams::TombstoneResp>();
  }
  if (is("Gossip/Read")) {
    return std::make_unique<es::gossip::ClusterInfo>();
  }
  if (is("ServerFeatures/GetSupportedMethods")) {
    return std::make_unique<es::server_features::SupportedMethods>();
  }
  if (is("Monitoring/Stats")) {
    return std::make_unique<es::monitoring::StatsResp>();
  }
  if (is("StartScavenge") || is("StopScavenge")) {
    return std::make_unique<es::operations::ScavengeResp>();
  }
  return std::make_unique<es::Empty>();
}

/// The positions of a message in order, and none of what differs from run to run.
void take_positions(Message& message, std::vector<std::uint64_t>& positions) {
  const auto* reflection = message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const auto* field : fields) {
    const auto& name = field->name();
    if (name == "commit_position" || name == "prepare_position") {
      positions.push_back(reflection->GetUInt64(message, field));
      reflection->SetUInt64(&message, field, 1);
    } else if (name == "time_stamp") {
      reflection->SetInt64(&message, field, 1);
    } else if (name == "subscription_id" || name == "scavenge_id" || name == "address") {
      reflection->SetString(&message, field, "some");
    } else if (name == "port") {
      reflection->SetUInt32(&message, field, 1);
    } else if (name == "instance_id") {
      reflection->MutableMessage(&message, field)->Clear();
    } else if (field->is_map()) {
      continue;
    } else if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      if (field->is_repeated()) {
        for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
          take_positions(*reflection->MutableRepeatedMessage(&message, field, i), positions);
        }
      } else {
        take_positions(*reflection->MutableMessage(&message, field), positions);
      }
    }
  }
  if (auto* event = dynamic_cast<es::streams::ReadResp::ReadEvent::RecordedEvent*>(&message)) {
    event->mutable_metadata()->erase("created");
    // What the server itself writes has other ids each time.
    const auto type = event->metadata().find("type");
    if (type != event->metadata().end() &&
        (type->second == "$metadata" || type->second == "$streamDeleted")) {
      event->mutable_id()->Clear();
    }
  }
}

/// A single embedded node in virtual time, as the recordings' server was configured, or three.
class Replay {
 public:
  explicit Replay(std::size_t voters) : world_(1), cluster_(world_, options(voters)) {
    cluster_.boot_all();
    EXPECT_TRUE(cluster_.run_until_settled());
    world_.run_for(200ms);
    EXPECT_TRUE(cluster_.run_until_level());
    for (std::size_t i = 0; i < cluster_.size(); ++i) {
      tables_.push_back(node::make_services(*cluster_.node(i)));
    }
  }

  /// Replays the whole file; exchanges in `not_here` (number and reason) are left out. How many
  /// were the same.
  int run(const std::string& file, const std::map<int, std::string>& not_here = {}) {
    int same = 0;
    const auto recorded = recording(file);
    for (const auto& exchange : recorded["exchanges"]) {
      if (not_here.contains(exchange["n"].get<int>())) {
        continue;
      }
      const auto wrong = differences(exchange);
      EXPECT_TRUE(wrong.empty()) << file << " " << exchange["n"] << " " << exchange["title"] << "\n"
                                 << wrong;
      same += wrong.empty() ? 1 : 0;
    }
    std::cout << file << ": " << same << " of " << recorded["exchanges"].size()
              << " exchanges are the recorded ones, " << not_here.size() << " left out\n";
    return same;
  }

  void tombstone(const std::string& stream) {
    es::streams::TombstoneReq request;
    request.mutable_options()->mutable_stream_identifier()->set_stream_name(stream);
    request.mutable_options()->mutable_any();
    carry_out("Tombstone", {request.SerializeAsString()});
  }
  void append(const std::string& stream, const std::vector<std::string>& types,
              const std::string& data = "{}") {
    std::vector<std::string> messages;
    es::streams::AppendReq options;
    options.mutable_options()->mutable_stream_identifier()->set_stream_name(stream);
    options.mutable_options()->mutable_any();
    messages.push_back(options.SerializeAsString());
    for (const auto& type : types) {
      es::streams::AppendReq proposed;
      auto& out = *proposed.mutable_proposed_message();
      out.mutable_id()->set_string(world_.random().uuid().to_string());
      (*out.mutable_metadata())["type"] = type;
      (*out.mutable_metadata())["content-type"] = "application/json";
      out.set_data(data);
      messages.push_back(proposed.SerializeAsString());
    }
    carry_out("Append", messages);
  }
  /// Sends the messages and returns at once.
  std::shared_ptr<MemoryExchange> call(const std::string& method,
                                       const std::vector<std::string>& messages) {
    const auto sent = start({{"request_headers",
                              {{":method", "POST"},
                               {":path", "/event_store.client.streams.Streams/" + method},
                               {"content-type", "application/grpc"}}}});
    for (const auto& message : messages) {
      sent->put(grpc::framed(message));
    }
    sent->half_close();
    return sent;
  }

  SimWorld& world() { return world_; }
  NodeCluster& cluster() { return cluster_; }
  /// The node that the next exchanges are sent to.
  std::size_t at = 0;

  std::shared_ptr<MemoryExchange> start(const json& exchange) {
    http::Request head{.method = exchange["request_headers"][":method"],
                       .target = exchange["request_headers"][":path"]};
    for (const auto& [name, value] : exchange["request_headers"].items()) {
      if (!name.starts_with(':')) {
        head.headers.set(name, value.get<std::string>());
      }
    }
    auto& host = cluster_.host(at);
    auto out = std::make_shared<MemoryExchange>(host.executor(), std::move(head));
    if (!tables_[at]->takes(out->head())) {
      out->send_head(404, {}, true);  // the routes of HTTP have no such path
      return out;
    }
    host.spawn(grpc::ServiceTable::serve(tables_[at], out));
    return out;
  }

 private:
  static NodeClusterOptions options(std::size_t voters) {
    NodeClusterOptions out;
    out.voters = voters;
    out.node.timings.write_timeout = 2s;
    if (voters == 1) {
      out.node.max_append_size = 8192;
    } else {
      out.tls = true;
      out.node.insecure = false;
    }
    return out;
  }

  /// What a client has to send so that a subscription gets what was recorded, where no exchange of
  /// the recording sends it.
  void provide(const es::streams::ReadResp& response, bool metadata) {
    const auto& read = response.event();
    const auto& event = read.has_link() ? read.link() : read.event();
    const auto id = event.id().ShortDebugString();
    const auto& type = event.metadata().at("type");
    if (known_ids_.contains(id) || (type == "$metadata" && !metadata)) {
      return;
    }
    known_ids_.insert(id);
    if (type == "$streamDeleted") {
      tombstone(event.stream_identifier().stream_name());
      return;
    }
    if (type == "after") {  // this one was appended to a stream that was deleted before
      es::streams::DeleteReq request;
      *request.mutable_options()->mutable_stream_identifier() = event.stream_identifier();
      request.mutable_options()->mutable_any();
      carry_out("Delete", {request.SerializeAsString()});
    }
    fill_up_to(event);
    es::streams::AppendReq options;
    *options.mutable_options()->mutable_stream_identifier() = event.stream_identifier();
    options.mutable_options()->mutable_any();
    es::streams::AppendReq proposed;
    auto& out = *proposed.mutable_proposed_message();
    *out.mutable_id() = event.id();
    *out.mutable_metadata() = event.metadata();
    out.set_custom_metadata(event.custom_metadata());
    out.set_data(event.data());
    carry_out("Append", {options.SerializeAsString(), proposed.SerializeAsString()});
  }
  /// Events of the stream before this one, which the subscription was not to get, and so are not
  /// in the recording; of the same size, so that positions are as far apart.
  void fill_up_to(const es::streams::ReadResp::ReadEvent::RecordedEvent& event) {
    const auto& stream = event.stream_identifier().stream_name();
    const auto& db = cluster_.node(at)->core()->db();
    const auto wanted = static_cast<std::int64_t>(event.stream_revision());
    for (auto last = db.last_event_number(stream);
         last && *last != kDeletedStream && last->value() + 1 < wanted;
         last = db.last_event_number(stream)) {
      append(stream, {event.metadata().at("type")}, event.data());
    }
  }
  void carry_out(const std::string& method, const std::vector<std::string>& messages) {
    const auto sent = call(method, messages);
    EXPECT_TRUE(world_.run_until([&] { return sent->ended(); }, 10s));
    EXPECT_EQ(sent->fields().at("grpc-status"), "0") << method;
  }

  /// A request with the positions of this run in place of the recording's.
  std::string translated(const std::string& call, const std::string& bytes) {
    es::streams::ReadReq request;
    if (!call.ends_with("Streams/Read") || !request.ParseFromString(bytes) ||
        !request.options().all().has_position()) {
      return bytes;
    }
    auto& position = *request.mutable_options()->mutable_all()->mutable_position();
    position.set_commit_position(own_position(position.commit_position()));
    position.set_prepare_position(own_position(position.prepare_position()));
    return request.SerializeAsString();
  }
  std::uint64_t own_position(std::uint64_t recorded) const {
    constexpr std::uint64_t kNoPlace = std::uint64_t{1} << 62U;
    auto found = positions_.upper_bound(recorded);
    if (recorded == 0 || recorded >= kNoPlace || found == positions_.begin()) {
      return recorded;
    }
    --found;
    return found->second + (recorded - found->first);
  }

  void note_ids(const std::string& call, const std::string& bytes) {
    if (call.ends_with("Streams/Append")) {
      es::streams::AppendReq request;
      if (request.ParseFromString(bytes) && request.has_proposed_message()) {
        known_ids_.insert(request.proposed_message().id().ShortDebugString());
      }
    } else if (call.ends_with("Streams/BatchAppend")) {
      es::streams::BatchAppendReq request;
      request.ParseFromString(bytes);
      for (const auto& message : request.proposed_messages()) {
        known_ids_.insert(message.id().ShortDebugString());
      }
    }
  }

  std::string differences(const json& exchange);
  std::string compare(const json& exchange, const MemoryExchange& got);

  SimWorld world_;
  NodeCluster cluster_;
  std::vector<std::shared_ptr<grpc::ServiceTable>> tables_;
  std::set<std::string> known_ids_;
  std::map<std::uint64_t, std::uint64_t> positions_;  ///< recorded to own
};

std::string Replay::differences(const json& exchange) {
  const std::string call = exchange["call"];
  std::vector<es::streams::ReadResp> events;
  bool live = false;
  // Of other streams it is what the server writes by itself.
  const bool metadata = exchange["requests"].dump().contains("text:$$");
  if (exchange["title"].get<std::string>().contains("too old")) {
    world_.run_for(2s);  // more than the stream's maximal age
  }
  if (call.ends_with("Streams/Read") && exchange.dump().contains("\"subscription\"")) {
    const bool all = exchange["requests"].dump().contains("\"all\"");
    std::set<std::string> filled;
    for (const auto& response : exchange["responses"]) {
      es::streams::ReadResp parsed;
      parsed.ParseFromString(from_hex(response["hex"]));
      live = live || parsed.has_caught_up();
      if (!live && parsed.has_event()) {
        provide(parsed, metadata);
      }
      // A subscription to $all would get what is appended later.
      const auto& event = parsed.event().event();
      if (all && parsed.has_event() && !known_ids_.contains(event.id().ShortDebugString()) &&
          filled.insert(event.stream_identifier().stream_name()).second) {
        fill_up_to(event);
      }
      events.push_back(std::move(parsed));
    }
  }
  const auto client = start(exchange);
  std::size_t seen = 0;
  std::int64_t last_ms = 0;
  const auto wait_for = [&](std::size_t messages) {
    return world_.run_until(
        [&] { return client->ended() || client->messages().size() >= messages; }, 60s);
  };
  live = false;
  for (const auto& step : exchange["timeline"]) {
    const auto at_ms = step[0].get<std::int64_t>();
    const std::string kind = step[2];
    if (step[1] == "send") {
      if (kind == "cancel" || (kind == "half_close" && seen > 0)) {
        // What comes too much comes in the time in which nothing came.
        world_.run_for(std::chrono::milliseconds(std::max<std::int64_t>(at_ms - last_ms, 0)));
      }
      if (kind == "message") {
        const std::string hex = exchange["requests"][step[3].get<std::size_t>()]["hex"];
        note_ids(call, from_hex(hex));
        client->put(grpc::framed(translated(call, from_hex(hex))));
      } else if (kind == "bytes") {
        client->put(from_hex(step[3]["hex"]));
      } else if (kind == "half_close") {
        client->half_close();
      }
    } else if (kind == "message") {
      if (seen < events.size()) {
        if (live && events[seen].has_event()) {
          provide(events[seen], metadata);
        }
        live = live || events[seen].has_caught_up();
      }
      ++seen;
      if (!wait_for(seen)) {
        break;
      }
    }
    last_ms = at_ms;
  }
  if (exchange["ended_by"] != "client_cancel") {
    world_.run_until([&] { return client->ended(); }, 60s);
  }
  auto wrong = compare(exchange, *client);
  client->cancel();
  world_.run_for(20ms);
  return wrong;
}

std::string Replay::compare(const json& exchange, const MemoryExchange& got) {
  std::string wrong;
  const auto expect_same = [&](const std::string& what, const std::string& recorded,
                               const std::string& own) {
    if (recorded != own) {
      wrong += fmt::format("  {}: recorded '{}', got '{}'\n", what, recorded, own);
    }
  };
  const auto field = [&](const std::string& name) {
    const auto found = got.fields().find(name);
    return found == got.fields().end() ? std::string() : found->second;
  };
  const bool cancelled = exchange["ended_by"] == "client_cancel";
  expect_same("ended", cancelled ? "no" : "yes", got.ended() ? "yes" : "no");
  if (!cancelled) {
    expect_same("http status", exchange["response_headers"][":status"].dump(),
                std::to_string(got.status()));
    expect_same("status", exchange["status"].is_null() ? "" : exchange["status"].dump(),
                field("grpc-status"));
    expect_same("trailers only", exchange["trailers_only"].dump(),
                got.trailers_only() ? "true" : "false");
    // The recorder's library drops a text that begins with a space.
    if (!field("grpc-message").starts_with(' ')) {
      expect_same("detail", exchange["detail"].is_null() ? "" : exchange["detail"],
                  grpc::decode_message(field("grpc-message")));
    }
    for (const auto& [name, value] : exchange["trailers"].items()) {
      if (name != "grpc-message" && !name.starts_with("leader-endpoint") && name != "scavenge-id") {
        expect_same("trailer " + name, value, field(name));
      } else if (field(name).empty()) {
        wrong += "  no trailer " + name + "\n";
      }
    }
  }
  const auto messages = got.messages();
  const auto& recorded = exchange["responses"];
  expect_same("messages", std::to_string(recorded.size()), std::to_string(messages.size()));
  const std::string call = exchange["call"];
  for (std::size_t i = 0; i < std::min(messages.size(), recorded.size()); ++i) {
    const auto theirs = empty_response(call);
    const auto ours = empty_response(call);
    theirs->ParseFromString(from_hex(recorded[i]["hex"]));
    ours->ParseFromString(messages[i]);
    if (call.ends_with("Monitoring/Stats")) {
      continue;  // names and values are the node's own
    }
    if (call.ends_with("GetSupportedMethods")) {
      // What is listed is what the server lists for the services that are here.
      auto& list = dynamic_cast<es::server_features::SupportedMethods&>(*theirs);
      auto& methods = *list.mutable_methods();
      methods.erase(std::remove_if(methods.begin(), methods.end(),
                                   [](const auto& method) {
                                     return method.service_name().contains("persistent") ||
                                            method.service_name().contains("users");
                                   }),
                    methods.end());
    }
    for (auto* both : {theirs.get(), ours.get()}) {
      if (auto* gossip = dynamic_cast<es::gossip::ClusterInfo*>(both)) {
        std::ranges::sort(*gossip->mutable_members(), {}, &es::gossip::MemberInfo::state);
      }
    }
    std::vector<std::uint64_t> their_positions;
    std::vector<std::uint64_t> our_positions;
    take_positions(*theirs, their_positions);
    take_positions(*ours, our_positions);
    if (their_positions.size() == our_positions.size()) {
      for (std::size_t p = 0; p < their_positions.size(); ++p) {
        positions_.emplace(their_positions[p], our_positions[p]);
      }
    }
    if (!google::protobuf::util::MessageDifferencer::Equals(*theirs, *ours)) {
      wrong += fmt::format("  message {}: recorded {}\n    got {}\n", i, theirs->ShortDebugString(),
                           ours->ShortDebugString());
    }
  }
  return wrong;
}

// All that were recorded of these services, but for those that are named here.
TEST(GrpcReplay, OneNode) {
  Replay replay(1);
  int same = 0;
  same += replay.run("01-connect.json", {{18, "a deadline of 1 ms: what comes first is chance"}});
  same += replay.run("02-append.json");
  same += replay.run("03-delete.json", {{43, "a metadata stream is not tombstoned"}});
  const std::string in_memory = "streams in memory are not here";
  same += replay.run("04-read-stream.json", {{52, in_memory}, {53, in_memory}});
  same += replay.run("05-read-all.json");
  const std::string others = "what other streams got meanwhile is not in the recording";
  same += replay.run("06-subscribe.json", {{14, others}, {15, others}, {19, in_memory}});
  replay.tombstone("b-del");
  same += replay.run("07-batch-append.json",
                     {{20, "how many replies come before the end of the call is chance"}});
  EXPECT_EQ(same, 234);
}

TEST(GrpcReplay, AFollower) {
  Replay replay(3);
  replay.at = *replay.cluster().leader() == 0 ? 1 : 0;
  std::map<int, std::string> not_here;
  const auto file = recording("12-follower.json");
  for (const auto& exchange : file["exchanges"]) {
    const std::string call = exchange["call"];
    if (call.contains("persistent_subscriptions") || call.contains("users.Users")) {
      not_here[exchange["n"]] = "this service is not here";
    }
  }
  EXPECT_EQ(replay.run("12-follower.json", not_here), 26);
}

/// What a subscription has sent so far.
struct Received {
  std::vector<std::string> types;  ///< of events
  std::vector<std::pair<std::uint64_t, std::uint64_t>> checkpoints;
  int caught_up = 0;
};
Received received(const MemoryExchange& exchange) {
  Received out;
  for (const auto& message : exchange.messages()) {
    es::streams::ReadResp response;
    response.ParseFromString(message);
    if (response.has_event()) {
      out.types.push_back(response.event().event().metadata().at("type"));
    } else if (response.has_checkpoint()) {
      out.checkpoints.emplace_back(response.checkpoint().commit_position(),
                                   response.checkpoint().prepare_position());
    }
    out.caught_up += response.has_caught_up() ? 1 : 0;
  }
  return out;
}

std::string filtered_subscription(std::optional<std::pair<std::uint64_t, std::uint64_t>> from) {
  es::streams::ReadReq request;
  auto& options = *request.mutable_options();
  if (from) {
    options.mutable_all()->mutable_position()->set_commit_position(from->first);
    options.mutable_all()->mutable_position()->set_prepare_position(from->second);
  } else {
    options.mutable_all()->mutable_start();
  }
  options.mutable_subscription();
  options.mutable_filter()->mutable_event_type()->add_prefix("wanted-");
  options.mutable_filter()->set_max(4);
  options.mutable_filter()->set_checkpointintervalmultiplier(2);
  options.mutable_uuid_option()->mutable_string();
  return request.SerializeAsString();
}

TEST(GrpcSubscription, ResumedFromAnyCheckpointItLosesNothing) {
  Replay replay(1);
  std::vector<std::string> wanted;
  const auto append_some = [&](int from, int to) {
    for (int i = from; i < to; ++i) {
      const bool match = i % 5 == 0 || i % 7 == 0;
      const auto type = fmt::format("{}-{}", match ? "wanted" : "other", i);
      replay.append("s-" + std::to_string(i % 3), {type});
      if (match) {
        wanted.push_back(type);
      }
    }
  };
  append_some(0, 60);
  const auto whole = replay.call("Read", {filtered_subscription(std::nullopt)});
  ASSERT_TRUE(replay.world().run_until([&] { return received(*whole).caught_up == 1; }, 10s));
  const auto behind = received(*whole).checkpoints.size();
  EXPECT_GT(behind, 5U);
  append_some(60, 120);
  ASSERT_TRUE(replay.world().run_until(
      [&] { return received(*whole).types.size() == wanted.size(); }, 10s));
  const auto all = received(*whole);
  EXPECT_EQ(all.types, wanted);
  EXPECT_GT(all.checkpoints.size(), behind + 5);
  EXPECT_TRUE(std::ranges::is_sorted(all.checkpoints));
  EXPECT_EQ(std::ranges::adjacent_find(all.checkpoints), all.checkpoints.end());

  for (const auto& checkpoint : all.checkpoints) {
    // What it had got before the checkpoint, and what it gets from there on.
    std::set<std::string> got;
    for (const auto& message : whole->messages()) {
      es::streams::ReadResp response;
      response.ParseFromString(message);
      if (response.has_checkpoint() &&
          response.checkpoint().commit_position() == checkpoint.first) {
        break;
      }
      if (response.has_event()) {
        got.insert(response.event().event().metadata().at("type"));
      }
    }
    const auto resumed = replay.call("Read", {filtered_subscription(checkpoint)});
    ASSERT_TRUE(replay.world().run_until([&] { return received(*resumed).caught_up == 1; }, 10s));
    const auto rest = received(*resumed).types;
    got.insert(rest.begin(), rest.end());
    EXPECT_EQ(got, std::set<std::string>(wanted.begin(), wanted.end()))
        << checkpoint.first << "/" << checkpoint.second;
    resumed->cancel();
  }
  whole->cancel();
  replay.world().run_for(20ms);
}

TEST(GrpcSubscription, MoreThanTheServerHoldsAreDeliveredOnceAndInOrder) {
  Replay replay(1);
  es::streams::ReadReq request;
  auto& options = *request.mutable_options();
  options.mutable_stream()->mutable_stream_identifier()->set_stream_name("many");
  options.mutable_stream()->mutable_end();
  options.mutable_subscription();
  options.mutable_no_filter();
  options.mutable_uuid_option()->mutable_string();
  const auto subscription = replay.call("Read", {request.SerializeAsString()});
  ASSERT_TRUE(
      replay.world().run_until([&] { return received(*subscription).caught_up == 1; }, 10s));
  std::vector<std::string> types;
  for (int i = 0; i < 100; ++i) {
    types.push_back(fmt::format("t-{}", i));
  }
  replay.append("many", types);
  ASSERT_TRUE(
      replay.world().run_until([&] { return received(*subscription).caught_up == 2; }, 10s));
  EXPECT_EQ(received(*subscription).types, types);
  subscription->cancel();
  replay.world().run_for(20ms);
}

}  // namespace
}  // namespace verger::testing
