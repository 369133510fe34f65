#include "controller/scheduler/notifier.h"

#include <fmt/format.h>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "controller/cluster/gather.h"
#include "controller/scheduler/detail/deliveries.h"
#include "controller/scheduler/detail/notices.h"
#include "controller/scheduler/detail/recipients.h"

namespace verger::controller {

using nlohmann::json;

namespace {

constexpr std::size_t kEventsLookedAt = 500;

}  // namespace

struct Notifier::Impl {
  explicit Impl(const NotifierParts& parts)
      : journal(parts.journal),
        book(parts.book),
        clock(parts.network.clock),
        notices(parts.journal, parts.runs, parts.book, parts.registry),
        deliveries(std::make_shared<detail::Deliveries>(parts)) {}

  void queue(const JournalEvent& event) {
    if (event.stream.starts_with("policy/")) {
      // What happened before a policy was changed is no news for recipients that it added.
      deliveries->want_record();
    }
    auto notice = notices.of(event);
    if (!notice) {
      return;
    }
    for (const auto& to : notices.recipients(*notice)) {
      notice->body["id"] =
          fmt::format("{}-{}", event.sequence.value(), detail::recipient_key(to).substr(0, 8));
      deliveries->send({.of = event.sequence, .at = event.at, .to = to, .body = notice->body});
    }
  }

  Journal& journal;
  PolicyBook& book;
  Clock& clock;
  detail::Notices notices;
  std::shared_ptr<detail::Deliveries> deliveries;
};

Notifier::Notifier(NotifierParts parts) : impl_(std::make_shared<Impl>(parts)) {}
Notifier::~Notifier() { impl_->deliveries->stop(); }

Result<void> Notifier::load() { return impl_->deliveries->load(); }

void Notifier::look() {
  auto& deliveries = *impl_->deliveries;
  impl_->notices.know_stopped_runs(deliveries.seen());
  if (!impl_->notices.any_is_ordered() && deliveries.counts().waiting == 0) {
    // What happens meanwhile is old news once one is.
    deliveries.pass(impl_->journal.last_sequence().value_or(deliveries.seen()));
    deliveries.want_record();
    return;
  }
  if (!deliveries.begin_record()) {
    return;
  }
  for (;;) {
    const auto events = impl_->journal.read_all(deliveries.seen(), kEventsLookedAt);
    if (!events || events->empty()) {
      break;
    }
    for (const auto& event : *events) {
      impl_->queue(event);
      deliveries.pass(event.sequence);
    }
  }
  deliveries.begin_all();
  deliveries.record_place();
}

net::awaitable<Result<std::vector<NotificationTest>>> Notifier::test(std::string policy,
                                                                     std::string by) {
  const auto self = impl_;
  const auto stored = self->book.find(policy);
  if (!stored) {
    co_return stored.error();
  }
  const auto now = self->clock.now();
  std::vector<NotificationTest> out;
  std::vector<net::awaitable<detail::Deliveries::Attempt>> attempts;
  std::set<std::string> keys;
  for (const auto& to : stored->policy.notifications) {
    const auto key = detail::recipient_key(to);
    if (!keys.insert(key).second) {
      continue;  // one recipient of several moments
    }
    out.push_back({.to = detail::recipient_name(to), .problem = {}});
    attempts.push_back(detail::Deliveries::attempt(
        self->deliveries, to,
        json{{"id", fmt::format("test-{}-{}", now.value(), key.substr(0, 8))},
             {"moment", "test"},
             {"policy", policy},
             {"cluster", ""},
             {"run", ""},
             {"reason", fmt::format("{} has asked for this test of policy {}", by, policy)},
             {"at", format_ticks(now)}}));
  }
  const auto done = co_await gather(std::move(attempts));
  for (std::size_t i = 0; i < done.size(); ++i) {
    out[i].problem = done[i].done ? "" : done[i].done.error().message;
  }
  co_return out;
}

std::size_t Notifier::active() const { return impl_->deliveries->counts().waiting; }
const NotificationCounts& Notifier::counts() const { return impl_->deliveries->counts(); }

}  // namespace verger::controller
