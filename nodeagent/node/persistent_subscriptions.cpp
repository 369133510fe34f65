#include "nodeagent/node/persistent_subscriptions.h"

#include <algorithm>

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace verger::node {
namespace {

using persistent::Group;
using persistent::GroupConfig;
using persistent::GroupKey;
using SubscriptionFault = SubscriptionError::Code;

constexpr std::chrono::seconds kGroupTick{1};
/// Records that are looked at in one go.
constexpr std::size_t kFollowedSlice = 256;

std::unexpected<SubscriptionError> no_subscription(SubscriptionFault code,
                                                   std::string reason = {}) {
  return std::unexpected(SubscriptionError{code, std::move(reason)});
}

const GroupKey& group_key_of(const std::shared_ptr<ActiveGroup>& group) {
  return group->group().key();
}

}  // namespace

/// One change of the configuration at a time; `true`: it is one's turn, and this node still leads.
class PersistentSubscriptions::Turn {
 public:
  explicit Turn(Self self) : self_(std::move(self)), term_(self_->term_) {}
  ~Turn() {
    if (taken_) {
      self_->changing_ = false;
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  static net::awaitable<bool> take(Turn& turn) {
    auto& self = *turn.self_;
    while (self.changing_ && turn.is_current()) {
      co_await self.context_.env.timers.sleep_for(self.context_.options.timings.tick);
    }
    if (!turn.is_current()) {
      co_return false;
    }
    turn.taken_ = true;
    self.changing_ = true;
    co_return true;
  }
  [[nodiscard]] bool is_current() const { return self_->ready_ && self_->term_ == term_; }

 private:
  Self self_;
  std::uint64_t term_;
  bool taken_ = false;
};

void PersistentSubscriptions::lead() {
  stop();
  // What is committed from here on is found in the log.
  followed_ = {context_.db().committed(), LogPosition(0)};
  if (const auto loaded = load(); !loaded) {
    context_.env.log.error("persistent subscriptions cannot be served",
                           {{"reason", loaded.error().message}});
    stop();
    return;
  }
  ready_ = true;
  next_tick_ = context_.now() + kGroupTick;
  context_.spawn(follow_log(context_.keep(*this), term_));
}

void PersistentSubscriptions::stop() {
  ready_ = false;
  ++term_;
  for (const auto& group : std::exchange(groups_, {})) {
    group->close();
  }
}

Result<void> PersistentSubscriptions::load() {
  VERGER_TRY(const auto newest,
             context_.db().read_backward(persistent::kConfigStream, kDeletedStream, 1));
  if (newest.events.empty()) {
    return {};
  }
  VERGER_TRY(const auto configured, persistent::parse_config(newest.events.front().data));
  for (const auto& config : configured) {
    VERGER_TRY(auto group, Group::make(config.key, config.settings, context_.env.clock));
    auto active = std::make_shared<ActiveGroup>(context_, write_, std::move(group));
    groups_.push_back(active);
    VERGER_RETURN_IF_ERROR(active->begin());
  }
  return {};
}

void PersistentSubscriptions::tick() {
  if (!ready_ || context_.now() < next_tick_) {
    return;
  }
  next_tick_ = std::max(next_tick_ + kGroupTick, context_.now());
  for (const auto& group : Groups(groups_)) {
    group->tick();
  }
}

net::awaitable<void> PersistentSubscriptions::follow_log(Self self, std::uint64_t term) {
  auto& context = self->context_;
  while (self->term_ == term && context.serving()) {
    const auto end = context.db().committed();
    if (end <= self->followed_.commit) {
      co_await context.changed.wait();
      continue;
    }
    if (self->groups_.empty()) {
      self->followed_ = {
          end, LogPosition(0)};  // a group that is created later reads what is there itself
      continue;
    }
    const auto slice = context.db().read_all_forward(self->followed_, kFollowedSlice);
    if (!slice) {
      context.env.log.error("persistent subscriptions cannot read the log",
                            {{"reason", slice.error().message}});
      co_await context.env.timers.sleep_for(kGroupTick);
      continue;
    }
    self->followed_ = slice->next;
    for (const auto& event : slice->events) {
      for (const auto& group : Groups(self->groups_)) {
        group->live(event);
      }
    }
    co_await net::post(context.env.executor, net::use_awaitable);
  }
}

PersistentSubscriptions::Groups::iterator PersistentSubscriptions::position_of(
    const GroupKey& key) {
  return std::ranges::find(groups_, key, group_key_of);
}

const Group* PersistentSubscriptions::find(const GroupKey& key) const {
  const auto found = std::ranges::find(groups_, key, group_key_of);
  return found == groups_.end() ? nullptr : &(*found)->group();
}

std::vector<const Group*> PersistentSubscriptions::all() const {
  std::vector<const Group*> out;
  for (const auto& group : groups_) {
    const auto& stream = group_key_of(group).stream;
    const auto last = std::find_if(out.rbegin(), out.rend(),
                                   [&](const Group* each) { return each->key().stream == stream; });
    out.insert(last == out.rend() ? out.end() : last.base(), &group->group());
  }
  return out;
}

std::vector<GroupConfig> PersistentSubscriptions::configuration() const {
  std::vector<GroupConfig> out;
  for (const auto& group : groups_) {
    out.push_back({group_key_of(group), group->group().settings()});
  }
  return out;
}

std::optional<SubscriptionError> PersistentSubscriptions::problem_with(
    const GroupConfig& config) const {
  if (auto problem = persistent::problem_of(config.settings)) {
    return SubscriptionError{SubscriptionFault::kFailed, *std::move(problem)};
  }
  const auto* start = std::get_if<streams::AllPosition>(&config.settings.start);
  if (start != nullptr && start->commit > context_.db().committed()) {
    return SubscriptionError{
        SubscriptionFault::kFailed,
        "Invalid Start From position: commit position must be less than or equal to the last "
        "commit position in the transaction file."};
  }
  return std::nullopt;
}

std::expected<std::shared_ptr<ActiveGroup>, SubscriptionError> PersistentSubscriptions::make_group(
    const GroupConfig& config) {
  auto group = Group::make(config.key, config.settings, context_.env.clock);
  if (!group) {
    return no_subscription(SubscriptionFault::kFailed, group.error().message);
  }
  return std::make_shared<ActiveGroup>(context_, write_, *std::move(group));
}

net::awaitable<SubscriptionResult> PersistentSubscriptions::write_configuration(
    Self self, std::vector<GroupConfig> groups, std::string user) {
  auto& context = self->context_;
  streams::NewEvent event;
  event.id = context.env.random.uuid();
  event.type = persistent::kConfigType;
  const auto json = persistent::config_json(groups, context.env.clock.now(), user);
  const auto bytes = as_bytes(json);
  event.data.assign(bytes.begin(), bytes.end());
  WriteRequest request{.stream = std::string(persistent::kConfigStream)};
  request.events.push_back(std::move(event));
  const auto reply = co_await self->write_(std::move(request));
  switch (reply.status) {
    case WriteStatus::kDone:
      co_return SubscriptionResult{};
    case WriteStatus::kTimeout:
      co_return no_subscription(SubscriptionFault::kTimeout);
    case WriteStatus::kNotReady:
      co_return no_subscription(SubscriptionFault::kNotReady);
    case WriteStatus::kWrongVersion:
    case WriteStatus::kDeleted:
    case WriteStatus::kInvalid:
      break;
  }
  co_return no_subscription(SubscriptionFault::kFailed, reply.message);
}

net::awaitable<SubscriptionResult> PersistentSubscriptions::create(Self self, GroupConfig config,
                                                                   std::string user) {
  Turn turn(self);
  if (!co_await Turn::take(turn)) {
    co_return no_subscription(SubscriptionFault::kNotReady);
  }
  if (self->find(config.key) != nullptr) {
    co_return no_subscription(SubscriptionFault::kExists);
  }
  if (auto problem = self->problem_with(config)) {
    co_return std::unexpected(*std::move(problem));
  }
  const auto group = self->make_group(config);
  if (!group) {
    co_return std::unexpected(group.error());
  }
  // It begins before it is written down: what "from now on" means does not depend on the disk.
  if (const auto begun = (*group)->begin(); !begun) {
    co_return no_subscription(SubscriptionFault::kFailed, begun.error().message);
  }
  self->groups_.push_back(*group);
  const auto written = co_await write_configuration(self, self->configuration(), std::move(user));
  if (!written && turn.is_current()) {
    (*group)->close();
    std::erase(self->groups_, *group);
  }
  co_return written;
}

net::awaitable<SubscriptionResult> PersistentSubscriptions::update(Self self, GroupConfig config,
                                                                   std::string user) {
  Turn turn(self);
  if (!co_await Turn::take(turn)) {
    co_return no_subscription(SubscriptionFault::kNotReady);
  }
  const auto* known = self->find(config.key);
  if (known == nullptr) {
    co_return no_subscription(SubscriptionFault::kNotFound);
  }
  config.settings.filter = known->settings().filter;
  if (auto problem = self->problem_with(config)) {
    co_return std::unexpected(*std::move(problem));
  }
  const auto group = self->make_group(config);
  if (!group) {
    co_return std::unexpected(group.error());
  }
  auto configuration = self->configuration();
  std::ranges::find(configuration, config.key, &GroupConfig::key)->settings = config.settings;
  const auto written =
      co_await write_configuration(self, std::move(configuration), std::move(user));
  if (!written || !turn.is_current()) {
    co_return written ? no_subscription(SubscriptionFault::kTimeout) : written;
  }
  const auto former = *self->position_of(config.key);
  former->close();
  co_await ActiveGroup::settled(former);
  if (!turn.is_current()) {
    co_return SubscriptionResult{};  // the next leader has the new settings
  }
  *self->position_of(config.key) = *group;
  if (const auto begun = (*group)->begin(); !begun) {
    co_return no_subscription(SubscriptionFault::kFailed, begun.error().message);
  }
  co_return SubscriptionResult{};
}

net::awaitable<SubscriptionResult> PersistentSubscriptions::remove(Self self, GroupKey key,
                                                                   std::string user) {
  Turn turn(self);
  if (!co_await Turn::take(turn)) {
    co_return no_subscription(SubscriptionFault::kNotReady);
  }
  if (self->find(key) == nullptr) {
    co_return no_subscription(SubscriptionFault::kNotFound);
  }
  auto configuration = self->configuration();
  std::erase_if(configuration, [&](const GroupConfig& each) { return each.key == key; });
  const auto written =
      co_await write_configuration(self, std::move(configuration), std::move(user));
  if (!written || !turn.is_current()) {
    co_return written ? no_subscription(SubscriptionFault::kTimeout) : written;
  }
  const auto group = *self->position_of(key);
  group->close();
  self->groups_.erase(self->position_of(key));
  // A checkpoint that came later would bring its stream back.
  co_await ActiveGroup::settled(group);
  for (auto stream : {persistent::checkpoint_stream(key), persistent::parked_stream(key)}) {
    const auto last = self->context_.db().last_event_number(stream);
    if (last && *last != kNoStream) {
      static_cast<void>(co_await self->write_(
          {.kind = WriteRequest::Kind::kSoftDelete, .stream = std::move(stream)}));
    }
  }
  co_return SubscriptionResult{};
}

std::expected<std::shared_ptr<GroupReader>, SubscriptionError> PersistentSubscriptions::connect(
    const GroupKey& key, persistent::Consumer consumer) {
  if (!ready_) {
    return no_subscription(SubscriptionFault::kNotReady);
  }
  const auto found = position_of(key);
  if (found == groups_.end()) {
    return no_subscription(SubscriptionFault::kNotFound);
  }
  auto reader = (*found)->connect(std::move(consumer));
  if (!reader) {
    return no_subscription(SubscriptionFault::kTooManyConsumers);
  }
  return reader;
}

SubscriptionResult PersistentSubscriptions::replay(const GroupKey& key,
                                                   std::optional<std::int64_t> stop_at) {
  if (!ready_) {
    return no_subscription(SubscriptionFault::kNotReady);
  }
  const auto found = position_of(key);
  if (found == groups_.end()) {
    return no_subscription(SubscriptionFault::kNotFound);
  }
  if (stop_at && *stop_at < 0) {
    return no_subscription(SubscriptionFault::kFailed,
                           "Cannot stop replaying parked message at a negative version.");
  }
  (*found)->replay(stop_at);
  return {};
}

bool PersistentSubscriptions::restart() {
  if (!ready_) {
    return false;
  }
  lead();
  return true;
}

}  // namespace verger::node
