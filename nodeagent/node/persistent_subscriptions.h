#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nodeagent/node/detail/active_group.h"

namespace verger::node {

/// Why a request about a group was not carried out.
struct SubscriptionError {
  enum class Code : std::uint8_t {
    kNotReady,  ///< this node does not lead, or not yet
    kNotFound,
    kExists,
    kTooManyConsumers,
    kFailed,   ///< `reason` says what is wrong with the request
    kTimeout,  ///< unknown: the change may still come about
  };
  Code code = Code::kNotReady;
  std::string reason{};
};
using SubscriptionResult = std::expected<void, SubscriptionError>;

/// The persistent subscriptions of a cluster, served by the node that leads it. What they are is in
/// `$persistentSubscriptionConfig`; where each group is, and what it parked, in streams of its own.
class PersistentSubscriptions {
 public:
  PersistentSubscriptions(NodeContext& context, WriteFunction write)
      : context_(context), write_(std::move(write)) {}

  /// This node leads: its groups begin where the log says.
  void lead();
  /// It leads no longer, or begins anew: all consumers are dropped.
  void stop();
  /// Call it with the node's ticks.
  void tick();
  /// Leading, with all groups at hand.
  [[nodiscard]] bool ready() const { return ready_; }
  /// When groups look at their timeouts next.
  [[nodiscard]] Monotonic next_tick() const { return next_tick_; }

  /// nullptr: no such group.
  [[nodiscard]] const persistent::Group* find(const persistent::GroupKey& key) const;
  /// By stream, in the order in which they were created.
  [[nodiscard]] std::vector<const persistent::Group*> all() const;

  using Self = std::shared_ptr<PersistentSubscriptions>;
  static net::awaitable<SubscriptionResult> create(Self self, persistent::GroupConfig config,
                                                   std::string user);
  /// The checkpoint and the filter remain; consumers are dropped.
  static net::awaitable<SubscriptionResult> update(Self self, persistent::GroupConfig config,
                                                   std::string user);
  static net::awaitable<SubscriptionResult> remove(Self self, persistent::GroupKey key,
                                                   std::string user);
  std::expected<std::shared_ptr<GroupReader>, SubscriptionError> connect(
      const persistent::GroupKey& key, persistent::Consumer consumer);
  SubscriptionResult replay(const persistent::GroupKey& key, std::optional<std::int64_t> stop_at);
  /// False: this node does not lead.
  bool restart();

 private:
  class Turn;
  using Groups = std::vector<std::shared_ptr<ActiveGroup>>;
  Groups::iterator position_of(const persistent::GroupKey& key);
  [[nodiscard]] std::optional<SubscriptionError> problem_with(
      const persistent::GroupConfig& config) const;
  std::expected<std::shared_ptr<ActiveGroup>, SubscriptionError> make_group(
      const persistent::GroupConfig& config);
  [[nodiscard]] std::vector<persistent::GroupConfig> configuration() const;
  static net::awaitable<SubscriptionResult> write_configuration(
      Self self, std::vector<persistent::GroupConfig> groups, std::string user);
  Result<void> load();
  static net::awaitable<void> follow_log(Self self, std::uint64_t term);

  NodeContext& context_;
  WriteFunction write_;
  Groups groups_;
  bool ready_ = false;
  bool changing_ = false;   ///< a change of the configuration is under way
  std::uint64_t term_ = 0;  ///< counts lead() and stop()
  streams::AllPosition followed_{};
  Monotonic next_tick_{0};
};

}  // namespace verger::node
