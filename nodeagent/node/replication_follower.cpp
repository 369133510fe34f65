// The follower's side of the replication link (docs/formats/replication.md).
#include <algorithm>

#include "engine/base/failpoint.h"
#include "engine/log/pending_truncation.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/replication_messages.h"
#include "nodeagent/node/replication_placement.h"

namespace verger::node {
namespace {

using replication::Accepted;
using replication::Ack;
using replication::Batch;
using replication::CompleteChunk;
using replication::decode;
using replication::encode;
using replication::epoch_claims;
using replication::Message;
using replication::NewChunk;
using replication::Progress;
using replication::RawChunk;
using replication::record_end_before;
using replication::Refused;
using replication::Subscribe;
using replication::Truncate;

/// A scavenged chunk on its way in: its file under a temporary name.
struct Incoming {
  Path path;
  std::unique_ptr<File> file;
  ChunkNumber start;
  std::uint64_t next = 0;
};

class Follower {
 public:
  Follower(std::shared_ptr<Core> core, std::shared_ptr<LeaderLink> link)
      : core_(std::move(core)), link_(std::move(link)) {}
  ~Follower() { drop_incoming(); }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  [[nodiscard]] bool current() const {
    return core_->serving() && !link_->closed && core_->link == link_;
  }

  Subscribe subscription() const {
    auto& log = core_->log();
    Subscribe request;
    request.node = core_->self;
    request.instance = core_->instance;
    request.read_only = core_->options.read_only_replica;
    request.cluster_size = core_->options.cluster_size;
    request.chunk_size = log.chunk_size();
    request.term = link_->leader.term;
    request.epochs = epoch_claims(log);
    request.writer = record_end_before(log, log.end());
    request.committed = core_->db().committed();
    return request;
  }

  Result<void> truncate(LogPosition position) {
    VERGER_FAILPOINT("node.truncate.before");
    core_->env.log.warning("truncating the log",
                           {{"node", core_->self},
                            {"from", std::to_string(core_->log().end().value())},
                            {"to", std::to_string(position.value())}});
    if (core_->options.misbehaviour.exits_to_truncate) {
      VERGER_CHECK(log::note_truncation(core_->env.files, core_->log().directory(), position));
      core_->env.on_shutdown();
      return Error{Errc::kCancelled, "the process ends in order to cut its log"};
    }
    VERGER_CHECK(core_->db().truncate(position));
    VERGER_FAILPOINT("node.truncate.after");
    return {};
  }

  /// One message of the stream. True when what is durable has moved, or an answer is due.
  Result<bool> take(const Message& message) {
    if (const auto* batch = std::get_if<Batch>(&message)) {
      return take_batch(*batch);
    }
    if (const auto* complete = std::get_if<CompleteChunk>(&message)) {
      if (core_->log().append_position() != complete->end) {
        return misplaced("chunk completion", complete->end);
      }
      VERGER_CHECK(core_->log().complete_replicated_chunk());
      return true;
    }
    if (const auto* fresh = std::get_if<NewChunk>(&message)) {
      VERGER_CHECK(core_->log().start_replicated_chunk(fresh->header));
      return false;
    }
    if (const auto* raw = std::get_if<RawChunk>(&message)) {
      return take_raw(*raw);
    }
    if (const auto* progress = std::get_if<Progress>(&message)) {
      core_->commit_replicated(progress->commit);
      const auto standing = progress->in_quorum   ? LinkState::kInQuorum
                            : progress->caught_up ? LinkState::kCaughtUp
                                                  : LinkState::kSubscribed;
      report(standing);
      return true;
    }
    return Error{Errc::kCorruption, "replication: a message that a leader does not send"};
  }

  void report(LinkState standing) {
    if (standing != standing_) {
      standing_ = standing;
      core_->apply(core_->election->link(core_->now(), link_->leader.term, standing));
    }
  }

 private:
  Error misplaced(std::string_view what, LogPosition at) const {
    return {Errc::kConflict, fmt::format("replication: {} at {}, but the log ends at {}", what, at,
                                         core_->log().append_position())};
  }

  Result<bool> take_batch(const Batch& batch) {
    if (partial_.empty() && batch.last) {
      if (batch.position != core_->log().append_position()) {
        return misplaced("records", batch.position);
      }
      VERGER_CHECK(core_->db().append_replicated(batch.bytes));
      return true;
    }
    append_bytes(partial_, batch.bytes);
    if (!batch.last) {
      return false;
    }
    if (batch.position != core_->log().append_position()) {
      return misplaced("records", batch.position);
    }
    VERGER_CHECK(core_->db().append_replicated(std::exchange(partial_, {})));
    return true;
  }

  Result<bool> take_raw(const RawChunk& piece) {
    if (piece.offset == 0) {
      drop_incoming();
      Incoming incoming;
      incoming.path =
          core_->log().directory() / fmt::format("replicated-{:06}.chunk.tmp", piece.start.value());
      static_cast<void>(core_->env.files.remove(incoming.path));
      VERGER_TRY(incoming.file, core_->env.files.open(incoming.path, OpenMode::kCreateNew));
      incoming.start = piece.start;
      incoming_ = std::move(incoming);
    }
    if (!incoming_ || piece.offset != incoming_->next || piece.start != incoming_->start) {
      return Error{Errc::kCorruption, "replication: a piece of a chunk is missing"};
    }
    VERGER_CHECK(incoming_->file->write_at(piece.offset, piece.bytes));
    incoming_->next += piece.bytes.size();
    if (incoming_->next < piece.total) {
      return false;
    }
    VERGER_CHECK(incoming_->file->sync());
    incoming_->file.reset();
    VERGER_FAILPOINT("node.replicate.before-install");
    // It takes the place of what is here of it in one step; what was acknowledged is there before
    // and after.
    VERGER_CHECK(core_->db().receive_chunk(incoming_->path));
    incoming_.reset();
    VERGER_FAILPOINT("node.replicate.chunk-received");
    return true;
  }

  void drop_incoming() {
    if (incoming_) {
      incoming_->file.reset();
      if (core_->serving()) {
        static_cast<void>(core_->env.files.remove(incoming_->path));
      }
      incoming_.reset();
    }
  }

  std::shared_ptr<Core> core_;
  std::shared_ptr<LeaderLink> link_;
  std::optional<LinkState> standing_;
  Bytes partial_;
  std::optional<Incoming> incoming_;
};

/// The leader's replication endpoint, by gossip; asks the leader itself when it is not known yet.
net::awaitable<std::optional<http::Endpoint>> find_endpoint(std::shared_ptr<Core> core,
                                                            LeaderInfo leader) {
  const auto* member = core->members.find(leader.node);
  if (member != nullptr && (member->instance != leader.instance)) {
    co_await gossip_with(core, member->http);
    member = core->serving() ? core->members.find(leader.node) : nullptr;
  }
  if (member == nullptr || member->instance != leader.instance) {
    co_return std::nullopt;
  }
  co_return member->replication;
}

/// Connects, subscribes, truncates as told. False: no link came about.
net::awaitable<Result<void>> subscribe(std::shared_ptr<Core> core, std::shared_ptr<LeaderLink> link,
                                       std::shared_ptr<Follower> follower) {
  const auto endpoint = co_await find_endpoint(core, link->leader);
  if (!endpoint || !follower->current()) {
    co_return Error{Errc::kUnavailable, "its replication endpoint is not known"};
  }
  auto connection =
      co_await core->env.frames.connect(*endpoint, core->options.timings.heartbeat_timeout);
  if (!connection) {
    co_return connection.error();
  }
  if (!follower->current()) {
    (*connection)->close();
    co_return Error{Errc::kCancelled, "another leader was elected"};
  }
  link->connection = *connection;
  for (;;) {
    VERGER_CO_CHECK(co_await link->connection->send(encode(follower->subscription())));
    const auto frame = co_await link->connection->receive();
    if (!frame || !follower->current()) {
      co_return Error{Errc::kUnavailable, "the link broke"};
    }
    link->last_heard = core->now();
    VERGER_CO_TRY(const auto answer, decode(*frame));
    if (const auto* truncate = std::get_if<Truncate>(&answer)) {
      VERGER_CO_CHECK(follower->truncate(truncate->position));
      link->last_heard = core->now();
      core->refresh_log();
    } else if (const auto* refused = std::get_if<Refused>(&answer)) {
      co_return Error{Errc::kRefused, refused->reason};
    } else if (const auto* accepted = std::get_if<Accepted>(&answer);
               accepted != nullptr && accepted->term == link->leader.term) {
      co_return Result<void>();
    } else {
      co_return Error{Errc::kCorruption, "replication: not an answer to a subscription"};
    }
  }
}

net::awaitable<Result<void>> run(std::shared_ptr<Core> core, std::shared_ptr<LeaderLink> link,
                                 std::shared_ptr<Follower> follower) {
  VERGER_CO_CHECK(co_await subscribe(core, link, follower));
  follower->report(LinkState::kSubscribed);
  while (follower->current()) {
    const auto frame = co_await link->connection->receive();
    // A vote given meanwhile closes the link: nothing more is acknowledged to this leader.
    if (!frame || !follower->current()) {
      break;
    }
    link->last_heard = core->now();
    VERGER_CO_TRY(const auto message, decode(*frame));
    const auto taken = follower->take(message);
    if (!taken) {
      co_return taken.error();
    }
    if (*taken && follower->current()) {
      VERGER_CO_CHECK(co_await link->connection->send(encode(Ack{core->log().end()})));
    }
  }
  co_return Error{Errc::kUnavailable, "the link broke"};
}

}  // namespace

net::awaitable<void> follow_leader(std::shared_ptr<Core> core, std::shared_ptr<LeaderLink> link) {
  auto follower = std::make_shared<Follower>(core, link);
  const auto ended = co_await run(core, link, follower);
  const bool mine = follower->current() || (core->serving() && core->link == link);
  link->close();
  if (!mine || ended.has_value()) {
    co_return;
  }
  const auto& error = ended.error();
  const bool disk = error.code == Errc::kIo || error.code == Errc::kNoSpace;
  core->env.log.warning(
      "no link to the leader",
      {{"node", core->self}, {"leader", link->leader.node}, {"reason", error.message}});
  if (disk) {
    core->fail(error);
    co_return;
  }
  if (error.code == Errc::kRefused || error.code == Errc::kCorruption) {
    co_await core->env.timers.sleep_for(core->options.timings.reconnect_delay);
  }
  if (core->serving() && core->link == link) {
    core->link.reset();
    core->apply(core->election->link(core->now(), link->leader.term, LinkState::kLost));
    if (const auto* member = core->members.find(link->leader.node)) {
      core->tasks->spawn(gossip_with(core, member->http));
    }
  }
}

}  // namespace verger::node
