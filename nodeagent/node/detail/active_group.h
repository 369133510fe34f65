#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "nodeagent/http/notifier.h"
#include "nodeagent/node/detail/node_context.h"
#include "nodeagent/node/persistent/group.h"
#include "nodeagent/node/persistent/group_records.h"
#include "nodeagent/node/write_service.h"

namespace verger::node {

class ActiveGroup;

/// One client's end of a group. Without leave() the group notices its end at the next tick: a
/// destructor may be called where nothing more can be started.
class GroupReader {
 public:
  struct Delivery {
    persistent::EventPointer event;
    std::int32_t retry_count;
  };

  GroupReader(std::shared_ptr<ActiveGroup> group, persistent::ConsumerId id);
  ~GroupReader();
  GroupReader(const GroupReader&) = delete;
  GroupReader& operator=(const GroupReader&) = delete;

  /// The next message; nullopt: none at the moment.
  std::optional<Delivery> next();
  /// The group is gone, or begins anew: no more messages come.
  [[nodiscard]] bool dropped() const { return dropped_; }
  /// What was not answered goes to others at once.
  void leave();
  /// Returns when there may be something new.
  net::awaitable<void> wait() { return wake_.wait(); }
  void wake() { wake_.notify(); }
  void acknowledge(std::span<const Uuid> ids);
  void not_acknowledge(std::span<const Uuid> ids, persistent::NackAction how,
                       const std::string& reason);

 private:
  friend class ActiveGroup;
  std::shared_ptr<ActiveGroup> group_;
  persistent::ConsumerId id_;
  std::deque<Delivery> waiting_;
  bool dropped_ = false;
  bool left_ = false;
  http::Notifier wake_;
};

/// A group on the node that leads: carries out what persistent::Group decides. It reads from the
/// node's database, and writes checkpoints and parked links, in order. It ends with close(), and
/// what it has begun to write is then waited for by settled().
class ActiveGroup : public std::enable_shared_from_this<ActiveGroup> {
 public:
  ActiveGroup(NodeContext& context, WriteFunction write, persistent::Group group);

  [[nodiscard]] const persistent::Group& group() const { return group_; }
  /// Begins behind the checkpoint that is in the log. Errors: those of reading.
  Result<void> begin();
  /// An event was committed.
  void live(const streams::Event& event);
  void tick();
  /// nullptr: as many consumers as may be.
  std::shared_ptr<GroupReader> connect(persistent::Consumer consumer);
  void replay(std::optional<std::int64_t> stop_at);
  /// Drops the consumers; nothing new is begun.
  void close();
  /// Waits for the writes that were under way; call it from a coroutine of the node.
  static net::awaitable<void> settled(std::shared_ptr<ActiveGroup> group);

 private:
  friend class GroupReader;
  /// Carries out what is to be done after each call of the group.
  void follow_up();
  void carry_out(persistent::action::Deliver deliver);
  void carry_out(persistent::action::WriteCheckpoint checkpoint);
  void carry_out(persistent::action::Park park);
  void carry_out(const persistent::action::TruncateParked& truncate);

  Result<void> read_page(const persistent::Group::PageRequest& request);
  Result<void> read_stream_page(const persistent::Group::PageRequest& request);
  Result<void> read_all_page(const persistent::Group::PageRequest& request);
  Result<void> read_parked(EventNumber from);
  [[nodiscard]] persistent::EventPointer event_of(streams::Event record,
                                                  const persistent::SourcePosition& position,
                                                  bool resolve) const;

  static net::awaitable<void> read_on(std::shared_ptr<ActiveGroup> group,
                                      std::shared_ptr<NodeContext> node);
  static net::awaitable<void> write_on(std::shared_ptr<ActiveGroup> group,
                                       std::shared_ptr<NodeContext> node);
  /// The next thing to write; nullopt: nothing.
  struct Pending {
    WriteRequest request;
    std::optional<persistent::MessageKey> parks{};
  };
  std::optional<Pending> next_write();

  NodeContext& context_;
  WriteFunction write_;
  persistent::Group group_;
  std::map<persistent::ConsumerId, GroupReader*> readers_;
  std::vector<persistent::ConsumerId> gone_;  ///< ended without leave()
  persistent::ConsumerId next_consumer_ = 1;
  bool closed_ = false;
  bool reading_ = false;
  bool writing_ = false;
  std::deque<Pending> writes_;  ///< parked links and metadata, in order
  std::optional<persistent::SourcePosition>
      checkpoint_;  ///< to be written; the newest alone counts
};

}  // namespace verger::node
