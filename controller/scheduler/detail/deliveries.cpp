#include "controller/scheduler/detail/deliveries.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include <boost/asio/co_spawn.hpp>

#include "controller/scheduler/detail/recipients.h"
#include "controller/scheduler/notification_format.h"
#include "nodeagent/http/http_date.h"

namespace verger::controller::detail {

using nlohmann::json;

namespace {

using std::chrono::seconds;

/// Between two attempts, then always the last of them; after a day it is given up.
constexpr std::array<seconds, 6> kBetweenAttempts{seconds(5),   seconds(15),  seconds(60),
                                                  seconds(300), seconds(900), seconds(3600)};
constexpr seconds kGivenUpAfter = std::chrono::hours(24);
constexpr int kTooManyRequests = 429;
constexpr int kServiceUnavailable = 503;
/// So many events pass before the place in the journal is recorded without a delivery.
constexpr std::int64_t kEventsBetweenRecords = 5'000;

/// A webhook that asks to be left alone for longer than until the next attempt is, but for no
/// longer than between the last ones: what it asks for may be a mistake.
seconds pause_before_next_attempt(int attempts, seconds asked) {
  const auto own = kBetweenAttempts.at(
      std::min(static_cast<std::size_t>(attempts) - 1, kBetweenAttempts.size() - 1));
  return std::clamp(asked, own, kBetweenAttempts.back());
}

struct WebhookRequest {
  http::Endpoint to;
  http::Request message;
};

Result<WebhookRequest> webhook_request(const Notification& to, const json& body) {
  VERGER_TRY(const auto address, webhook_address(to.webhook));
  WebhookRequest out{.to = address.endpoint, .message = {}};
  out.message.method = "POST";
  out.message.target = address.target;
  out.message.headers.set("Content-Type", "application/json");
  out.message.headers.set("Idempotency-Key", body.value("id", std::string()));
  VERGER_TRY(out.message.body, notification_body(to.format, body));
  return out;
}

}  // namespace

Result<void> Deliveries::load() {
  VERGER_RETURN_IF_ERROR(book_.load());
  if (book_.begun()) {
    seen_ = book_.up_to();
    return {};
  }
  VERGER_TRY(seen_, parts_.journal.last_sequence());
  return {};
}

NotificationCounts::Of& Deliveries::count_of(const Notification& to) {
  return !to.email.empty()     ? counts_.mails
         : !to.command.empty() ? counts_.commands
                               : counts_.webhooks;
}

net::awaitable<Deliveries::Attempt> Deliveries::attempt(std::shared_ptr<Deliveries> self,
                                                        Notification to, json body) {
  if (!to.email.empty() || !to.command.empty()) {
    co_return Attempt{.done = co_await hand_over(self, std::move(to), std::move(body))};
  }
  auto request = webhook_request(to, body);
  if (!request) {
    co_return Attempt{.done = std::move(request).error()};
  }
  const auto& network = self->parts_.network;
  const auto target = request->message.target;
  const auto answer = co_await network.for_services().send(request->to, std::move(request->message),
                                                           network.request_deadline);
  if (!answer) {
    co_return Attempt{
        .done = Error{answer.error().code, without_target(answer.error().message, target)}};
  }
  if (answer->status >= 200 && answer->status < 300) {
    co_return Attempt{};
  }
  Attempt out{.done = Error{Errc::kUnavailable, fmt::format("it answered {}", answer->status)}};
  if (answer->status == kTooManyRequests || answer->status == kServiceUnavailable) {
    out.leave_alone =
        http::retry_after(*answer, network.clock.now()).value_or(std::chrono::seconds(0));
  }
  co_return out;
}

net::awaitable<Result<void>> Deliveries::hand_over(std::shared_ptr<Deliveries> self,
                                                   Notification to, json body) {
  if (!to.email.empty()) {
    if (!self->parts_.send_mail) {
      co_return Error{Errc::kUnsupported, "vergerd has no mail server: --smtp-url"};
    }
    co_return co_await self->parts_.send_mail({.to = to.email,
                                               .subject = notification_line(body),
                                               .text = notification_text(body),
                                               .id = body.value("id", std::string())});
  }
  if (!self->parts_.run_command) {
    co_return Error{Errc::kUnsupported, "commands are not run here"};
  }
  VERGER_CO_TRY(auto document, notification_body("json", body));
  co_return co_await self->parts_.run_command(to.command, std::move(document));
}

/// The newest sequence up to which nothing waits.
Sequence Deliveries::settled() const {
  auto out = seen_;
  for (const auto& [key, queue] : queues_) {
    for (const auto& each : queue.waiting) {
      out = std::min(out, Sequence(each.of.value() - 1));
    }
  }
  return out;
}

void Deliveries::record(const Delivery& delivery, const std::string& key,
                        std::string_view outcome) {
  const auto noted = book_.ended({.of = delivery.of,
                                  .to = key,
                                  .outcome = outcome,
                                  .attempts = delivery.attempts,
                                  .up_to = settled()});
  if (!noted) {
    // After a restart it is sent once more.
    parts_.network.log.warning(
        "a notification's outcome was not recorded",
        {{"to", recipient_name(delivery.to)}, {"error", noted.error().message}});
  }
}

/// The queue of one recipient, to its end.
net::awaitable<void> Deliveries::deliver(std::shared_ptr<Deliveries> self, std::string key) {
  const auto& network = self->parts_.network;
  while (!self->stopping_ && !self->queues_[key].waiting.empty()) {
    auto& next = self->queues_[key].waiting.front();
    ++next.attempts;
    const auto delivery = next;
    const auto [done, leave_alone] = co_await attempt(self, delivery.to, delivery.body);
    if (self->stopping_) {
      co_return;
    }
    auto& count = self->count_of(delivery.to);
    const auto age = network.clock.now().value() - delivery.at.value();
    const bool over = age >= kGivenUpAfter.count() * kTicksPerSecond;
    if (done || over) {
      ++(done ? count.sent : count.failed);
      self->queues_[key].waiting.pop_front();
      --self->counts_.waiting;
      if (!done) {
        network.log.error("a notification was given up",
                          {{"to", recipient_name(delivery.to)},
                           {"moment", delivery.body.value("moment", std::string())},
                           {"attempts", std::to_string(delivery.attempts)},
                           {"reason", done.error().message}});
      }
      self->record(delivery, key, done ? "sent" : "failed");
      continue;
    }
    ++count.retried;
    if (delivery.attempts == 1) {
      network.log.warning("a notification was not delivered; it will be tried again for a day",
                          {{"to", recipient_name(delivery.to)}, {"reason", done.error().message}});
    }
    // Longer after each failure, so as not to burden a recipient that is down; a day after the
    // event the delivery is given up.
    co_await network.timers.sleep_for(pause_before_next_attempt(delivery.attempts, leave_alone));
  }
  self->queues_[key].busy = false;
}

void Deliveries::send(Delivery delivery) {
  const auto key = recipient_key(delivery.to);
  if (book_.has_ended(delivery.of, key)) {
    return;
  }
  queues_[key].waiting.push_back(std::move(delivery));
  ++counts_.waiting;
  begin(key);
}

void Deliveries::begin_all() {
  for (const auto& [key, queue] : queues_) {
    begin(key);
  }
}

void Deliveries::begin(const std::string& key) {
  auto& queue = queues_[key];
  if (queue.busy || queue.waiting.empty()) {
    return;
  }
  queue.busy = true;
  net::co_spawn(parts_.executor, deliver(shared_from_this(), key),
                [self = shared_from_this(), key](const std::exception_ptr& failed) {
                  if (failed && !self->stopping_) {
                    // begin_all() begins again.
                    self->queues_[key].busy = false;
                    self->parts_.network.log.error("the delivery of notifications has failed",
                                                   {{"recipient", key}});
                  }
                });
}

void Deliveries::record_place() {
  const auto unrecorded = seen_.value() - book_.up_to().value();
  if (counts_.waiting > 0 || (!record_is_due_ && unrecorded <= kEventsBetweenRecords)) {
    return;
  }
  if (unrecorded > 0) {
    if (const auto noted = book_.seen(seen_); !noted) {
      parts_.network.log.warning("the place of notifications was not recorded",
                                 {{"error", noted.error().message}});
      return;
    }
  }
  record_is_due_ = false;
}

}  // namespace verger::controller::detail
