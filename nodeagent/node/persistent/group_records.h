#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nodeagent/node/persistent/consumers.h"

/// What the log holds of groups (docs/formats/grpc.md, "Persistent subscriptions").
namespace verger::node::persistent {

inline constexpr std::string_view kConfigStream = "$persistentSubscriptionConfig";
inline constexpr std::string_view kConfigType = "$PersistentConfig";
inline constexpr std::string_view kCheckpointType = "$SubscriptionCheckpoint";
inline constexpr std::string_view kLinkType = "$>";

std::string checkpoint_stream(const GroupKey& key);
std::string parked_stream(const GroupKey& key);

struct GroupConfig {
  GroupKey key{};
  GroupSettings settings{};
  friend bool operator==(const GroupConfig&, const GroupConfig&) = default;
};

/// All groups, in the order in which they were created: data of a `$PersistentConfig` event.
std::string config_json(const std::vector<GroupConfig>& groups, Ticks updated,
                        std::string_view updated_by);
/// Error kCorruption: no such document.
Result<std::vector<GroupConfig>> parse_config(ByteView json);

/// Data of a `$SubscriptionCheckpoint` event: a text in JSON.
std::string checkpoint_json(const SourcePosition& position);
std::optional<SourcePosition> parse_checkpoint(ByteView json, bool all);

/// Data and metadata of the link to a parked event.
std::string parked_link(const SourceEvent& event);
std::string parked_metadata(const SourceEvent& event, Ticks added, std::string_view reason);
/// Metadata of the parked stream once links below `before` were replayed.
std::string parked_stream_metadata(EventNumber before);

}  // namespace verger::node::persistent
