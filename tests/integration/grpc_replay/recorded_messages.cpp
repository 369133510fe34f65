#include "tests/integration/grpc_replay/recorded_messages.h"

#include <array>
#include <event_store/gossip.pb.h>
#include <event_store/monitoring.pb.h>
#include <event_store/operations.pb.h>
#include <event_store/persistent.pb.h>
#include <event_store/server_features.pb.h>
#include <event_store/streams.pb.h>
#include <event_store/users.pb.h>
#include <fstream>
#include <regex>
#include <set>

namespace verger::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using nlohmann::json;
namespace es = event_store::client;
namespace groups = event_store::client::persistent_subscriptions;
namespace users = event_store::client::users;

template <class Type>
std::unique_ptr<Message> make_empty() {
  return std::make_unique<Type>();
}
struct MethodsMessage {
  const char* method;
  std::unique_ptr<Message> (*make)();
};
constexpr std::array kOfGroupsAndUsers = {
    MethodsMessage{"PersistentSubscriptions/Read", make_empty<groups::ReadResp>},
    MethodsMessage{"PersistentSubscriptions/GetInfo", make_empty<groups::GetInfoResp>},
    MethodsMessage{"PersistentSubscriptions/List", make_empty<groups::ListResp>},
    MethodsMessage{"Users/Details", make_empty<users::DetailsResp>}};

/// Numbers and texts of whose fields only the presence counts.
const std::set<std::string> kSomeText = {"subscription_id", "scavenge_id", "address"};
const std::set<std::string> kSomeNumber = {"time_stamp", "port", "ticks_since_epoch"};
/// How quick a client was.
const std::set<std::string> kRates = {"average_items_per_second", "average_per_second",
                                      "count_since_last_measurement"};
/// Events that the server writes itself have other ids each time.
const std::set<std::string> kServersTypes = {
    "$metadata",    "$streamDeleted", "$PersistentConfig", "$SubscriptionCheckpoint",
    "$UserCreated", "$UserUpdated",   "$NodeStateChanged", "$GossipUpdated"};

/// Positions and times within a text.
std::string without_chance(const std::string& text) {
  static const std::regex positions(R"re(C:\d+/P:\d+)re");
  static const std::regex times(R"re("(added|updated)": "[^"]*")re");
  return std::regex_replace(std::regex_replace(text, positions, "C:some/P:some"), times,
                            R"re("$1": "some")re");
}

/// Of the JSON of a gossip: which members it has, of the whole and of each node.
std::string names_in(const std::string& text) {
  std::string out;
  const auto gossip = json::parse(text, nullptr, false);
  for (const auto& [name, value] : gossip.items()) {
    out += name + " ";
  }
  for (const auto& member : gossip.value("Members", json::array())) {
    for (const auto& [name, value] : member.items()) {
      out += name + " ";
    }
  }
  return out;
}

/// Of each service's own RecordedEvent.
void take_of_event(Message& message, const Reflection& reflection) {
  const auto* const descriptor = message.GetDescriptor();
  const auto* const metadata = descriptor->FindFieldByName("metadata");
  std::string type;
  for (int i = reflection.FieldSize(message, metadata) - 1; i >= 0; --i) {
    auto* const entry = reflection.MutableRepeatedMessage(&message, metadata, i);
    const auto* const key = entry->GetDescriptor()->FindFieldByName("key");
    const auto* const value = entry->GetDescriptor()->FindFieldByName("value");
    const auto name = entry->GetReflection()->GetString(*entry, key);
    if (name == "created") {
      entry->GetReflection()->SetString(entry, value, "some");
    } else if (name == "type") {
      type = entry->GetReflection()->GetString(*entry, value);
    }
  }
  const auto* const stream = descriptor->FindFieldByName("stream_identifier");
  const auto& identifier =
      dynamic_cast<const es::StreamIdentifier&>(reflection.GetMessage(message, stream));
  const bool parked = identifier.stream_name().ends_with("-parked");
  if (kServersTypes.contains(type) || parked) {
    reflection.MutableMessage(&message, descriptor->FindFieldByName("id"))->Clear();
  }
  if (type == "$GossipUpdated") {  // how often there was one is a matter of time
    reflection.ClearField(&message, descriptor->FindFieldByName("stream_revision"));
    const auto* const data = descriptor->FindFieldByName("data");
    reflection.SetString(&message, data, names_in(reflection.GetString(message, data)));
  }
  if (parked || type == "$PersistentConfig" || type == "$SubscriptionCheckpoint") {
    for (const auto* name : {"data", "custom_metadata"}) {
      const auto* const field = descriptor->FindFieldByName(name);
      reflection.SetString(&message, field, without_chance(reflection.GetString(message, field)));
    }
  }
}

void take(Message& message, std::vector<std::uint64_t>& positions) {
  const auto* const reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const auto* const field : fields) {
    const auto& name = field->name();
    if (name == "commit_position" || name == "prepare_position") {
      positions.push_back(reflection->GetUInt64(message, field));
      reflection->SetUInt64(&message, field, 1);
    } else if (kSomeNumber.contains(name)) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
        reflection->SetInt64(&message, field, 1);
      } else {
        reflection->SetUInt32(&message, field, 1);
      }
    } else if (kSomeText.contains(name)) {
      reflection->SetString(&message, field, "some");
    } else if (kRates.contains(name)) {
      reflection->ClearField(&message, field);
    } else if (name == "instance_id") {
      reflection->MutableMessage(&message, field)->Clear();
    } else if (name.ends_with("_event_position")) {
      reflection->SetString(&message, field, without_chance(reflection->GetString(message, field)));
    } else if (field->is_map()) {
      continue;
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (field->is_repeated()) {
        for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
          take(*reflection->MutableRepeatedMessage(&message, field, i), positions);
        }
      } else {
        take(*reflection->MutableMessage(&message, field), positions);
      }
    }
  }
  if (message.GetDescriptor()->name() == "RecordedEvent") {
    take_of_event(message, *reflection);
  }
}

}  // namespace

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
  for (auto& [end, make] : kOfGroupsAndUsers) {
    if (is(end)) {
      return make();
    }
  }
  if (is("StartScavenge") || is("StopScavenge")) {
    return std::make_unique<es::operations::ScavengeResp>();
  }
  return std::make_unique<es::Empty>();
}

std::vector<std::uint64_t> take_what_differs(Message& message) {
  std::vector<std::uint64_t> positions;
  take(message, positions);
  return positions;
}

}  // namespace verger::testing
