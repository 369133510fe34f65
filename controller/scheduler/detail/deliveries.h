#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "controller/scheduler/delivery_book.h"
#include "controller/scheduler/notifier.h"

namespace verger::controller::detail {

/// Delivers notifications, each recipient's one after the other and in their order, and puts on
/// record how they ended and up to which event nothing waits. It does not know what is notified.
///
/// Its coroutines keep it alive; after stop() each of them ends at its next wait, and records
/// nothing. What `parts` refers to outlives them. One executor.
class Deliveries : public std::enable_shared_from_this<Deliveries> {
 public:
  struct Delivery {
    Sequence of;
    Ticks at;  ///< of the event: a day later the delivery is given up
    Notification to;
    nlohmann::json body;
    int attempts = 0;
  };

  explicit Deliveries(const NotifierParts& parts)
      : parts_(parts), book_(parts_.journal, parts_.epoch) {}
  void stop() { stopping_ = true; }

  /// Takes the place in the journal from the record; without one it is the journal's end: what was
  /// journaled before is old news. Errors: the journal's.
  Result<void> load();
  /// Up to where the events of the journal have been queued, or need no notification.
  [[nodiscard]] Sequence seen() const { return seen_; }
  /// Once all deliveries of the event wait: a record must not pass what is not queued yet.
  void pass(Sequence event) { seen_ = event; }
  /// Whether the journal has the place from which to notify; it is put there before the first
  /// delivery.
  bool begin_record() { return book_.begun() || book_.seen(seen_).has_value(); }
  /// The place in the journal is recorded as soon as nothing waits, not only after many events.
  void want_record() { record_is_due_ = true; }
  void record_place();

  /// Unless it is on record as ended.
  void send(Delivery delivery);
  /// Each queue that rests and is not empty: one whose coroutine failed begins again.
  void begin_all();
  struct Attempt {
    /// Errors: kUnsupported: this controller has no such way; kUnavailable: a webhook's answer was
    /// not 2xx; else those of the way.
    Result<void> done;
    /// What a webhook that answered with 429 or 503 asks for; 0: nothing.
    std::chrono::seconds leave_alone{0};
  };
  /// One attempt, now, beside the queues.
  static net::awaitable<Attempt> attempt(std::shared_ptr<Deliveries> self, Notification to,
                                         nlohmann::json body);

  [[nodiscard]] const NotificationCounts& counts() const { return counts_; }

 private:
  /// Of one recipient.
  struct Queue {
    std::deque<Delivery> waiting;
    bool busy = false;
  };

  /// To the mail server or the command.
  static net::awaitable<Result<void>> hand_over(std::shared_ptr<Deliveries> self, Notification to,
                                                nlohmann::json body);
  static net::awaitable<void> deliver(std::shared_ptr<Deliveries> self, std::string key);
  void begin(const std::string& key);
  void record(const Delivery& delivery, const std::string& key, std::string_view outcome);
  [[nodiscard]] Sequence settled() const;
  NotificationCounts::Of& count_of(const Notification& to);

  NotifierParts parts_;
  DeliveryBook book_;
  Sequence seen_{0};
  bool record_is_due_ = false;
  std::map<std::string, Queue> queues_;  ///< by recipient_key()
  NotificationCounts counts_;
  bool stopping_ = false;
};

}  // namespace verger::controller::detail
