#include "nodeagent/node/detail/active_group.h"

#include <array>

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace verger::node {
namespace {

namespace action = persistent::action;
using persistent::Consumer;
using persistent::ConsumerId;
using persistent::EventPointer;
using persistent::Group;
using persistent::NackAction;
using persistent::SourceEntry;
using persistent::SourceEvent;
using persistent::SourcePosition;

/// Records of $all that are looked at in one go.
constexpr std::size_t kGroupSlice = 256;
constexpr std::chrono::seconds kAfterAFailedRead{1};

Bytes group_bytes(std::string_view text) {
  const auto view = as_bytes(text);
  return {view.begin(), view.end()};
}

streams::NewEvent new_group_event(NodeContext& context, std::string_view type,
                                  std::string_view data, bool is_json) {
  streams::NewEvent event;
  event.id = context.env.random.uuid();
  event.type = type;
  event.is_json = is_json;
  event.data = group_bytes(data);
  return event;
}

SourcePosition place_in_all(const streams::Event& event) {
  return streams::AllPosition{event.commit_position, event.prepare_position};
}

}  // namespace

GroupReader::GroupReader(std::shared_ptr<ActiveGroup> group, ConsumerId id)
    : group_(std::move(group)), id_(id), wake_(group_->context_.env.executor) {
  group_->readers_.emplace(id_, this);
}

GroupReader::~GroupReader() {
  group_->readers_.erase(id_);
  if (!dropped_ && !left_) {
    group_->gone_.push_back(id_);
  }
}

void GroupReader::leave() {
  if (!dropped_ && !std::exchange(left_, true)) {
    group_->group_.disconnect(id_);
    group_->follow_up();
  }
}

std::optional<GroupReader::Delivery> GroupReader::next() {
  if (waiting_.empty()) {
    return std::nullopt;
  }
  auto first = std::move(waiting_.front());
  waiting_.pop_front();
  return first;
}

void GroupReader::acknowledge(std::span<const Uuid> ids) {
  if (!dropped_) {
    group_->group_.acknowledge(ids);
    group_->follow_up();
  }
}

void GroupReader::not_acknowledge(std::span<const Uuid> ids, NackAction how,
                                  const std::string& reason) {
  if (!dropped_) {
    group_->group_.not_acknowledge(ids, how, reason);
    group_->follow_up();
  }
}

ActiveGroup::ActiveGroup(NodeContext& context, WriteFunction write, Group group)
    : context_(context), write_(std::move(write)), group_(std::move(group)) {}

Result<void> ActiveGroup::begin() {
  const auto& db = context_.db();
  const auto& key = group_.key();
  VERGER_TRY(const auto written,
             db.read_backward(persistent::checkpoint_stream(key), kDeletedStream, 1));
  const auto checkpoint =
      written.events.empty() ? std::nullopt
                             : persistent::parse_checkpoint(written.events.front().data, key.all());
  VERGER_TRY(const auto last_parked, db.last_event_number(persistent::parked_stream(key)));
  VERGER_TRY(const auto metadata, db.metadata(persistent::parked_stream(key)));
  const EventNumber behind_parked(last_parked.value() + 1);
  const auto first_parked =
      std::min(EventNumber(metadata.truncate_before.value_or(0)), behind_parked);
  SourcePosition end = streams::AllPosition{db.committed(), LogPosition(0)};
  if (!key.all()) {
    VERGER_TRY(const auto last, db.last_event_number(key.stream));
    end = last == kDeletedStream ? last : EventNumber(last.value() + 1);
  }
  group_.begin(checkpoint, end, {first_parked, behind_parked});
  follow_up();
  return {};
}

void ActiveGroup::live(const streams::Event& event) {
  const bool all = group_.key().all();
  if (!all && (event.stream != group_.key().stream || event.number == kDeletedStream)) {
    return;
  }
  const auto position = all ? place_in_all(event) : SourcePosition(event.number);
  group_.live({position, group_.keeps(event)
                             ? event_of(event, position, group_.settings().resolve_links)
                             : nullptr});
  follow_up();
}

void ActiveGroup::tick() {
  for (const auto id : std::exchange(gone_, {})) {
    group_.disconnect(id);
  }
  group_.tick();
  follow_up();
}

std::shared_ptr<GroupReader> ActiveGroup::connect(Consumer consumer) {
  consumer.id = next_consumer_++;
  // It is known before its first message comes.
  auto reader = std::make_shared<GroupReader>(shared_from_this(), consumer.id);
  if (!group_.connect(std::move(consumer))) {
    reader->left_ = true;
    return nullptr;
  }
  follow_up();
  return reader;
}

void ActiveGroup::replay(std::optional<std::int64_t> stop_at) {
  const auto last = context_.db().last_event_number(persistent::parked_stream(group_.key()));
  group_.replay(stop_at,
                last && *last != kDeletedStream ? EventNumber(last->value() + 1) : EventNumber(0));
  follow_up();
}

void ActiveGroup::close() {
  closed_ = true;
  checkpoint_.reset();
  for (const auto& [id, reader] : readers_) {
    reader->dropped_ = true;
    reader->waiting_.clear();
    reader->wake();
  }
}

net::awaitable<void> ActiveGroup::settled(std::shared_ptr<ActiveGroup> group) {
  while (group->writing_ && group->context_.serving()) {
    co_await group->context_.env.timers.sleep_for(group->context_.options.timings.tick);
  }
}

void ActiveGroup::follow_up() {
  for (auto& each : group_.take_actions()) {
    std::visit([this](auto& action) { carry_out(std::move(action)); }, each);
  }
  if (closed_) {
    return;
  }
  if (!reading_ && (group_.wants_page() || group_.wants_parked())) {
    reading_ = true;
    context_.spawn(read_on(shared_from_this(), context_.shared_from_this()));
  }
  if (!writing_ && (checkpoint_ || !writes_.empty())) {
    writing_ = true;
    context_.spawn(write_on(shared_from_this(), context_.shared_from_this()));
  }
}

void ActiveGroup::carry_out(action::Deliver deliver) {
  const auto found = readers_.find(deliver.consumer);
  if (found != readers_.end()) {
    found->second->waiting_.push_back({std::move(deliver.event), deliver.retry_count});
    found->second->wake();
  }
}

void ActiveGroup::carry_out(action::WriteCheckpoint checkpoint) {
  checkpoint_ = checkpoint.position;
}

void ActiveGroup::carry_out(action::Park park) {
  auto link =
      new_group_event(context_, persistent::kLinkType, persistent::parked_link(*park.event), false);
  link.metadata = group_bytes(
      persistent::parked_metadata(*park.event, context_.env.clock.now(), std::move(park.reason)));
  Pending pending{.request = {.stream = persistent::parked_stream(group_.key())},
                  .parks = park.message};
  pending.request.events.push_back(std::move(link));
  writes_.push_back(std::move(pending));
}

void ActiveGroup::carry_out(const action::TruncateParked& truncate) {
  Pending pending{.request = {.kind = WriteRequest::Kind::kMetadata,
                              .stream = persistent::parked_stream(group_.key())}};
  pending.request.events.push_back(new_group_event(
      context_, "$metadata", persistent::parked_stream_metadata(truncate.before), true));
  writes_.push_back(std::move(pending));
}

EventPointer ActiveGroup::event_of(streams::Event record, const SourcePosition& position,
                                   bool resolve) const {
  auto event = std::make_shared<SourceEvent>();
  event->position = position;
  if (const auto target = resolve ? persistent::link_target(record) : std::nullopt) {
    event->is_link = true;
    auto found = target->second.empty()
                     ? Result<streams::StreamSlice>(streams::StreamSlice{})
                     : context_.db().read_forward(target->second, target->first, 1);
    if (found && !found->events.empty() && found->events.front().number == target->first) {
      event->target = std::move(found->events.front());
    }
  }
  event->record = std::move(record);
  return event;
}

Result<void> ActiveGroup::read_page(const Group::PageRequest& request) {
  return group_.key().all() ? read_all_page(request) : read_stream_page(request);
}

Result<void> ActiveGroup::read_stream_page(const Group::PageRequest& request) {
  const auto from = std::get<EventNumber>(request.from);
  VERGER_TRY(auto slice, context_.db().read_forward(group_.key().stream, from, request.count));
  const bool there = slice.status == streams::StreamStatus::kSuccess;
  std::vector<SourceEntry> entries;
  for (auto& event : slice.events) {
    const SourcePosition position(event.number);
    entries.push_back(
        {position, event_of(std::move(event), position, group_.settings().resolve_links)});
  }
  group_.page(entries, there ? std::max(from, slice.next) : from, !there || slice.end_of_stream);
  return {};
}

Result<void> ActiveGroup::read_all_page(const Group::PageRequest& request) {
  VERGER_TRY(auto slice, context_.db().read_all_forward(
                             std::get<streams::AllPosition>(request.from), kGroupSlice));
  std::vector<SourceEntry> entries;
  std::size_t kept = 0;
  for (auto& event : slice.events) {
    const auto position = place_in_all(event);
    const bool wanted = group_.keeps(event);
    if (wanted && kept++ == request.count) {
      group_.page(entries, position, false);
      return {};
    }
    entries.push_back(
        {position,
         wanted ? event_of(std::move(event), position, group_.settings().resolve_links) : nullptr});
  }
  group_.page(entries, slice.next, slice.end);
  return {};
}

Result<void> ActiveGroup::read_parked(EventNumber from) {
  constexpr std::size_t kPage = 100;
  VERGER_TRY(auto slice,
             context_.db().read_forward(persistent::parked_stream(group_.key()), from, kPage));
  std::vector<EventPointer> links;
  for (auto& event : slice.events) {
    const SourcePosition position(event.number);
    links.push_back(event_of(std::move(event), position, true));
  }
  const bool there = slice.status == streams::StreamStatus::kSuccess;
  group_.parked_page(links, there ? std::max(from, slice.next) : from,
                     !there || slice.end_of_stream);
  return {};
}

net::awaitable<void> ActiveGroup::read_on(std::shared_ptr<ActiveGroup> group,
                                          std::shared_ptr<NodeContext> node) {
  auto& context = *node;
  while (!group->closed_ && context.serving()) {
    const auto wanted = group->group_.wants_page();
    const auto parked = group->group_.wants_parked();
    if (!wanted && !parked) {
      break;
    }
    const auto read = wanted ? group->read_page(*wanted) : group->read_parked(*parked);
    group->follow_up();
    if (read) {
      co_await net::post(context.env.executor, net::use_awaitable);
      continue;
    }
    context.env.log.error(
        "a persistent subscription cannot read",
        {{"subscription", group->group_.key().id()}, {"reason", read.error().message}});
    co_await context.env.timers.sleep_for(kAfterAFailedRead);
  }
  group->reading_ = false;
}

std::optional<ActiveGroup::Pending> ActiveGroup::next_write() {
  if (!writes_.empty()) {
    auto first = std::move(writes_.front());
    writes_.pop_front();
    return first;
  }
  if (!checkpoint_) {
    return std::nullopt;
  }
  Pending pending{.request = {.stream = persistent::checkpoint_stream(group_.key())}};
  pending.request.events.push_back(
      new_group_event(context_, persistent::kCheckpointType,
                      persistent::checkpoint_json(*std::exchange(checkpoint_, {})), true));
  return pending;
}

/// What is written is written again with the same ids until it is there: a lost parked link would
/// be an event that no one gets. Leadership that ends closes the group; the next leader delivers
/// what was not parked.
net::awaitable<void> ActiveGroup::write_on(std::shared_ptr<ActiveGroup> group,
                                           std::shared_ptr<NodeContext> node) {
  auto& context = *node;
  while (auto pending = group->next_write()) {
    auto reply = co_await group->write_(pending->request);
    while (reply.status != WriteStatus::kDone && !group->closed_ && context.serving()) {
      co_await context.env.timers.sleep_for(context.options.timings.tick);
      reply = co_await group->write_(pending->request);
    }
    if (reply.status == WriteStatus::kDone && pending->parks) {
      group->group_.parked(*pending->parks, reply.last);
      group->follow_up();
    }
    if (group->closed_) {
      break;
    }
  }
  group->writing_ = false;
}

}  // namespace verger::node
