#include "nodeagent/node/persistent/consumers.h"

#include <algorithm>
#include <functional>

#include <nlohmann/json.hpp>

#include "engine/base/number_from_text.h"

namespace verger::node::persistent {
namespace {

/// As many as the server shares out among consumers.
constexpr std::size_t kBuckets = 1024;

/// The stream that an event was written to; of a link that is not resolved, of its target.
std::string_view source_stream(const SourceEvent& event) {
  if (event.target) {
    return event.target->stream;
  }
  const auto target = link_target(event.record);
  return target ? target->second : std::string_view(event.record.stream);
}

std::optional<std::string> correlation_of(const SourceEvent& event) {
  const auto& metadata = event.target ? event.target->metadata : event.record.metadata;
  const auto json = nlohmann::json::parse(as_text(metadata), nullptr, false);
  if (!json.is_object()) {
    return std::nullopt;
  }
  const auto found = json.find("$correlationId");
  return found != json.end() && found->is_string() ? std::optional(found->get<std::string>())
                                                   : std::nullopt;
}

}  // namespace

std::optional<std::pair<EventNumber, std::string_view>> link_target(const streams::Event& event) {
  const auto text = as_text(event.data);
  const auto at = text.find('@');
  if (event.type != "$>" || at == std::string_view::npos) {
    return std::nullopt;
  }
  const auto number = number_from_text<std::int64_t>(text.substr(0, at));
  if (!number || *number < 0) {
    return std::nullopt;
  }
  return std::pair(EventNumber(*number), text.substr(at + 1));
}

std::optional<std::set<MessageKey>> Consumers::remove(ConsumerId id) {
  const auto found = std::ranges::find(consumers_, id, &Consumer::id);
  if (found == consumers_.end()) {
    return std::nullopt;
  }
  auto lost = std::move(found->in_flight);
  consumers_.erase(found);
  return lost;
}

Consumer* Consumers::find(ConsumerId id) {
  const auto found = std::ranges::find(consumers_, id, &Consumer::id);
  return found == consumers_.end() ? nullptr : &*found;
}

bool Consumers::has_room() const {
  return std::ranges::any_of(consumers_, [](const Consumer& each) { return each.available() > 0; });
}

std::size_t Consumers::bucket_of(const SourceEvent& event) const {
  const auto correlation =
      strategy_ == Strategy::kPinnedByCorrelation ? correlation_of(event) : std::nullopt;
  return std::hash<std::string_view>{}(correlation ? std::string_view(*correlation)
                                                   : source_stream(event)) %
         kBuckets;
}

/// Each bucket ranks all consumers, and the first one has it: when a consumer comes or goes, only
/// buckets that become or were its own change hands.
Consumer* Consumers::pinned(std::size_t bucket) {
  constexpr std::uint64_t kOdd = 0x9E37'79B9'7F4A'7C15;
  const auto rank = [&](const Consumer& each) {
    auto mixed = (each.id + 1) * kOdd ^ (bucket + 1) * (kOdd << 1U | 1U);
    mixed ^= mixed >> 31U;
    mixed *= kOdd;
    return mixed ^ mixed >> 29U;
  };
  const auto first = std::ranges::max_element(consumers_, {}, rank);
  return first == consumers_.end() ? nullptr : &*first;
}

Consumer* Consumers::choose(const SourceEvent& event) {
  if (strategy_ == Strategy::kPinned || strategy_ == Strategy::kPinnedByCorrelation) {
    auto* const owner = pinned(bucket_of(event));
    return owner != nullptr && owner->available() > 0 ? owner : nullptr;
  }
  const auto found =
      std::ranges::find_if(consumers_, [](const Consumer& each) { return each.available() > 0; });
  if (found == consumers_.end()) {
    return nullptr;
  }
  auto* const chosen = &*found;
  if (strategy_ == Strategy::kRoundRobin) {
    consumers_.splice(consumers_.end(), consumers_, found);  // its next turn is the last
  }
  return chosen;
}

}  // namespace verger::node::persistent
