#include "nodeagent/node/persistent/group.h"

#include <algorithm>
#include <utility>

namespace verger::node::persistent {
namespace {

using std::chrono::milliseconds;

/// However many the settings want.
constexpr std::size_t kMostInAPage = 1000;

/// What all events are behind.
SourcePosition nothing_before(bool all) {
  if (all) {
    return streams::AllPosition{LogPosition(0), LogPosition(0)};
  }
  return EventNumber(0);
}

std::size_t at_least(std::int32_t size, std::size_t least) {
  return std::max(static_cast<std::size_t>(std::max(size, 0)), least);
}

}  // namespace

Result<Group> Group::make(GroupKey key, GroupSettings settings, Clock& clock) {
  std::vector<EventMatcher> matcher;
  if (settings.filter) {
    VERGER_TRY(auto made, EventMatcher::make(*settings.filter));
    matcher.push_back(std::move(made));
  }
  return Group(std::move(key), std::move(settings), std::move(matcher), clock);
}

Group::Group(GroupKey key, GroupSettings settings, std::vector<EventMatcher> matcher, Clock& clock)
    : key_(std::move(key)),
      settings_(std::move(settings)),
      matcher_(std::move(matcher)),
      consumers_(settings_.strategy),
      clock_(&clock),
      from_(nothing_before(key_.all())),
      since_(clock.monotonic()) {}

bool Group::keeps(const streams::Event& event) const {
  return matcher_.empty() || matcher_.front().keeps(event);
}

void Group::begin(std::optional<SourcePosition> checkpoint, const SourcePosition& end,
                  std::pair<EventNumber, EventNumber> parked) {
  begun_ = true;
  std::tie(parked_begin_, parked_end_) = parked;
  checkpoint_ = checkpoint;
  last_seen_ = checkpoint;
  if (checkpoint) {
    const auto* number = std::get_if<EventNumber>(&*checkpoint);
    from_ = number != nullptr ? SourcePosition(EventNumber(number->value() + 1)) : *checkpoint;
  } else if (settings_.from_now_on()) {
    from_ = end;
    live_ = true;
  } else {
    from_ = settings_.start;
  }
}

std::optional<Group::PageRequest> Group::wants_page() const {
  const auto batch = std::min(at_least(settings_.read_batch_size, 1), kMostInAPage);
  const auto room = at_least(settings_.history_buffer_size, 2);
  if (!begun_ || live_ || page_requested_ ||
      buffered_.size() + batch >= std::max(room, batch + 1)) {
    return std::nullopt;
  }
  return PageRequest{from_, batch};
}

bool Group::is_new(const SourcePosition& position) const {
  return position >= from_ && (!last_seen_ || position > *last_seen_);
}

void Group::enter(const SourceEntry& entry) {
  const MessageKey key{.number = next_number_++};
  if (entry.event) {
    messages_.emplace(key, Message{.event = entry.event, .before = last_seen_});
    buffered_.insert(key);
    last_known_ = entry.position;
  }
  last_seen_ = entry.position;
}

void Group::page(std::span<const SourceEntry> entries, const SourcePosition& next, bool end) {
  page_requested_ = false;
  for (const auto& entry : entries) {
    if (is_new(entry.position)) {
      enter(entry);
    }
  }
  from_ = std::max(from_, next);
  live_ = end;
  std::erase_if(live_waiting_, [&](const SourcePosition& each) { return end || each < from_; });
  consider_checkpoint(false);
  push();
}

void Group::live(const SourceEntry& entry) {
  if (!begun_ || !is_new(entry.position)) {
    return;
  }
  if (live_ && entry.event && buffered_.size() >= at_least(settings_.history_buffer_size, 1)) {
    live_ = false;  // it is read from the log when there is room
    from_ = entry.position;
  }
  if (live_) {
    enter(entry);
    consider_checkpoint(false);
    push();
    return;
  }
  if (entry.event) {
    last_known_ = entry.position;
    live_waiting_.push_back(entry.position);
    if (live_waiting_.size() > at_least(settings_.live_buffer_size, 0)) {
      live_waiting_.erase(live_waiting_.begin());
    }
  }
}

bool Group::connect(Consumer consumer) {
  const auto most = settings_.max_subscriber_count;
  if (most > 0 && consumers_.count() >= static_cast<std::size_t>(most)) {
    return false;
  }
  consumer.since = clock_->monotonic();
  consumers_.add(std::move(consumer));
  push();
  return true;
}

void Group::disconnect(ConsumerId id) {
  const auto lost = consumers_.remove(id);
  if (!lost) {
    return;
  }
  for (const auto& key : *lost) {
    if (const auto message = messages_.find(key); message != messages_.end()) {
      withdraw(message);
      retry(message);
    }
  }
  push();
}

void Group::push() {
  for (auto* const queue : {&retries_, &buffered_}) {
    for (auto each = queue->begin(); each != queue->end() && consumers_.has_room();) {
      const auto message = messages_.find(*each);
      auto* const consumer = consumers_.choose(*message->second.event);
      if (consumer == nullptr) {
        ++each;
        continue;
      }
      each = queue->erase(each);
      send(message, *consumer);
    }
  }
}

void Group::send(Messages::iterator message, Consumer& consumer) {
  auto& [key, content] = *message;
  content.state = State::kOutstanding;
  content.consumer = consumer.id;
  content.deadline = clock_->monotonic() + milliseconds(settings_.message_timeout_ms);
  consumer.in_flight.insert(key);
  ++consumer.total;
  ++total_;
  outstanding_.emplace(content.event->record.id, key);
  actions_.emplace_back(action::Deliver{consumer.id, content.event, content.retry_count});
}

void Group::withdraw(Messages::iterator message) {
  auto& [key, content] = *message;
  if (content.state != State::kOutstanding) {
    return;
  }
  if (auto* const consumer = consumers_.find(content.consumer)) {
    consumer->in_flight.erase(key);
  }
  const auto [first, last] = outstanding_.equal_range(content.event->record.id);
  const auto found =
      std::find_if(first, last, [&](const auto& each) { return each.second == key; });
  if (found != last) {
    outstanding_.erase(found);
  }
}

void Group::retry(Messages::iterator message) {
  message->second.state = State::kRetry;
  ++message->second.retry_count;
  retries_.insert(message->first);
}

void Group::retry_or_park(Messages::iterator message) {
  if (message->second.retry_count < settings_.max_retry_count) {
    retry(message);
  } else {
    park(message, fmt::format("Reached retry count of {}", settings_.max_retry_count));
  }
}

void Group::park(Messages::iterator message, std::string reason) {
  message->second.state = State::kParking;
  actions_.emplace_back(action::Park{message->first, message->second.event, std::move(reason)});
}

void Group::done(Messages::iterator message) { messages_.erase(message); }

Group::Messages::iterator Group::outstanding(const Uuid& id) {
  const auto [first, last] = outstanding_.equal_range(id);
  if (first == last) {
    return messages_.end();
  }
  const auto oldest = std::min_element(
      first, last, [](const auto& a, const auto& b) { return a.second < b.second; });
  return messages_.find(oldest->second);
}

void Group::acknowledge(std::span<const Uuid> ids) {
  for (const auto& id : ids) {
    if (const auto message = outstanding(id); message != messages_.end()) {
      withdraw(message);
      done(message);
    }
  }
  consider_checkpoint(false);
  push();
}

void Group::not_acknowledge(std::span<const Uuid> ids, NackAction how, const std::string& reason) {
  for (const auto& id : ids) {
    const auto message = outstanding(id);
    if (message == messages_.end()) {
      continue;
    }
    withdraw(message);
    switch (how) {
      case NackAction::kUnknown:
      case NackAction::kRetry:
        retry_or_park(message);
        break;
      case NackAction::kPark:
        park(message, "Client explicitly NAK'ed message.\n" + reason);
        break;
      case NackAction::kSkip:
      case NackAction::kStop:
        done(message);
        break;
    }
  }
  consider_checkpoint(false);
  push();
}

void Group::parked(MessageKey message, EventNumber number) {
  parked_end_ = std::max(parked_end_, EventNumber(number.value() + 1));
  const auto found = messages_.find(message);
  if (found != messages_.end() && found->second.state == State::kParking) {
    done(found);
  }
  consider_checkpoint(false);
}

void Group::replay(std::optional<std::int64_t> stop_at, EventNumber end) {
  parked_end_ = std::max(parked_end_, end);
  if (replay_until_ || parked_begin_ >= parked_end_) {
    return;
  }
  const auto until = stop_at ? std::min(parked_end_, EventNumber(*stop_at)) : parked_end_;
  if (until > parked_begin_) {
    replay_from_ = parked_begin_;
    replay_until_ = until;
  }
}

std::optional<EventNumber> Group::wants_parked() const {
  if (!replay_until_ || retries_.size() >= at_least(settings_.history_buffer_size, 1)) {
    return std::nullopt;
  }
  return replay_from_;
}

void Group::parked_page(std::span<const EventPointer> links, EventNumber next, bool end) {
  if (!replay_until_) {
    return;
  }
  for (const auto& link : links) {
    if (link->record.number >= *replay_until_) {
      break;
    }
    const MessageKey key{.replayed = true, .number = next_replayed_++};
    messages_.emplace(key, Message{.event = link, .state = State::kRetry});
    retries_.insert(key);
  }
  replay_from_ = next;
  if (end || next >= *replay_until_) {
    parked_begin_ = std::max(parked_begin_, *replay_until_);
    actions_.emplace_back(action::TruncateParked{*replay_until_});
    replay_until_.reset();
  }
  push();
}

void Group::tick() {
  const auto now = clock_->monotonic();
  std::vector<MessageKey> late;
  for (const auto& [id, key] : outstanding_) {
    if (messages_.at(key).deadline <= now) {
      late.push_back(key);
    }
  }
  std::ranges::sort(late);
  for (const auto& key : late) {
    const auto message = messages_.find(key);
    withdraw(message);
    retry_or_park(message);
  }
  consider_checkpoint(true);
  push();
  total_when_measured_ = total_;
  for (auto& consumer : consumers_.all()) {
    consumer.total_when_measured = consumer.total;
  }
}

void Group::consider_checkpoint(bool by_time) {
  const auto first = messages_.begin();
  const bool waits = first != messages_.end() && !first->first.replayed;
  const auto& reached = waits ? first->second.before : last_seen_;
  const auto number = (waits ? first->first.number : next_number_) - 1;
  if (!reached || number <= checkpoint_number_) {
    return;
  }
  const auto count = static_cast<std::int64_t>(number - checkpoint_number_);
  const milliseconds after(settings_.checkpoint_after_ms);
  const bool old = by_time && after.count() > 0 && count >= settings_.min_checkpoint_count &&
                   (!checkpoint_time_ || clock_->monotonic() - *checkpoint_time_ >= after);
  if (!old && count < settings_.max_checkpoint_count) {
    return;
  }
  checkpoint_ = *reached;
  checkpoint_number_ = number;
  checkpoint_time_ = clock_->monotonic();
  actions_.emplace_back(action::WriteCheckpoint{*reached});
}

GroupStatus Group::status() const {
  GroupStatus out;
  const auto flag = [&](bool set, std::string_view name) {
    if (set) {
      out.status += out.status.empty() ? "" : ", ";
      out.status += name;
    }
  };
  flag(!begun_, "NotReady");
  flag(begun_ && !live_, "Behind");
  flag(page_requested_, "OutstandingPageRequest");
  flag(replay_until_.has_value(), "ReplayingParkedMessages");
  flag(live_, "Live");
  out.last_checkpoint = checkpoint_;
  out.last_known = last_known_;
  out.total = total_;
  out.total_when_measured = total_when_measured_;
  out.since = since_;
  out.buffered = buffered_.size();
  out.live_waiting = live_waiting_.size();
  out.retries = retries_.size();
  out.outstanding = outstanding_.size();
  out.parked = parked_end_ > parked_begin_ ? parked_end_.value() - parked_begin_.value() : 0;
  return out;
}

}  // namespace verger::node::persistent
