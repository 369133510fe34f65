#include "nodeagent/node/persistent/event_matcher.h"

#include <algorithm>

namespace verger::node::persistent {
namespace {

/// Names are short; the matcher's depth grows with the text, so of a monster the start counts.
constexpr std::size_t kMostMatchedName = 1024;

}  // namespace

Result<EventMatcher> EventMatcher::make(EventPattern pattern) {
  EventMatcher matcher;
  if (!pattern.regex.empty()) {
    try {
      matcher.regex_.emplace_back(pattern.regex);
    } catch (const std::regex_error& error) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("'{}' is no regular expression: {}", pattern.regex, error.what())};
    }
  }
  matcher.pattern_ = std::move(pattern);
  return matcher;
}

bool EventMatcher::keeps(const streams::Event& event) const {
  const auto text =
      std::string_view(pattern_.by_stream ? event.stream : event.type).substr(0, kMostMatchedName);
  if (!regex_.empty()) {
    return std::regex_search(text.begin(), text.end(), regex_.front());
  }
  return std::ranges::any_of(pattern_.prefixes,
                             [&](const std::string& each) { return text.starts_with(each); });
}

}  // namespace verger::node::persistent
