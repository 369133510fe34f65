#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "engine/streams/event_store.h"

namespace verger::node::persistent {

/// Where an event is in what a group reads: its number in the stream, or its place in $all.
/// Positions of one group are all of one kind, and ordered.
using SourcePosition = std::variant<EventNumber, streams::AllPosition>;

/// "6"; "C:60911/P:60911".
std::string to_text(const SourcePosition& position);
/// `all`: of $all. nullopt: not one of that kind.
std::optional<SourcePosition> parse_source_position(std::string_view text, bool all);

}  // namespace verger::node::persistent
