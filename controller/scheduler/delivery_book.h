#pragma once

#include <set>
#include <string>
#include <utility>

#include "controller/journal/journal.h"

namespace verger::controller {

/// Types of the events in the stream "notifications".
namespace events {
/// {up_to}: all that was journaled up to that sequence needs no further notification.
inline constexpr std::string_view kNotificationsSeen = "notifications-seen";
/// {of, to, outcome, attempts, up_to}: a notification of the event `of` has reached the recipient
/// `to` (the SHA-256 of what it is in the policy, shortened), or was given up.
inline constexpr std::string_view kNotificationEnded = "notification-ended";
}  // namespace events
inline constexpr std::string_view kNotificationStream = "notifications";

/// What has been notified, so that a restart neither forgets nor repeats what is on record. What
/// was delivered and not yet recorded when vergerd died is delivered again. One thread.
class DeliveryBook {
 public:
  DeliveryBook(Journal& journal, ControllerEpoch epoch) : journal_(journal), epoch_(epoch) {}

  /// Reads the stream. Errors: the journal's.
  Result<void> load();
  /// Whether the journal has the place from which to notify; before that, what is journaled is old
  /// news.
  [[nodiscard]] bool begun() const { return begun_; }
  /// From where to look at the journal.
  [[nodiscard]] Sequence up_to() const { return up_to_; }
  [[nodiscard]] bool has_ended(Sequence of, const std::string& to) const {
    return ended_.contains({of, to});
  }

  /// Nothing up to `up_to` waits for a delivery. Errors: the journal's; then it is as if it had not
  /// been called.
  Result<void> seen(Sequence up_to);
  struct Ended {
    Sequence of;
    std::string to;
    std::string_view outcome;  ///< "sent", "failed"
    int attempts = 0;
    Sequence up_to;
  };
  /// After an error the delivery counts as ended until a restart.
  Result<void> ended(const Ended& delivery);

 private:
  void fold(const JournalEvent& event);

  Journal& journal_;
  ControllerEpoch epoch_;
  bool begun_ = false;
  Sequence up_to_{0};
  std::set<std::pair<Sequence, std::string>> ended_;  ///< of events behind `up_to_`
};

}  // namespace verger::controller
