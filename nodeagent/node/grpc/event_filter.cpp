#include "nodeagent/node/grpc/event_filter.h"

#include "nodeagent/node/grpc/service_base.h"

namespace verger::node::rpc {
namespace {

using FilterOptions = event_store::client::streams::ReadReq::Options::FilterOptions;

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
  const bool by_stream = options.filter_case() == FilterOptions::kStreamIdentifier;
  const auto& expression = by_stream ? options.stream_identifier() : options.event_type();
  auto matcher = persistent::EventMatcher::make(
      {.by_stream = by_stream,
       .regex = expression.regex(),
       .prefixes = {expression.prefix().begin(), expression.prefix().end()}});
  if (!matcher) {
    return std::unexpected(grpc::handler_failed());
  }
  EventFilter filter(*std::move(matcher));
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

}  // namespace verger::node::rpc
