#include "nodeagent/node/memory_streams.h"

#include <cctype>

#include <nlohmann/json.hpp>

#include "nodeagent/node/gossip_entry.h"

namespace verger::node {
namespace {

using nlohmann::ordered_json;

/// As many as the server keeps of live events for a subscriber that is slow.
constexpr std::size_t kKeptForSubscribers = 32;

/// Its names are those of the server's own type.
ordered_json shown_member(const Member& member) {
  const auto entry = gossip_entry(member);
  ordered_json out;
  for (const auto& [name, value] : entry.items()) {
    auto shown = name == "esVersion" ? "ESVersion" : name;
    shown.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(shown.front())));
    out[shown] = value;
  }
  return out;
}

}  // namespace

void MemoryStreams::state_changed(api::NodeState state, Ticks now) {
  add(kNodeStateStream, "$NodeStateChanged", ordered_json{{"State", api::to_string(state)}}.dump(),
      now);
}

bool MemoryStreams::gossip_seen(const Uuid& self, const std::vector<Member>& members, Ticks now) {
  auto shown = ordered_json::array();
  auto compared = ordered_json::array();
  for (const auto& member : members) {
    shown.push_back(shown_member(member));
    compared.push_back(shown.back());
    for (const auto* moving :
         {"TimeStamp", "LastCommitPosition", "WriterCheckpoint", "ChaserCheckpoint"}) {
      compared.back().erase(moving);
    }
  }
  auto text = compared.dump();
  if (text == last_members_) {
    return false;
  }
  last_members_ = std::move(text);
  add(kGossipStream, "$GossipUpdated",
      ordered_json{{"NodeId", self.to_string()}, {"Members", std::move(shown)}}.dump(), now);
  return true;
}

void MemoryStreams::add(std::string_view stream, std::string_view type, const std::string& data,
                        Ticks now) {
  auto& kept = streams_[std::string(stream)];
  const auto bytes = as_bytes(data);
  const LogPosition position(++written_);
  kept.push_back({.stream = std::string(stream),
                  .number = EventNumber(kept.empty() ? 0 : kept.back().number.value() + 1),
                  .id = random_.uuid(),
                  .type = std::string(type),
                  .is_json = true,
                  .data = Bytes(bytes.begin(), bytes.end()),
                  .metadata = {},
                  .timestamp = now,
                  .commit_position = position,
                  .prepare_position = position});
  if (kept.size() > kKeptForSubscribers) {
    kept.pop_front();
  }
}

streams::StreamSlice MemoryStreams::read(std::string_view stream, EventNumber from,
                                         bool backwards) const {
  const auto last = last_number(stream);
  streams::StreamSlice slice{.events = {},
                             .next = EventNumber(backwards ? -1 : last.value() + 1),
                             .end_of_stream = true,
                             .last_event_number = last};
  if (last == kNoStream) {
    slice.status = streams::StreamStatus::kNoStream;
  } else if (backwards ? from >= last : from <= last) {
    slice.events.push_back(streams_.find(stream)->second.back());
  }
  return slice;
}

std::vector<streams::Event> MemoryStreams::events_from(std::string_view stream,
                                                       EventNumber from) const {
  std::vector<streams::Event> out;
  if (const auto found = streams_.find(stream); found != streams_.end()) {
    for (const auto& event : found->second) {
      if (event.number >= from) {
        out.push_back(event);
      }
    }
  }
  return out;
}

EventNumber MemoryStreams::last_number(std::string_view stream) const {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? kNoStream : found->second.back().number;
}

}  // namespace verger::node
