#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nodeagent/node/persistent/event_matcher.h"
#include "nodeagent/node/persistent/source_position.h"

namespace verger::node::persistent {

inline constexpr std::string_view kAllStream = "$all";

/// A group is known by what it reads, and its name, which may be empty.
struct GroupKey {
  std::string stream{};  ///< "$all" for all events
  std::string group{};
  [[nodiscard]] bool all() const { return stream == kAllStream; }
  /// "stream::group": in names of streams, and the subscription's id.
  [[nodiscard]] std::string id() const { return stream + "::" + group; }
  friend auto operator<=>(const GroupKey&, const GroupKey&) = default;
};

/// Who of several consumers gets an event.
enum class Strategy : std::uint8_t {
  kDispatchToSingle,     ///< the first one, until it has no room
  kRoundRobin,           ///< one after the other
  kPinned,               ///< always the same one for a stream
  kPinnedByCorrelation,  ///< always the same one for a $correlationId, or else a stream
};
std::string_view name_of(Strategy strategy);
std::optional<Strategy> strategy_of(std::string_view name);

/// Without defaults, as the server: what a client does not send is zero.
struct GroupSettings {
  bool resolve_links = false;
  bool extra_statistics = false;
  /// The first event that is delivered. -1, or (-1, -1): what is written from now on.
  SourcePosition start{EventNumber(0)};
  std::int32_t message_timeout_ms = 0;  ///< 0 or less: overdue at the next tick
  std::int32_t max_retry_count = 0;
  std::int32_t checkpoint_after_ms = 0;  ///< 0: none for its age
  std::int32_t min_checkpoint_count = 0;
  std::int32_t max_checkpoint_count = 0;
  std::int32_t max_subscriber_count = 0;  ///< 0: no limit
  std::int32_t live_buffer_size = 0;
  std::int32_t history_buffer_size = 0;
  std::int32_t read_batch_size = 0;
  Strategy strategy = Strategy::kRoundRobin;
  std::optional<EventPattern> filter{};  ///< of $all alone
  friend bool operator==(const GroupSettings&, const GroupSettings&) = default;

  [[nodiscard]] bool from_now_on() const;
};

/// What the server's refusal says of settings that it does not take; nullopt: they are good.
std::optional<std::string> problem_of(const GroupSettings& settings);

}  // namespace verger::node::persistent
