#pragma once

#include <expected>
#include <regex>
#include <string>
#include <vector>

#include "engine/streams/event_store.h"

namespace verger::node::persistent {

/// Which events of $all are wanted: by their stream's name or their type.
struct EventPattern {
  bool by_stream = false;
  std::string regex{};  ///< empty: the prefixes count
  std::vector<std::string> prefixes{};
  friend bool operator==(const EventPattern&, const EventPattern&) = default;
};

/// An EventPattern, ready to be applied. Of a name the first 1024 bytes are compared.
class EventMatcher {
 public:
  /// Error kInvalidArgument: no regular expression.
  static Result<EventMatcher> make(EventPattern pattern);
  [[nodiscard]] bool keeps(const streams::Event& event) const;

 private:
  EventPattern pattern_;
  std::vector<std::regex> regex_;  ///< one at most
};

}  // namespace verger::node::persistent
