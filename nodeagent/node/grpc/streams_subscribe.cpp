// Streams: subscriptions. What is there is read as pages; what comes is read from the log.
#include "nodeagent/node/grpc/event_reader.h"

namespace verger::node::rpc {
namespace {

using ::verger::grpc::Code;
using ::verger::grpc::Status;
namespace pb = event_store::client::streams;
using streams::AllPosition;

/// Events that the server holds for a subscription that does not take them; with more it reads
/// from the log again, and has caught up once more afterwards.
constexpr std::size_t kLiveBuffer = 32;
/// Records that are looked at in one go.
constexpr std::size_t kLiveSlice = 256;

AllPosition position_of(const streams::Event& event) {
  return {event.commit_position, event.prepare_position};
}

/// One subscription; held by its coroutine.
class Subscription {
 public:
  explicit Subscription(std::shared_ptr<const EventReader> reader)
      : reader_(std::move(reader)), plan_(reader_->plan), core_(reader_->at.core) {}

  static net::awaitable<Status> run(std::shared_ptr<Subscription> self);

 private:
  using End = std::optional<Status>;  ///< how the call ends

  [[nodiscard]] bool over() const { return reader_->at.call->cancelled() || !core_->serving(); }
  /// Where it begins; a status where it cannot.
  End begin();
  static net::awaitable<End> catch_up_stream(std::shared_ptr<Subscription> self);
  static net::awaitable<End> catch_up_all(std::shared_ptr<Subscription> self);
  static net::awaitable<End> follow(std::shared_ptr<Subscription> self);
  static net::awaitable<End> follow_memory(std::shared_ptr<Subscription> self);
  static net::awaitable<bool> checkpoint(std::shared_ptr<Subscription> self, AllPosition position);
  [[nodiscard]] bool in_memory() const { return MemoryStreams::has(plan_.stream); }
  [[nodiscard]] bool wants(const streams::Event& event) const;
  [[nodiscard]] std::uint64_t interval() const {
    return plan_.filter->window() * plan_.filter->multiplier();
  }

  std::shared_ptr<const EventReader> reader_;
  const ReadPlan& plan_;
  std::shared_ptr<Core> core_;
  EventNumber next_{0};                                   ///< of a stream
  AllPosition from_{};                                    ///< where the log is read on
  AllPosition beyond_{LogPosition(-1), LogPosition(-1)};  ///< of $all: what comes after it
  AllPosition last_checkpoint_{LogPosition(-1), LogPosition(-1)};
  std::uint64_t looked_at_ = 0;  ///< since the last checkpoint
};

Subscription::End Subscription::begin() {
  const auto end = core_->db().committed();
  from_ = {end, LogPosition(0)};
  if (plan_.stream.empty()) {
    if (plan_.begin == Begin::kStart) {
      from_ = {LogPosition(0), LogPosition(0)};
    } else if (plan_.begin == Begin::kAt) {
      from_ = plan_.position;
      beyond_ = plan_.position;
    }
    return std::nullopt;
  }
  const auto last = in_memory()
                        ? Result<EventNumber>(core_->memory_streams.last_number(plan_.stream))
                        : core_->db().last_event_number(plan_.stream);
  if (!last) {
    return reader_->read_failed(last.error());
  }
  if (*last == kDeletedStream) {
    return stream_deleted(plan_.stream);
  }
  if (plan_.begin == Begin::kEnd) {
    next_ = EventNumber(last->value() + 1);
  } else if (plan_.begin == Begin::kAt) {
    next_ = plan_.number < kDeletedStream ? EventNumber(plan_.number.value() + 1) : plan_.number;
  }
  return std::nullopt;
}

bool Subscription::wants(const streams::Event& event) const {
  if (!plan_.stream.empty()) {
    return event.stream == plan_.stream && event.number >= next_;
  }
  return position_of(event) > beyond_ && (!plan_.filter || plan_.filter->keeps(event));
}

net::awaitable<Subscription::End> Subscription::catch_up_stream(
    std::shared_ptr<Subscription> self) {
  const auto& db = self->core_->db();
  while (!self->over()) {
    if (auto elsewhere = not_the_leader(*self->core_, self->reader_->at.call->head())) {
      co_return elsewhere;
    }
    // What is committed from here on is found in the log.
    self->from_ = {db.committed(), LogPosition(0)};
    auto slice = self->reader_->page(self->next_, kPage);
    if (!slice) {
      co_return self->reader_->read_failed(slice.error());
    }
    if (slice->status == streams::StreamStatus::kDeleted) {
      co_return stream_deleted(self->plan_.stream);
    }
    for (auto& event : slice->events) {
      self->next_ = EventNumber(event.number.value() + 1);
      if (!co_await self->reader_->send(std::move(event))) {
        co_return grpc::client_gone();
      }
    }
    if (slice->end_of_stream) {
      co_return std::nullopt;
    }
    self->next_ = std::max(self->next_, slice->next);
    co_await self->reader_->pause();
  }
  co_return grpc::client_gone();
}

net::awaitable<bool> Subscription::checkpoint(std::shared_ptr<Subscription> self,
                                              AllPosition position) {
  self->looked_at_ = 0;
  if (position <= self->last_checkpoint_) {
    co_return true;
  }
  self->last_checkpoint_ = position;
  co_return co_await self->reader_->send_checkpoint(position);
}

net::awaitable<Subscription::End> Subscription::catch_up_all(std::shared_ptr<Subscription> self) {
  const auto& plan = self->plan_;
  const auto& db = self->core_->db();
  if (plan.begin == Begin::kAt) {
    if (self->from_.commit > db.committed()) {
      self->from_ = {db.committed(), LogPosition(0)};
      co_return std::nullopt;
    }
    const auto there = is_position(*self->core_, self->from_.commit);
    if (!there) {
      co_return self->reader_->read_failed(there.error());
    }
    if (!*there) {
      co_return Status{.code = Code::kInvalidArgument,
                       .message = "Trying to read from an invalid position."};
    }
  }
  AllPosition delivered{LogPosition(-1), LogPosition(-1)};
  bool first = true;
  while (!self->over()) {
    if (auto elsewhere = not_the_leader(*self->core_, self->reader_->at.call->head())) {
      co_return elsewhere;
    }
    const auto size =
        plan.filter ? std::clamp<std::size_t>(plan.filter->window(), 1, kLiveSlice) : kPage;
    const auto begin = self->from_;
    auto slice = db.read_all_forward(begin, size);
    if (!slice) {
      co_return self->reader_->read_failed(slice.error());
    }
    self->looked_at_ += slice->events.size();
    for (auto& event : slice->events) {
      if (!self->wants(event)) {
        continue;
      }
      delivered = position_of(event);
      if (!co_await self->reader_->send(std::move(event))) {
        co_return grpc::client_gone();
      }
    }
    self->from_ = slice->next;
    if (plan.filter && (slice->end || self->looked_at_ >= self->interval())) {
      // Where the page began, unless something behind it was delivered. The end of the page would
      // do as well; the server's choice makes a resumed subscription look at a page again.
      const auto reached =
          std::max(delivered, first ? begin : AllPosition{begin.commit, LogPosition(0)});
      if (!co_await checkpoint(self, reached)) {
        co_return grpc::client_gone();
      }
    }
    first = false;
    if (slice->end) {
      co_return std::nullopt;
    }
    co_await self->reader_->pause();
  }
  co_return grpc::client_gone();
}

net::awaitable<Subscription::End> Subscription::follow_memory(std::shared_ptr<Subscription> self) {
  const auto& core = self->core_;
  while (!self->over()) {
    for (auto& event : core->memory_streams.events_from(self->plan_.stream, self->next_)) {
      self->next_ = EventNumber(event.number.value() + 1);
      if (!co_await self->reader_->send(std::move(event))) {
        co_return grpc::client_gone();
      }
    }
    if (!self->over() && core->memory_streams.last_number(self->plan_.stream) < self->next_) {
      co_await core->changed.wait();
    }
  }
  co_return std::nullopt;
}

net::awaitable<Subscription::End> Subscription::follow(std::shared_ptr<Subscription> self) {
  const auto& core = self->core_;
  const auto& call = self->reader_->at.call;
  call->on_cancel([weak = std::weak_ptr<Core>(core)] {
    if (const auto alive = weak.lock()) {
      alive->changed.notify();
    }
  });
  if (self->in_memory()) {
    if (auto end = co_await follow_memory(self)) {
      co_return end;
    }
  }
  std::size_t in_one_go = 0;
  while (!self->over()) {
    if (core->db().committed() <= self->from_.commit) {
      if (std::exchange(in_one_go, 0) > kLiveBuffer && !co_await self->reader_->send_caught_up()) {
        break;
      }
      if (self->over() || core->db().committed() > self->from_.commit) {
        continue;
      }
      co_await core->changed.wait();
      continue;
    }
    auto slice = core->db().read_all_forward(self->from_, kLiveSlice);
    if (!slice) {
      co_return self->reader_->read_failed(slice.error());
    }
    self->from_ = slice->next;
    for (auto& event : slice->events) {
      ++self->looked_at_;
      const auto position = position_of(event);
      if (self->wants(event)) {
        const bool tombstone = event.number == kDeletedStream && !self->plan_.stream.empty();
        ++in_one_go;
        if (!co_await self->reader_->send(std::move(event))) {
          co_return grpc::client_gone();
        }
        if (tombstone) {
          co_return stream_deleted(self->plan_.stream);
        }
      }
      if (self->plan_.filter && self->looked_at_ >= self->interval() &&
          !co_await checkpoint(self, position)) {
        co_return grpc::client_gone();
      }
    }
    co_await self->reader_->pause();
  }
  // A node that ends says nothing: its connections close.
  while (!call->cancelled()) {
    co_await core->changed.wait();
  }
  co_return grpc::client_gone();
}

net::awaitable<Status> Subscription::run(std::shared_ptr<Subscription> self) {
  if (auto refused = self->begin()) {
    co_return *std::move(refused);
  }
  pb::ReadResp confirmation;
  confirmation.mutable_confirmation()->set_subscription_id(
      self->core_->env.random.uuid().to_string());
  if (!co_await self->reader_->at.call->write(confirmation)) {
    co_return grpc::client_gone();
  }
  // From the end there is nothing to read, and no page is asked for that a follower would refuse.
  if (self->plan_.begin != Begin::kEnd) {
    if (auto end =
            co_await (self->plan_.stream.empty() ? catch_up_all(self) : catch_up_stream(self))) {
      co_return *std::move(end);
    }
  }
  self->looked_at_ = 0;
  if (!co_await self->reader_->send_caught_up()) {
    co_return grpc::client_gone();
  }
  auto end = co_await follow(self);
  co_return end ? *std::move(end) : Status{};
}

}  // namespace

net::awaitable<Status> subscribe(std::shared_ptr<const EventReader> reader) {
  return Subscription::run(std::make_shared<Subscription>(std::move(reader)));
}

}  // namespace verger::node::rpc
