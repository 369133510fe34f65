#include "tests/integration/grpc_replay/replay.h"

#include <algorithm>
#include <event_store/gossip.pb.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <iostream>
#include <utility>

#include "nodeagent/grpc/framing.h"
#include "nodeagent/http/base64.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/grpc/node_services.h"
#include "nodeagent/node/persistent_subscriptions.h"
#include "tests/integration/grpc_replay/coverage.h"

namespace verger::testing {

using namespace std::chrono_literals;
using nlohmann::json;
namespace es = event_store::client;

Replay::Replay(std::size_t voters) : world_(1), cluster_(world_, options(voters)) {
  cluster_.boot_all();
  EXPECT_TRUE(cluster_.run_until_settled());
  world_.run_for(200ms);
  EXPECT_TRUE(cluster_.run_until_level());
  for (std::size_t i = 0; i < cluster_.size(); ++i) {
    tables_.push_back(node::make_services(*cluster_.node(i)));
  }
}

void Replay::boot(std::size_t i) {
  EXPECT_TRUE(cluster_.boot(i).has_value());
  tables_[i] = node::make_services(*cluster_.node(i));
}

node::Core& Replay::core(std::size_t i) { return *cluster_.node(i)->core(); }

void Replay::run_until_tick_is(std::chrono::milliseconds ahead) {
  const auto& subscriptions = *core(at).subscriptions;
  EXPECT_TRUE(world_.run_until(
      [&] {
        const auto left = subscriptions.next_tick() - core(at).now();
        return left <= ahead && left > ahead - 20ms;
      },
      3s));
}

void Replay::run(const std::string& file, ReplayPlan plan) {
  const auto wanted = wanted_of(file);
  auto recorded = recording(file);
  for (const auto& exchange : recorded["exchanges"]) {
    if (const auto number = exchange["n"].get<int>(); !wanted.contains(number)) {
      plan.not_here.emplace(number, "left out, or another test's");
    }
  }
  run_recorded(std::move(recorded), file, std::move(plan));
  EXPECT_EQ(same_, wanted) << file;
}

int Replay::run_recorded(json recorded, const std::string& name, ReplayPlan plan) {
  recorded_ = std::move(recorded);
  file_ = name;
  plan_ = std::move(plan);
  same_.clear();
  for (auto& exchange : recorded_["exchanges"]) {
    const auto number = exchange["n"].get<int>();
    if (const auto other = plan_.credentials.find(number); other != plan_.credentials.end()) {
      exchange["request_headers"]["authorization"] = "Basic " + http::base64_encode(other->second);
    }
    count(exchange, false);
  }
  std::cout << name << ": " << same_.size() << " of " << recorded_["exchanges"].size()
            << " exchanges are the recorded ones\n";
  return static_cast<int>(same_.size());
}

void Replay::run_one(int number) {
  for (const auto& exchange : recorded_["exchanges"]) {
    if (exchange["n"] == number) {
      count(exchange, true);
    }
  }
}

void Replay::count(const json& exchange, bool inner) {
  const auto number = exchange["n"].get<int>();
  if (plan_.not_here.contains(number) || plan_.inner.contains(number) != inner) {
    return;
  }
  if (const auto prepare = plan_.before.find(number); prepare != plan_.before.end()) {
    prepare->second();
  }
  const auto wrong = differences(exchange);
  EXPECT_TRUE(wrong.empty()) << file_ << " " << exchange["n"] << " " << exchange["title"] << "\n"
                             << wrong;
  if (wrong.empty()) {
    same_.insert(number);
  }
}

void Replay::tombstone(const std::string& stream) {
  es::streams::TombstoneReq request;
  request.mutable_options()->mutable_stream_identifier()->set_stream_name(stream);
  request.mutable_options()->mutable_any();
  carry_out("Tombstone", {request.SerializeAsString()});
}

void Replay::append(const std::string& stream, const std::vector<std::string>& types,
                    const std::string& data) {
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

void Replay::append_known(const std::string& stream, const std::string& id, const std::string& type,
                          const std::string& data) {
  es::streams::AppendReq options;
  options.mutable_options()->mutable_stream_identifier()->set_stream_name(stream);
  options.mutable_options()->mutable_any();
  es::streams::AppendReq proposed;
  auto& out = *proposed.mutable_proposed_message();
  out.mutable_id()->set_string(id);
  (*out.mutable_metadata())["type"] = type;
  (*out.mutable_metadata())["content-type"] = "application/json";
  out.set_data(data);
  known_ids_.insert(out.id().ShortDebugString());
  carry_out("Append", {options.SerializeAsString(), proposed.SerializeAsString()});
}

std::shared_ptr<MemoryExchange> Replay::call(const std::string& method,
                                             const std::vector<std::string>& messages) {
  const auto sent = call_path("streams.Streams/" + method,
                              cluster_.size() == 1 ? "" : "admin:changeit", messages);
  sent->half_close();
  return sent;
}

std::shared_ptr<MemoryExchange> Replay::call_path(const std::string& path,
                                                  const std::string& credentials,
                                                  const std::vector<std::string>& messages) {
  json head = {{":method", "POST"},
               {":path", "/event_store.client." + path},
               {"content-type", "application/grpc"}};
  if (!credentials.empty()) {
    head["authorization"] = "Basic " + http::base64_encode(credentials);
  }
  const auto sent = start({{"request_headers", head}});
  for (const auto& message : messages) {
    sent->put(grpc::framed(message));
  }
  return sent;
}

std::shared_ptr<MemoryExchange> Replay::start(const json& exchange) {
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

NodeClusterOptions Replay::options(std::size_t voters) {
  NodeClusterOptions out;
  out.voters = voters;
  out.node.timings.write_timeout = 2s;
  if (voters == 1) {
    out.node.max_append_size = 8192;
  } else {
    out.tls = true;
    out.node.insecure = false;
    out.node.chunk_size = 4 * 1024 * 1024;  // for the largest append
  }
  return out;
}

/// What a client has to send so that a subscription gets what was recorded, where no exchange of
/// the recording sends it.
void Replay::provide(const es::streams::ReadResp& response, bool metadata) {
  const auto& read = response.event();
  const auto& event = read.has_link() ? read.link() : read.event();
  const auto id = event.id().ShortDebugString();
  const auto& type = event.metadata().at("type");
  const bool own = event.stream_identifier().stream_name().starts_with("$mem-");  // the node's own
  if (known_ids_.contains(id) || own || (type == "$metadata" && !metadata)) {
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
void Replay::fill_up_to(const es::streams::ReadResp::ReadEvent::RecordedEvent& event) {
  const auto& stream = event.stream_identifier().stream_name();
  const auto& db = cluster_.node(at)->core()->db();
  const auto wanted = static_cast<std::int64_t>(event.stream_revision());
  for (auto last = db.last_event_number(stream);
       last && *last != kDeletedStream && last->value() + 1 < wanted;
       last = db.last_event_number(stream)) {
    append(stream, {event.metadata().at("type")}, event.data());
  }
}

void Replay::carry_out(const std::string& method, const std::vector<std::string>& messages) {
  const auto sent = call(method, messages);
  EXPECT_TRUE(world_.run_until([&] { return sent->ended(); }, 10s));
  EXPECT_EQ(sent->fields().at("grpc-status"), "0") << method;
}

/// A request with the positions of this run in place of the recording's.
std::string Replay::translated(const std::string& call, const std::string& bytes) {
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

std::uint64_t Replay::own_position(std::uint64_t recorded) const {
  constexpr std::uint64_t kNoPlace = std::uint64_t{1} << 62U;
  auto found = positions_.upper_bound(recorded);
  if (recorded == 0 || recorded >= kNoPlace || found == positions_.begin()) {
    return recorded;
  }
  --found;
  return found->second + (recorded - found->first);
}

void Replay::note_ids(const std::string& call, const std::string& bytes) {
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
  // Of a group, and of a deadline, what happens depends on how long the client takes.
  const bool timed = call.ends_with("PersistentSubscriptions/Read") ||
                     exchange["request_headers"].contains("grpc-timeout");
  const auto begun = world_.now();
  const auto inside = plan_.inside.equal_range(exchange.value("n", 0));
  std::size_t index = 0;
  for (const auto& step : exchange["timeline"]) {
    const auto at_ms = step[0].get<std::int64_t>();
    const std::string kind = step[2];
    if (step[1] == "send") {
      if (timed) {
        world_.run_for(std::max(0ms, std::chrono::duration_cast<std::chrono::milliseconds>(
                                         begun + std::chrono::milliseconds(at_ms) - world_.now())));
      } else if (kind == "cancel" || (kind == "half_close" && seen > 0)) {
        // What comes too much comes in the time in which nothing came.
        world_.run_for(std::chrono::milliseconds(std::max<std::int64_t>(at_ms - last_ms, 0)));
      }
      if (kind == "message") {
        const auto which = step[3].get<std::size_t>();
        auto bytes = from_hex(exchange["requests"][which]["hex"]);
        const auto whole = plan_.last_message.find(exchange.value("n", 0));
        if (whole != plan_.last_message.end() && which + 1 == exchange["requests"].size()) {
          bytes = whole->second;
        }
        note_ids(call, bytes);
        client->put(grpc::framed(translated(call, bytes)));
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
    for (auto each = inside.first; each != inside.second; ++each) {
      if (each->second.after_step == index) {
        each->second.act(*client);
      }
    }
    ++index;
  }
  if (exchange["ended_by"] == "connection_closed") {
    world_.run_for(10s);
  } else if (exchange["ended_by"] != "client_cancel") {
    world_.run_until([&] { return client->ended(); }, 60s);
  }
  auto wrong = compare(exchange, *client);
  client->cancel();
  if (!plan_.at_once.contains(exchange.value("n", 0))) {
    world_.run_for(20ms);
  }
  return wrong;
}

namespace {

/// The client has cancelled as soon as it had what it wanted; what was on its way is unknown.
bool stopped_reading(const json& exchange) {
  const auto& timeline = exchange["timeline"];
  return timeline.size() >= 2 && timeline.back()[0] == timeline[timeline.size() - 2][0] &&
         exchange["call"].get<std::string>().ends_with("PersistentSubscriptions/Read");
}

}  // namespace

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
  // A connection that is closed ends its calls without a word.
  const bool cancelled =
      exchange["ended_by"] == "client_cancel" || exchange["ended_by"] == "connection_closed";
  expect_same("ended", cancelled ? "no" : "yes", got.ended() ? "yes" : "no");
  if (!cancelled) {
    expect_same("http status", exchange["response_headers"][":status"].dump(),
                std::to_string(got.status()));
    expect_same("status", exchange["status"].is_null() ? "" : exchange["status"].dump(),
                field("grpc-status"));
    if (exchange.contains("trailers_only")) {
      expect_same("trailers only", exchange["trailers_only"].dump(),
                  got.trailers_only() ? "true" : "false");
    }
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
  if (exchange["ended_by"] == "http") {
    return wrong;  // what came was no message
  }
  auto messages = got.messages();
  const auto& recorded = exchange["responses"];
  if (cancelled && stopped_reading(exchange) && messages.size() > recorded.size()) {
    messages.resize(recorded.size());
  }
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
    for (auto* both : {theirs.get(), ours.get()}) {
      // How often there was gossip is a matter of time.
      if (auto* read = dynamic_cast<es::streams::ReadResp*>(both);
          read != nullptr && read->has_last_stream_position() &&
          exchange["requests"].dump().contains("$mem-gossip")) {
        read->set_last_stream_position(1);
      }
      if (auto* gossip = dynamic_cast<es::gossip::ClusterInfo*>(both)) {
        std::ranges::sort(*gossip->mutable_members(), {}, &es::gossip::MemberInfo::state);
      }
    }
    const auto their_positions = take_what_differs(*theirs);
    const auto our_positions = take_what_differs(*ours);
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

}  // namespace verger::testing
