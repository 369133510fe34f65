#pragma once

#include <cstdint>
#include <event_store/streams.pb.h>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "engine/streams/event_store.h"
#include "nodeagent/node/grpc/event_filter.h"
#include "nodeagent/node/grpc/service_base.h"

/// What reads and subscriptions share.
namespace verger::node::rpc {

/// As many events as the server reads at a time.
inline constexpr std::size_t kPage = 32;

/// Where a read begins; kNothing: the request does not say it.
enum class Begin : std::uint8_t { kNothing, kStart, kEnd, kAt };

/// A request that was found good.
struct ReadPlan {
  std::string stream;  ///< empty: $all
  Begin begin = Begin::kNothing;
  EventNumber number{0};  ///< kAt, of a stream
  streams::AllPosition position{};
  bool backwards = false;
  bool resolve_links = false;
  bool ids_as_text = false;
  bool positions = false;  ///< first and last of the stream are sent
  std::uint64_t count = 0;
  std::optional<EventFilter> filter{};
};

/// One call of Read. Held by its coroutine.
struct EventReader {
  NodeCall at;
  ReadPlan plan;

  /// `event`, with its link's target where that is wanted. False: the client is gone.
  net::awaitable<bool> send(streams::Event event) const;
  [[nodiscard]] event_store::client::streams::ReadResp response_for(streams::Event event) const;
  net::awaitable<bool> send_caught_up() const;
  net::awaitable<bool> send_checkpoint(streams::AllPosition position) const;
  /// A page of the plan's stream, of the database or in memory.
  [[nodiscard]] Result<streams::StreamSlice> page(EventNumber from, std::size_t size) const;
  /// Lets the node do other work between two pages.
  [[nodiscard]] net::awaitable<void> pause() const;
  grpc::Status read_failed(const Error& error) const;
};

net::awaitable<grpc::Status> read_stream(std::shared_ptr<const EventReader> reader);
net::awaitable<grpc::Status> read_all(std::shared_ptr<const EventReader> reader);
net::awaitable<grpc::Status> subscribe(std::shared_ptr<const EventReader> reader);

/// Whether a record begins there, or once did, or the log ends there.
Result<bool> is_position(const Core& core, LogPosition position);

}  // namespace verger::node::rpc
