#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nodeagent/node/persistent/group_settings.h"

namespace verger::node::persistent {

/// An event as a group gets it, immutable from then on.
struct SourceEvent {
  streams::Event record{};
  SourcePosition position{};
  /// The record is a link that is resolved; then the event it points to, unless that is gone.
  bool is_link = false;
  std::optional<streams::Event> target{};
};
using EventPointer = std::shared_ptr<const SourceEvent>;

/// Of a link's data, "5@stream": number and stream. nullopt: not one.
std::optional<std::pair<EventNumber, std::string_view>> link_target(const streams::Event& event);

/// A message of a group. Replayed ones come after all others, each kind in order.
struct MessageKey {
  bool replayed = false;
  std::uint64_t number = 0;
  friend auto operator<=>(const MessageKey&, const MessageKey&) = default;
};

using ConsumerId = std::uint64_t;

/// A client that reads from the group.
struct Consumer {
  ConsumerId id = 0;
  std::string user{};
  std::string connection_name{};
  std::int32_t slots = 0;  ///< messages it takes without an answer
  std::set<MessageKey> in_flight{};
  std::int64_t total = 0;  ///< messages it was sent
  std::int64_t total_when_measured = 0;
  Monotonic since{0};

  [[nodiscard]] std::int32_t available() const {
    return slots - static_cast<std::int32_t>(in_flight.size());
  }
};

/// The consumers of one group, and which of them gets an event.
class Consumers {
 public:
  explicit Consumers(Strategy strategy) : strategy_(strategy) {}

  void add(Consumer consumer) { consumers_.push_back(std::move(consumer)); }
  /// What it had and did not answer is returned; nullopt: it is not here.
  std::optional<std::set<MessageKey>> remove(ConsumerId id);
  [[nodiscard]] std::size_t count() const { return consumers_.size(); }
  [[nodiscard]] const std::list<Consumer>& all() const { return consumers_; }
  std::list<Consumer>& all() { return consumers_; }
  Consumer* find(ConsumerId id);

  /// Whether anyone takes another message.
  [[nodiscard]] bool has_room() const;
  /// nullptr: the event has to wait, which others need not where consumers are pinned.
  Consumer* choose(const SourceEvent& event);

 private:
  [[nodiscard]] std::size_t bucket_of(const SourceEvent& event) const;
  Consumer* pinned(std::size_t bucket);

  Strategy strategy_;
  std::list<Consumer> consumers_;  ///< round robin: whose turn it is first
};

}  // namespace verger::node::persistent
