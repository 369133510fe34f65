#pragma once

#include <cstddef>
#include <event_store/streams.pb.h>
#include <expected>

#include "engine/streams/event_store.h"
#include "nodeagent/grpc/status.h"
#include "nodeagent/node/persistent/event_matcher.h"

namespace verger::node::rpc {

/// Which events a filtered read of $all delivers.
class EventFilter {
 public:
  /// The error ends the call.
  static std::expected<EventFilter, grpc::Status> parse(
      const event_store::client::streams::ReadReq::Options::FilterOptions& options);

  [[nodiscard]] bool keeps(const streams::Event& event) const { return matcher_.keeps(event); }
  /// How many events are looked at for a page.
  [[nodiscard]] std::size_t window() const { return window_; }
  /// Of a subscription's checkpoints: so many windows lie between two of them.
  [[nodiscard]] std::uint64_t multiplier() const { return multiplier_; }

 private:
  explicit EventFilter(persistent::EventMatcher matcher) : matcher_(std::move(matcher)) {}

  persistent::EventMatcher matcher_;
  std::size_t window_ = 0;
  std::uint64_t multiplier_ = 0;
};

}  // namespace verger::node::rpc
