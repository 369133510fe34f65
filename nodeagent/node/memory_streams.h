#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "engine/base/random.h"
#include "engine/streams/event_store.h"
#include "nodeagent/api/node.h"
#include "nodeagent/node/gossip.h"

namespace verger::node {

inline constexpr std::string_view kNodeStateStream = "$mem-node-state";
inline constexpr std::string_view kGossipStream = "$mem-gossip";

/// The streams that a node has in memory alone: what it was, and whom it knew. They begin with the
/// process and go with it, are in no log, and nothing can be written to them. A read shows the
/// newest event of a stream; subscribers get each. One thread.
class MemoryStreams {
 public:
  explicit MemoryStreams(Random& random) : random_(random) {}

  static bool has(std::string_view stream) {
    return stream == kNodeStateStream || stream == kGossipStream;
  }

  /// "$NodeStateChanged": {"State"}.
  void state_changed(api::NodeState state, Ticks now);
  /// "$GossipUpdated": {"NodeId", "Members"}, where anything but time stamps and positions in the
  /// log differs from the last one. True: it does.
  bool gossip_seen(const Uuid& self, const std::vector<Member>& members, Ticks now);

  /// As reads of a stream of the database: forwards from the newest event at the earliest.
  [[nodiscard]] streams::StreamSlice read(std::string_view stream, EventNumber from,
                                          bool backwards) const;
  /// Events from this number on that are still here; of those that are gone there is no trace.
  [[nodiscard]] std::vector<streams::Event> events_from(std::string_view stream,
                                                        EventNumber from) const;
  /// kNoStream: there is none yet.
  [[nodiscard]] EventNumber last_number(std::string_view stream) const;

 private:
  void add(std::string_view stream, std::string_view type, const std::string& data, Ticks now);

  Random& random_;
  std::map<std::string, std::deque<streams::Event>, std::less<>> streams_;
  std::int64_t written_ = 0;  ///< to all streams: the positions of events
  std::string last_members_;
};

}  // namespace verger::node
