#include "nodeagent/node/grpc/group_requests.h"

#include <algorithm>
#include <limits>

#include "nodeagent/node/grpc/recorded_event.h"

namespace verger::node::rpc {
namespace {

using ::verger::grpc::Code;
using ::verger::grpc::Status;
namespace groups = event_store::client::persistent_subscriptions;
using persistent::GroupConfig;
using persistent::SourcePosition;
using streams::AllPosition;

Status no_group_case(std::string_view type) {
  return invalid_argument(
      fmt::format("'None' is not a valid EventStore.Client.PersistentSubscriptions.{}", type));
}

Status reserved_stream(std::string_view kind) {
  return {.code = Code::kUnknown,
          .message = fmt::format("Envelope callback expected either {0}PersistentSubscriptionToAll"
                                 "Completed or NotHandled, received {0}PersistentSubscriptionTo"
                                 "StreamCompleted instead",
                                 kind)};
}

/// What differs between the two requests besides their types.
template <class Request>
struct Names;
template <>
struct Names<groups::CreateReq> {
  static constexpr std::string_view kVerb = "Create";
  static constexpr std::string_view kType = "CreateReq";
};
template <>
struct Names<groups::UpdateReq> {
  static constexpr std::string_view kVerb = "Update";
  static constexpr std::string_view kType = "UpdateReq";
};

template <class Request>
std::expected<void, Status> read_stream_options(const typename Request::Options& options,
                                                GroupConfig& config) {
  using Stream = typename Request::StreamOptions;
  const bool old_form = !options.has_stream();
  auto stream = old_form ? stream_name(options.has_stream_identifier(), options.stream_identifier())
                         : stream_name(options.stream().has_stream_identifier(),
                                       options.stream().stream_identifier());
  if (!stream) {
    return std::unexpected(grpc::handler_failed());
  }
  config.key.stream = *std::move(stream);
  std::uint64_t revision = 0;
  if (old_form) {
    revision = options.settings().revision();
  } else {
    switch (options.stream().revision_option_case()) {
      case Stream::kRevision:
        revision = options.stream().revision();
        break;
      case Stream::kStart:
        break;
      case Stream::kEnd:
        revision = std::numeric_limits<std::uint64_t>::max();
        break;
      default:
        return std::unexpected(no_group_case(
            fmt::format("{}+Types+StreamOptions+RevisionOptionOneofCase", Names<Request>::kType)));
    }
  }
  const auto start = event_number(revision);
  if (!start) {
    return std::unexpected(grpc::handler_failed());
  }
  config.settings.start = EventNumber(*start);
  if (config.key.all()) {
    return std::unexpected(reserved_stream(Names<Request>::kVerb));
  }
  return {};
}

template <class All>
std::expected<SourcePosition, Status> start_in_all(const All& all, const Status& missing) {
  switch (all.all_option_case()) {
    case All::kPosition: {
      const auto commit = event_number(all.position().commit_position());
      const auto prepare = event_number(all.position().prepare_position());
      if (!commit || !prepare || *commit < *prepare) {
        return std::unexpected(grpc::handler_failed());
      }
      return AllPosition{LogPosition(*commit), LogPosition(*prepare)};
    }
    case All::kStart:
      return AllPosition{LogPosition(0), LogPosition(0)};
    case All::kEnd:
      return AllPosition{LogPosition(-1), LogPosition(-1)};
    default:
      return std::unexpected(missing);
  }
}

std::expected<void, Status> read_filter(const groups::CreateReq::AllOptions& all,
                                        GroupConfig& config) {
  using Filter = groups::CreateReq::AllOptions::FilterOptions;
  if (!all.has_filter()) {
    return {};
  }
  if (all.filter().filter_case() == Filter::FILTER_NOT_SET) {
    return std::unexpected(grpc::handler_failed());
  }
  const bool by_stream = all.filter().filter_case() == Filter::kStreamIdentifier;
  const auto& expression = by_stream ? all.filter().stream_identifier() : all.filter().event_type();
  config.settings.filter = persistent::EventPattern{
      .by_stream = by_stream,
      .regex = expression.regex(),
      .prefixes = {expression.prefix().begin(), expression.prefix().end()}};
  if (!persistent::EventMatcher::make(*config.settings.filter)) {
    return std::unexpected(grpc::handler_failed());
  }
  return {};
}

std::int32_t milliseconds_of(std::int64_t ticks) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(
      ticks / kTicksPerMillisecond, std::numeric_limits<std::int32_t>::min(),
      std::numeric_limits<std::int32_t>::max()));
}

template <class Settings>
std::expected<void, Status> read_settings(const Settings& from, persistent::GroupSettings& out) {
  out.resolve_links = from.resolve_links();
  out.extra_statistics = from.extra_statistics();
  out.message_timeout_ms = from.message_timeout_case() == Settings::kMessageTimeoutTicks
                               ? milliseconds_of(from.message_timeout_ticks())
                               : from.message_timeout_ms();
  out.checkpoint_after_ms = from.checkpoint_after_case() == Settings::kCheckpointAfterTicks
                                ? milliseconds_of(from.checkpoint_after_ticks())
                                : from.checkpoint_after_ms();
  out.max_retry_count = from.max_retry_count();
  out.min_checkpoint_count = from.min_checkpoint_count();
  out.max_checkpoint_count = from.max_checkpoint_count();
  out.max_subscriber_count = from.max_subscriber_count();
  out.live_buffer_size = from.live_buffer_size();
  out.history_buffer_size = from.history_buffer_size();
  out.read_batch_size = from.read_batch_size();
  const auto& name = groups::ConsumerStrategy_IsValid(from.named_consumer_strategy())
                         ? groups::ConsumerStrategy_Name(from.named_consumer_strategy())
                         : std::string();
  const auto strategy = persistent::strategy_of(name);
  if (!strategy) {
    return std::unexpected(grpc::handler_failed());
  }
  out.strategy = *strategy;
  return {};
}

}  // namespace

std::expected<GroupConfig, Status> group_config(const groups::CreateReq::Options& options) {
  GroupConfig config{.key = {.group = options.group_name()}};
  if (!options.has_settings()) {
    return std::unexpected(grpc::handler_failed());
  }
  if (options.has_all()) {
    config.key.stream = persistent::kAllStream;
    const auto start =
        start_in_all(options.all(), no_group_case("CreateReq+Types+AllOptions+AllOptionOneofCase"));
    if (!start) {
      return std::unexpected(start.error());
    }
    config.settings.start = *start;
    if (auto filtered = read_filter(options.all(), config); !filtered) {
      return std::unexpected(filtered.error());
    }
  } else if (auto read = read_stream_options<groups::CreateReq>(options, config); !read) {
    return std::unexpected(read.error());
  }
  if (auto read = read_settings(options.settings(), config.settings); !read) {
    return std::unexpected(read.error());
  }
  if (const auto& name = options.settings().consumer_strategy(); !name.empty()) {
    const auto strategy = persistent::strategy_of(name);
    if (!strategy) {
      return std::unexpected(
          group_status({SubscriptionError::Code::kFailed,
                        fmt::format("Consumer strategy {} does not exist.", name)},
                       config.key));
    }
    config.settings.strategy = *strategy;
  }
  return config;
}

std::expected<GroupConfig, Status> group_config(const groups::UpdateReq::Options& options) {
  GroupConfig config{.key = {.group = options.group_name()}};
  if (!options.has_settings()) {
    return std::unexpected(grpc::handler_failed());
  }
  if (options.has_all()) {
    config.key.stream = persistent::kAllStream;
    const auto start = start_in_all(options.all(), grpc::handler_failed());
    if (!start) {
      return std::unexpected(start.error());
    }
    config.settings.start = *start;
  } else if (auto read = read_stream_options<groups::UpdateReq>(options, config); !read) {
    return std::unexpected(read.error());
  }
  if (auto read = read_settings(options.settings(), config.settings); !read) {
    return std::unexpected(read.error());
  }
  return config;
}

Status group_status(const SubscriptionError& error, const persistent::GroupKey& key) {
  const auto with = [&](Code code, std::string text, const char* exception) {
    return Status{.code = code,
                  .message = std::move(text),
                  .metadata = {{"exception", exception},
                               {"stream-name", key.stream},
                               {"group-name", key.group},
                               {"reason", error.reason}}};
  };
  switch (error.code) {
    case SubscriptionError::Code::kNotReady:
      return not_ready();
    case SubscriptionError::Code::kNotFound:
      return with(
          Code::kNotFound,
          fmt::format("Subscription group {} on stream {} does not exist.", key.group, key.stream),
          "persistent-subscription-does-not-exist");
    case SubscriptionError::Code::kExists:
      return with(Code::kAlreadyExists,
                  fmt::format("Subscription group {} on stream {} exists.", key.group, key.stream),
                  "persistent-subscription-exists");
    case SubscriptionError::Code::kTooManyConsumers:
      return with(
          Code::kFailedPrecondition,
          fmt::format("Maximum subscriptions reached for subscription group {} on stream {}.",
                      key.group, key.stream),
          "maximum-subscribers-reached");
    case SubscriptionError::Code::kTimeout:
      return {.code = Code::kAborted, .message = "Operation timed out: Forwarding timeout"};
    case SubscriptionError::Code::kFailed:
      break;
  }
  return with(Code::kInternal,
              fmt::format("Subscription group {} on stream {} failed: '{}'", key.group, key.stream,
                          error.reason),
              "persistent-subscription-failed");
}

Status group_dropped(const persistent::GroupKey& key) {
  return {.code = Code::kCancelled,
          .message =
              fmt::format("Subscription group {} on stream {} was dropped.", key.group, key.stream),
          .metadata = {{"exception", "persistent-subscription-dropped"},
                       {"stream-name", key.stream},
                       {"group-name", key.group}}};
}

void write_info(const persistent::Group& group, Monotonic now, groups::SubscriptionInfo& out) {
  const auto status = group.status();
  const auto& settings = group.settings();
  const auto rate = [&](std::int64_t total, Monotonic since) {
    const auto seconds = std::max<std::int64_t>(
        std::chrono::duration_cast<std::chrono::seconds>(now - since).count(), 1);
    return static_cast<std::int32_t>(total / seconds);
  };
  const auto count = [](std::size_t size) { return static_cast<std::int32_t>(size); };
  out.set_event_source(group.key().stream);
  out.set_group_name(group.key().group);
  out.set_status(status.status);
  std::size_t in_flight = 0;
  for (const auto& consumer : group.consumers().all()) {
    auto& entry = *out.add_connections();
    entry.set_username(consumer.user);
    entry.set_average_items_per_second(rate(consumer.total, consumer.since));
    entry.set_total_items(consumer.total);
    entry.set_count_since_last_measurement(consumer.total - consumer.total_when_measured);
    entry.set_available_slots(consumer.available());
    entry.set_in_flight_messages(count(consumer.in_flight.size()));
    entry.set_connection_name(consumer.connection_name);
    in_flight += consumer.in_flight.size();
  }
  out.set_average_per_second(rate(status.total, status.since));
  out.set_total_items(status.total);
  out.set_count_since_last_measurement(status.total - status.total_when_measured);
  if (status.last_checkpoint) {
    out.set_last_checkpointed_event_position(persistent::to_text(*status.last_checkpoint));
  }
  if (status.last_known) {
    out.set_last_known_event_position(persistent::to_text(*status.last_known));
  }
  out.set_resolve_link_tos(settings.resolve_links);
  out.set_start_from(persistent::to_text(settings.start));
  out.set_message_timeout_milliseconds(settings.message_timeout_ms);
  out.set_extra_statistics(settings.extra_statistics);
  out.set_max_retry_count(settings.max_retry_count);
  out.set_live_buffer_size(settings.live_buffer_size);
  out.set_buffer_size(settings.history_buffer_size);
  out.set_read_batch_size(settings.read_batch_size);
  out.set_check_point_after_milliseconds(settings.checkpoint_after_ms);
  out.set_min_check_point_count(settings.min_checkpoint_count);
  out.set_max_check_point_count(settings.max_checkpoint_count);
  out.set_read_buffer_count(count(status.buffered));
  out.set_live_buffer_count(static_cast<std::int64_t>(status.live_waiting));
  out.set_retry_buffer_count(count(status.retries));
  out.set_total_in_flight_messages(count(in_flight));
  out.set_outstanding_messages_count(count(status.outstanding));
  out.set_named_consumer_strategy(std::string(name_of(settings.strategy)));
  out.set_max_subscriber_count(settings.max_subscriber_count);
  out.set_parked_message_count(status.parked);
}

}  // namespace verger::node::rpc
