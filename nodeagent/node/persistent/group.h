#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/clock.h"
#include "nodeagent/node/persistent/consumers.h"

namespace verger::node::persistent {

/// What a group has its owner do.
namespace action {
/// The consumer gets the event.
struct Deliver {
  ConsumerId consumer;
  EventPointer event;
  std::int32_t retry_count;
};
/// Everything up to here is done: write it.
struct WriteCheckpoint {
  SourcePosition position;
};
/// A link to the event goes to the parked stream; parked() tells that it is there.
struct Park {
  MessageKey message;
  EventPointer event;
  std::string reason;
};
/// Parked links below this number are on their way again.
struct TruncateParked {
  EventNumber before;
};
}  // namespace action
using Action =
    std::variant<action::Deliver, action::WriteCheckpoint, action::Park, action::TruncateParked>;

/// A place in what the group reads, and the event there; none where the filter leaves it out.
struct SourceEntry {
  SourcePosition position;
  EventPointer event;
};

/// How a consumer answers a message other than by an acknowledgement.
enum class NackAction : std::uint8_t { kUnknown, kPark, kRetry, kSkip, kStop };

/// What a group says of itself.
struct GroupStatus {
  std::string status{};  ///< flags: "Live", "Behind, OutstandingPageRequest", ...
  std::optional<SourcePosition> last_checkpoint{};
  std::optional<SourcePosition> last_known{};
  std::int64_t total = 0;
  std::int64_t total_when_measured = 0;
  Monotonic since{0};
  std::size_t buffered = 0;
  std::size_t live_waiting = 0;
  std::size_t retries = 0;
  std::size_t outstanding = 0;
  std::int64_t parked = 0;
};

/// One group: delivers each event until a consumer acknowledges it, or it is parked or skipped.
///
/// Events come as pages while the group is behind, and one by one while it is live. Each is a
/// message: buffered, then outstanding at a consumer, then done; or waiting for its retry; or being
/// parked. A checkpoint never says more than that all before it are done, so what a group loses it
/// delivers again.
///
/// After each call take_actions() has what is to be done; wants_page() and wants_parked() say what
/// is to be read.
class Group {
 public:
  /// Error kInvalidArgument: the filter's regular expression. The clock must outlive the group.
  static Result<Group> make(GroupKey key, GroupSettings settings, Clock& clock);

  [[nodiscard]] const GroupKey& key() const { return key_; }
  [[nodiscard]] const GroupSettings& settings() const { return settings_; }
  /// Whether the filter lets an event through.
  [[nodiscard]] bool keeps(const streams::Event& event) const;

  // --- What is there ---
  /// The group begins: behind its checkpoint, or where its settings say. `end`: what is written
  /// next has this position or a later one. `parked`: numbers of the first and behind the last
  /// link.
  void begin(std::optional<SourcePosition> checkpoint, const SourcePosition& end,
             std::pair<EventNumber, EventNumber> parked);
  struct PageRequest {
    SourcePosition from;  ///< inclusive
    std::size_t count;
  };
  /// What is to be read next; nullopt: nothing at the moment.
  [[nodiscard]] std::optional<PageRequest> wants_page() const;
  /// The page was requested, and comes later.
  void page_requested() { page_requested_ = true; }
  /// `next`: where reading continues. `end`: of what is there; later events come by live().
  void page(std::span<const SourceEntry> entries, const SourcePosition& next, bool end);
  /// An event was committed; all come, in order, from some moment before begin() on.
  void live(const SourceEntry& entry);

  // --- Consumers ---
  /// False: there are as many as may be.
  bool connect(Consumer consumer);
  void disconnect(ConsumerId id);
  [[nodiscard]] const Consumers& consumers() const { return consumers_; }
  /// By the ids of the records that were delivered; others are ignored.
  void acknowledge(std::span<const Uuid> ids);
  void not_acknowledge(std::span<const Uuid> ids, NackAction how, const std::string& reason);

  // --- Parked messages ---
  /// The link is in the parked stream, with this number.
  void parked(MessageKey message, EventNumber number);
  /// Parked messages come again: those before number `stop_at`, or all. `end`: behind the last one.
  void replay(std::optional<std::int64_t> stop_at, EventNumber end);
  /// The number from which parked links are to be read; nullopt: none at the moment.
  [[nodiscard]] std::optional<EventNumber> wants_parked() const;
  /// Links with what they point to. `next`: where reading continues.
  void parked_page(std::span<const EventPointer> links, EventNumber next, bool end);

  // --- Time ---
  /// To be called every second: messages whose time is over, checkpoints, rates.
  void tick();

  [[nodiscard]] GroupStatus status() const;
  std::vector<Action> take_actions() { return std::exchange(actions_, {}); }

 private:
  enum class State : std::uint8_t { kBuffered, kRetry, kOutstanding, kParking };
  struct Message {
    EventPointer event;
    State state = State::kBuffered;
    std::int32_t retry_count = 0;
    /// What a checkpoint says as long as this is the first one that is not done.
    std::optional<SourcePosition> before{};
    ConsumerId consumer = 0;
    Monotonic deadline{0};
  };
  using Messages = std::map<MessageKey, Message>;

  Group(GroupKey key, GroupSettings settings, std::vector<EventMatcher> matcher, Clock& clock);
  [[nodiscard]] bool is_new(const SourcePosition& position) const;
  void enter(const SourceEntry& entry);
  void push();
  void send(Messages::iterator message, Consumer& consumer);
  /// No consumer has it any longer.
  void withdraw(Messages::iterator message);
  void retry(Messages::iterator message);
  void retry_or_park(Messages::iterator message);
  void park(Messages::iterator message, std::string reason);
  void done(Messages::iterator message);
  Messages::iterator outstanding(const Uuid& id);
  void consider_checkpoint(bool by_time);

  GroupKey key_;
  GroupSettings settings_;
  std::vector<EventMatcher> matcher_;  ///< one at most
  Consumers consumers_;
  std::vector<Action> actions_;
  Clock* clock_;

  Messages messages_;                            ///< all that are not done
  std::set<MessageKey> buffered_;                ///< those that were not sent yet
  std::set<MessageKey> retries_;                 ///< those to be sent again
  std::multimap<Uuid, MessageKey> outstanding_;  ///< by the ids of their records
  std::uint64_t next_number_ = 1;
  std::uint64_t next_replayed_ = 1;

  bool begun_ = false;
  bool live_ = false;
  bool page_requested_ = false;
  SourcePosition from_{};                      ///< where the next page begins
  std::optional<SourcePosition> last_seen_{};  ///< messages, and what the filter left out
  std::optional<SourcePosition> last_known_{};
  std::vector<SourcePosition> live_waiting_;  ///< committed while the group is behind

  std::optional<SourcePosition> checkpoint_{};
  std::uint64_t checkpoint_number_ = 0;  ///< of the last message before the checkpoint
  std::optional<Monotonic> checkpoint_time_{};

  EventNumber parked_begin_{0};
  EventNumber parked_end_{0};
  EventNumber replay_from_{0};
  std::optional<EventNumber> replay_until_{};

  std::int64_t total_ = 0;
  std::int64_t total_when_measured_ = 0;
  Monotonic since_;
};

}  // namespace verger::node::persistent
