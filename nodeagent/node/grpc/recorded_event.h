#pragma once

#include <string>

#include "engine/streams/event_store.h"
#include "nodeagent/node/grpc/service_base.h"

namespace verger::node::rpc {

/// An event as it goes over the wire. `Recorded`: the message of the same name, which each service
/// has of its own.
template <class Recorded>
void write_event(const streams::Event& event, bool ids_as_text, Recorded& out) {
  write_uuid(event.id, ids_as_text, *out.mutable_id());
  out.mutable_stream_identifier()->set_stream_name(event.stream);
  out.set_stream_revision(static_cast<std::uint64_t>(event.number.value()));
  const auto prepare = static_cast<std::uint64_t>(event.prepare_position.value());
  out.set_prepare_position(prepare);
  out.set_commit_position(event.commit_position.value() < 0
                              ? prepare
                              : static_cast<std::uint64_t>(event.commit_position.value()));
  auto& metadata = *out.mutable_metadata();
  metadata["type"] = event.type;
  metadata["created"] = std::to_string(event.timestamp.value() - kUnixEpoch.value());
  metadata["content-type"] = event.is_json ? "application/json" : "application/octet-stream";
  out.set_custom_metadata(std::string(as_text(event.metadata)));
  out.set_data(std::string(as_text(event.data)));
}

/// A revision as clients send it; 2^64-1 is -1. nullopt: one that is none.
inline std::optional<std::int64_t> event_number(std::uint64_t revision) {
  if (revision == std::numeric_limits<std::uint64_t>::max()) {
    return -1;
  }
  return revision <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())
             ? std::optional(static_cast<std::int64_t>(revision))
             : std::nullopt;
}

}  // namespace verger::node::rpc
