#include "nodeagent/node/grpc/event_filter.h"

#include <algorithm>

#include "nodeagent/node/grpc/service_base.h"

namespace verger::node::rpc {
namespace {

using FilterOptions = event_store::client::streams::ReadReq::Options::FilterOptions;

/// Names are short; the matcher's depth grows with the text, so of a monster the start counts.
constexpr std::size_t kMostFilteredName = 1024;
/// Of a filter that names no window; as many as a page of an unfiltered read has.
constexpr std::size_t kPageWindow = 32;

/// How the server shows a filter that it refuses.
std::string shown(const FilterOptions& options) {
  std::string members;
  if (options.window_case() == FilterOptions::kMax) {
    members = fmt::format("\"max\": {}", options.max());
  } else if (options.window_case() == FilterOptions::kCount) {
    members = "\"count\": { }";
  }
  if (options.checkpointintervalmultiplier() != 0) {
    members += fmt::format("{}\"checkpointIntervalMultiplier\": {}", members.empty() ? "" : ", ",
                           options.checkpointintervalmultiplier());
  }
  return members.empty() ? "{ }" : fmt::format("{{ {} }}", members);
}

}  // namespace

std::expected<EventFilter, grpc::Status> EventFilter::parse(const FilterOptions& options) {
  constexpr const char* kType = "ReadReq+Types+Options+Types+FilterOptions";
  if (options.filter_case() == FilterOptions::FILTER_NOT_SET) {
    return std::unexpected(invalid_argument(
        fmt::format("'{}' is not a valid EventStore.Client.Streams.{}", shown(options), kType)));
  }
  EventFilter filter;
  filter.by_stream_ = options.filter_case() == FilterOptions::kStreamIdentifier;
  const auto& expression = filter.by_stream_ ? options.stream_identifier() : options.event_type();
  if (!expression.regex().empty()) {
    try {
      filter.patterns_.emplace_back(expression.regex());
    } catch (const std::regex_error&) {
      return std::unexpected(grpc::handler_failed());
    }
  } else {
    filter.prefixes_.assign(expression.prefix().begin(), expression.prefix().end());
  }
  switch (options.window_case()) {
    case FilterOptions::kMax:
      filter.window_ = options.max();
      break;
    case FilterOptions::kCount:
      filter.window_ = kPageWindow;
      break;
    case FilterOptions::WINDOW_NOT_SET:
      return std::unexpected(no_case(fmt::format("{}+WindowOneofCase", kType)));
  }
  filter.multiplier_ = options.checkpointintervalmultiplier();
  return filter;
}

bool EventFilter::keeps(const streams::Event& event) const {
  const auto text =
      std::string_view(by_stream_ ? event.stream : event.type).substr(0, kMostFilteredName);
  return std::ranges::any_of(prefixes_,
                             [&](const std::string& each) { return text.starts_with(each); }) ||
         std::ranges::any_of(patterns_, [&](const std::regex& each) {
           return std::regex_search(text.begin(), text.end(), each);
         });
}

}  // namespace verger::node::rpc
