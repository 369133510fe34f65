#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "nodeagent/http/frames.h"
#include "nodeagent/node/detail/election_driver.h"
#include "nodeagent/node/detail/node_context.h"

namespace verger::node {

/// A follower on its leader's side.
struct Subscriber {
  explicit Subscriber(const net::any_io_executor& executor) : wake(executor) {}
  NodeId node;
  Uuid instance;
  bool voter = true;
  EpochNumber term{-1};
  std::shared_ptr<http::FrameConnection> connection;
  /// Durable on its disk, and the same as ours.
  LogPosition acknowledged{0};
  bool accepted = false;
  bool closed = false;
  Monotonic last_heard{0};
  Monotonic last_sent{0};
  LogPosition sent_commit{-1};
  bool sent_in_quorum = false;
  std::uint64_t sent_round = 0;
  std::uint64_t confirmed_round = 0;  ///< it followed us still when it heard of this one
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  http::Notifier wake;

  void close() {
    closed = true;
    connection->close();
    wake.notify();
  }
};

/// This node as the leader of a term: its subscribers, what a majority has on disk (and so is
/// committed), and the writes that wait for it. How the log gets to a subscriber is in
/// replication_leader.h.
class Leadership {
 public:
  Leadership(NodeContext& context, ElectionDriver& election)
      : context_(context), election_(election) {}

  // --- The election's orders ---
  /// Writes the epoch of `term`; the election hears once it is committed.
  void prepare(EpochNumber term);
  /// No new writes; the election hears once none is in flight.
  void drain() { draining_ = true; }
  void stop();
  /// Those that wait for a commit learn that its outcome is unknown; subscribers are dropped. Also
  /// for a node that ends without its election.
  void drop();
  /// Call it with the node's ticks: drops the silent, wakes for heartbeats, reports to the
  /// election.
  void tick();

  // --- Writes ---
  [[nodiscard]] bool accepts_writes() const;
  [[nodiscard]] bool writes_in_flight() const { return !waiters_.empty(); }
  /// One that waits has a deadline and checks it when `changed` fires.
  [[nodiscard]] bool confirming() const { return confirming_ > 0; }
  /// Something was appended to the log: it is flushed, with all that is appended until the disk is
  /// ready for the next flush, and then counts.
  void appended();
  /// What is durable of our log, or an acknowledgement, moved.
  void advance_commit();
  /// True when committed; false: unknown outcome (time, or leadership ran out).
  static net::awaitable<bool> wait_for_commit(std::shared_ptr<Leadership> leadership,
                                              LogPosition end);
  /// Queries the followers: true once a majority has followed this leader after the call. A leader
  /// that was paused may have a successor and not know it; what it refused by its own log alone
  /// could contradict what that one has acknowledged. False: time, or leadership ran out.
  static net::awaitable<bool> confirm(std::shared_ptr<Leadership> leadership);

  // --- Subscribers ---
  /// The term led; -1: none.
  [[nodiscard]] EpochNumber term() const { return term_; }
  [[nodiscard]] const std::vector<std::shared_ptr<Subscriber>>& subscribers() const {
    return subscribers_;
  }
  /// A node has connected; it is not identified yet.
  void enter(std::shared_ptr<Subscriber> subscriber);
  /// Its log is a prefix of ours: from now on it counts. Its older connections are closed.
  void accept(Subscriber& subscriber);
  /// Its connection is over; it must no longer count for a majority.
  void leave(const std::shared_ptr<Subscriber>& subscriber);

  /// Number of the newest question of confirm(); followers repeat it.
  [[nodiscard]] std::uint64_t round() const { return round_; }

  [[nodiscard]] NodeContext& context() const { return context_; }

 private:
  /// A write that waits for its majority.
  struct CommitWaiter {
    CommitWaiter(const net::any_io_executor& executor, LogPosition of, Monotonic until)
        : end(of), deadline(until), wake(executor) {}
    LogPosition end;
    Monotonic deadline;
    http::Notifier wake;
    bool committed = false;
    /// Leadership ended first: it may or may not survive.
    bool lost = false;
  };

  static net::awaitable<void> flush_appended(std::shared_ptr<Leadership> leadership);
  /// Up to where a majority of the voters has the log on disk; nullopt: fewer are subscribed.
  [[nodiscard]] std::optional<LogPosition> majority_position() const;
  [[nodiscard]] bool majority_confirmed(std::uint64_t round) const;

  NodeContext& context_;
  ElectionDriver& election_;
  EpochNumber term_{-1};
  LogPosition epoch_end_{0};  ///< end of the own epoch's records; only above it commits count
  std::uint64_t round_ = 0;
  int confirming_ = 0;  ///< calls of confirm() under way
  bool draining_ = false;
  bool flushing_ = false;  ///< flush_appended() is under way
  std::list<std::shared_ptr<CommitWaiter>> waiters_;
  std::vector<std::shared_ptr<Subscriber>> subscribers_;
};

}  // namespace verger::node
