// Streams: Read, of a stream or of $all. Subscriptions are in streams_subscribe.cpp.
#include <algorithm>

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "nodeagent/node/grpc/event_reader.h"
#include "nodeagent/node/grpc/proposed_events.h"
#include "nodeagent/node/persistent/consumers.h"

namespace verger::node::rpc {
namespace {

using ::verger::grpc::Code;
using ::verger::grpc::Status;
namespace pb = event_store::client::streams;
using Options = pb::ReadReq::Options;

/// Records that are looked at in one go.
constexpr std::size_t kSlice = 256;

/// The names of the server's texts.
std::string combination(const Options& options) {
  const auto* stream = options.stream_option_case() == Options::kAll ? "All" : "Stream";
  const auto* count = options.count_option_case() == Options::kCount          ? "Count"
                      : options.count_option_case() == Options::kSubscription ? "Subscription"
                                                                              : "None";
  const auto* filter = options.filter_option_case() == Options::kFilter     ? "Filter"
                       : options.filter_option_case() == Options::kNoFilter ? "NoFilter"
                                                                            : "None";
  const auto direction = options.read_direction() == Options::Forwards ? std::string("Forwards")
                         : options.read_direction() == Options::Backwards
                             ? std::string("Backwards")
                             : std::to_string(options.read_direction());
  return fmt::format("({}, {}, {}, {})", stream, count, direction, filter);
}

bool is_valid_combination(const Options& options) {
  const bool all = options.stream_option_case() == Options::kAll;
  const bool subscription = options.count_option_case() == Options::kSubscription;
  const bool forwards = options.read_direction() == Options::Forwards;
  return options.count_option_case() != Options::COUNT_OPTION_NOT_SET &&
         options.filter_option_case() != Options::FILTER_OPTION_NOT_SET &&
         (forwards || (options.read_direction() == Options::Backwards && !subscription)) &&
         (all || options.filter_option_case() == Options::kNoFilter);
}

std::expected<void, Status> plan_stream(const Options::StreamOptions& options, ReadPlan& plan) {
  switch (options.revision_option_case()) {
    case Options::StreamOptions::kRevision: {
      const auto number = event_number(options.revision());
      if (!number) {
        return std::unexpected(grpc::handler_failed());
      }
      plan.begin = *number < 0 ? Begin::kEnd : Begin::kAt;
      plan.number = EventNumber(*number);
      break;
    }
    case Options::StreamOptions::kStart:
      plan.begin = Begin::kStart;
      break;
    case Options::StreamOptions::kEnd:
      plan.begin = Begin::kEnd;
      break;
    case Options::StreamOptions::REVISION_OPTION_NOT_SET:
      break;
  }
  return {};
}

std::expected<void, Status> plan_all(const Options::AllOptions& options, ReadPlan& plan) {
  switch (options.all_option_case()) {
    case Options::AllOptions::kPosition: {
      const auto commit = event_number(options.position().commit_position());
      const auto prepare = event_number(options.position().prepare_position());
      if (!commit || !prepare || *commit < *prepare) {
        return std::unexpected(grpc::handler_failed());
      }
      plan.begin = *commit < 0 ? Begin::kEnd : Begin::kAt;
      plan.position = {LogPosition(*commit), LogPosition(*prepare)};
      break;
    }
    case Options::AllOptions::kStart:
      plan.begin = Begin::kStart;
      break;
    case Options::AllOptions::kEnd:
      plan.begin = Begin::kEnd;
      break;
    case Options::AllOptions::ALL_OPTION_NOT_SET:
      break;
  }
  return {};
}

/// The checks in the server's order; the error ends the call.
std::expected<ReadPlan, Status> plan_read(const NodeCall& at, const Options& options) {
  ReadPlan plan;
  if (!options.has_uuid_option()) {
    // With its leading space, which keeps some clients from seeing the text at all.
    return std::unexpected(
        invalid_argument(" `uuidOption` is a required argument of type "
                         "EventStore.Client.Streams.ReadReq+Types+Options+Types+UUIDOption"));
  }
  plan.ids_as_text = options.uuid_option().content_case() == Options::UUIDOption::kString;
  const bool all = options.stream_option_case() == Options::kAll;
  if (!all && options.stream_option_case() != Options::kStream) {
    return std::unexpected(no_case("ReadReq+Types+Options+StreamOptionOneofCase"));
  }
  if (!all) {
    auto name =
        stream_name(options.stream().has_stream_identifier(), options.stream().stream_identifier());
    if (!name) {
      return std::unexpected(at.core->options.insecure ? grpc::handler_failed() : access_denied());
    }
    plan.stream = *std::move(name);
  }
  if (!may(*at.core, at.caller, all ? "$all" : plan.stream, StreamAction::kRead)) {
    return std::unexpected(access_denied());
  }
  if (!is_valid_combination(options)) {
    return std::unexpected(
        invalid_argument(fmt::format("The combination of {} is invalid.", combination(options))));
  }
  if (auto planned = all ? plan_all(options.all(), plan) : plan_stream(options.stream(), plan);
      !planned) {
    return std::unexpected(planned.error());
  }
  if (options.has_filter()) {
    auto filter = EventFilter::parse(options.filter());
    if (!filter) {
      return std::unexpected(filter.error());
    }
    if (options.has_subscription() && filter->multiplier() == 0) {
      return std::unexpected(grpc::handler_failed());
    }
    plan.filter = *std::move(filter);
  }
  plan.backwards = options.read_direction() == Options::Backwards;
  plan.resolve_links = options.resolve_links();
  plan.positions = options.control_option().compatibility() >= 1;
  plan.count = options.count();
  return plan;
}

/// Until the client cancels: the server looks for ever where a page has no room.
net::awaitable<Status> never_answer(std::shared_ptr<const EventReader> reader) {
  const auto& core = reader->at.core;
  while (!reader->at.call->cancelled() && core->serving()) {
    co_await core->env.timers.sleep_for(core->options.timings.tick);
  }
  co_return grpc::client_gone();
}

}  // namespace

pb::ReadResp EventReader::response_for(streams::Event event) const {
  pb::ReadResp response;
  auto& out = *response.mutable_event();
  if (event.commit_position.value() < 0) {
    out.mutable_no_position();
  } else {
    out.set_commit_position(static_cast<std::uint64_t>(event.commit_position.value()));
  }
  const auto target = plan.resolve_links ? persistent::link_target(event) : std::nullopt;
  if (!target) {
    write_event(event, plan.ids_as_text, *out.mutable_event());
    return response;
  }
  // Of a target that is gone only the link is left.
  const auto found = target->second.empty()
                         ? Result<streams::StreamSlice>(streams::StreamSlice{})
                         : at.core->db().read_forward(target->second, target->first, 1);
  if (found && !found->events.empty() && found->events.front().number == target->first) {
    write_event(found->events.front(), plan.ids_as_text, *out.mutable_event());
  }
  write_event(event, plan.ids_as_text, *out.mutable_link());
  return response;
}

net::awaitable<bool> EventReader::send(streams::Event event) const {
  co_return co_await at.call->write(response_for(std::move(event)));
}

net::awaitable<bool> EventReader::send_caught_up() const {
  pb::ReadResp response;
  response.mutable_caught_up();
  co_return co_await at.call->write(response);
}

net::awaitable<bool> EventReader::send_checkpoint(streams::AllPosition position) const {
  pb::ReadResp response;
  auto& checkpoint = *response.mutable_checkpoint();
  checkpoint.set_commit_position(static_cast<std::uint64_t>(position.commit.value()));
  checkpoint.set_prepare_position(static_cast<std::uint64_t>(position.prepare.value()));
  co_return co_await at.call->write(response);
}

Result<streams::StreamSlice> EventReader::page(EventNumber from, std::size_t size) const {
  if (MemoryStreams::has(plan.stream)) {
    return at.core->memory_streams.read(plan.stream, from, plan.backwards);
  }
  return plan.backwards ? at.core->db().read_backward(plan.stream, from, size)
                        : at.core->db().read_forward(plan.stream, from, size);
}

net::awaitable<void> EventReader::pause() const {
  return net::post(at.core->env.executor, net::use_awaitable);
}

Status EventReader::read_failed(const Error& error) const {
  at.core->env.log.error("read failed", {{"node", at.core->self}, {"reason", error.message}});
  return grpc::handler_failed();
}

Result<bool> is_position(const Core& core, LogPosition position) {
  const auto chunk = core.log().chunk_at(position);
  if (position == core.db().committed() || (chunk != nullptr && chunk->header().scavenged)) {
    return true;  // what a scavenge removed was a position once: the next record counts
  }
  return core.log().has_record_at(position);
}

net::awaitable<Status> read_stream(std::shared_ptr<const EventReader> reader) {
  const auto& plan = reader->plan;
  const auto& call = *reader->at.call;
  const Status error{.code = Code::kUnknown, .message = "Unexpected ReadStreamResult: Error"};
  auto left = plan.count;
  if (left == 0 || (plan.begin == Begin::kEnd && !plan.backwards)) {
    co_return error;
  }
  auto from = plan.begin == Begin::kAt    ? plan.number
              : plan.begin == Begin::kEnd ? kDeletedStream
                                          : EventNumber(0);
  bool first_page = true;
  while (true) {
    if (const auto elsewhere = not_the_leader(*reader->at.core, call.head())) {
      co_return *elsewhere;
    }
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kPage, left));
    auto slice = reader->page(from, size);
    if (!slice) {
      co_return reader->read_failed(slice.error());
    }
    if (slice->status == streams::StreamStatus::kDeleted) {
      co_return stream_deleted(plan.stream);
    }
    if (slice->status == streams::StreamStatus::kNoStream) {
      pb::ReadResp missing;
      missing.mutable_stream_not_found()->mutable_stream_identifier()->set_stream_name(plan.stream);
      co_await reader->at.call->write(missing);
      co_return Status{};
    }
    if (first_page && plan.positions && !plan.backwards && slice->events.empty() &&
        slice->next != from) {
      pb::ReadResp first;
      first.set_first_stream_position(static_cast<std::uint64_t>(slice->next.value()));
      co_await reader->at.call->write(first);
    }
    first_page = false;
    left -= slice->events.size();
    for (auto& event : slice->events) {
      if (!co_await reader->send(std::move(event))) {
        co_return grpc::client_gone();
      }
    }
    if (left == 0 || slice->end_of_stream) {
      if (plan.positions) {
        pb::ReadResp last;
        last.set_last_stream_position(static_cast<std::uint64_t>(slice->last_event_number.value()));
        co_await reader->at.call->write(last);
      }
      co_return Status{};
    }
    from = slice->next;
    co_await reader->pause();
  }
}

net::awaitable<Status> read_all(std::shared_ptr<const EventReader> reader) {
  const auto& plan = reader->plan;
  const auto& core = *reader->at.core;
  auto left = plan.count;
  if (left == 0 || (plan.filter && plan.filter->window() == 0)) {
    co_return co_await never_answer(reader);
  }
  const auto end = core.db().committed();
  streams::AllPosition from = plan.position;
  if (plan.begin != Begin::kAt) {
    const bool at_end = plan.begin == Begin::kEnd;
    if (at_end != plan.backwards) {
      co_return Status{};
    }
    from = at_end ? streams::AllPosition{end, end}
                  : streams::AllPosition{LogPosition(0), LogPosition(0)};
  } else if (from.commit > end) {
    co_return plan.backwards
        ? Status{.code = Code::kUnknown, .message = "Unexpected ReadAllResult: Error"}
        : Status{};
  } else {
    const auto there = is_position(core, from.commit);
    if (!there) {
      co_return reader->read_failed(there.error());
    }
    if (!*there) {
      co_return Status{.code = Code::kUnknown,
                       .message = "Unexpected ReadAllResult: InvalidPosition"};
    }
  }
  while (left > 0) {
    if (const auto elsewhere = not_the_leader(*reader->at.core, reader->at.call->head())) {
      co_return *elsewhere;
    }
    const auto size =
        plan.filter ? kSlice : static_cast<std::size_t>(std::min<std::uint64_t>(kPage, left));
    auto slice = plan.backwards ? core.db().read_all_backward(from, size)
                                : core.db().read_all_forward(from, size);
    if (!slice) {
      co_return reader->read_failed(slice.error());
    }
    for (auto& event : slice->events) {
      if (plan.filter && !plan.filter->keeps(event)) {
        continue;
      }
      if (left == 0) {
        break;
      }
      --left;
      if (!co_await reader->send(std::move(event))) {
        co_return grpc::client_gone();
      }
    }
    if (slice->end) {
      break;
    }
    from = slice->next;
    co_await reader->pause();
    if (reader->at.call->cancelled() || !core.serving()) {
      co_return grpc::client_gone();
    }
  }
  co_return Status{};
}

net::awaitable<Status> read_events(NodeCall at) {
  const auto request = co_await at.call->only<pb::ReadReq>();
  if (!request) {
    co_return request.error();
  }
  if (!request->has_options()) {
    co_return grpc::handler_failed();
  }
  auto plan = plan_read(at, request->options());
  if (!plan) {
    co_return plan.error();
  }
  if (plan->begin == Begin::kNothing) {
    co_return Status{};  // the server loses the error
  }
  const bool subscription = request->options().has_subscription();
  const bool all = plan->stream.empty();
  const auto reader =
      std::make_shared<const EventReader>(EventReader{std::move(at), *std::move(plan)});
  co_return co_await (subscription ? subscribe(reader)
                      : all        ? read_all(reader)
                                   : read_stream(reader));
}

}  // namespace verger::node::rpc
