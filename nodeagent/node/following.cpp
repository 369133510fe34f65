#include "nodeagent/node/detail/following.h"

#include <algorithm>
#include <utility>

#include "engine/base/failpoint.h"
#include "engine/log/pending_truncation.h"
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
struct IncomingChunk {
  Path path;
  std::unique_ptr<File> file;
  ChunkNumber start;
  std::uint64_t next = 0;
};

Error link_broke() { return {Errc::kUnavailable, "the link broke"}; }

}  // namespace

/// One link to one leader, from the connection to its end.
class Following::Link {
 public:
  Link(Following& following, LeaderInfo leader)
      : following_(following),
        context_(following.context_),
        leader_(std::move(leader)),
        last_heard_(context_.now()),
        wake_(context_.env.executor) {}
  ~Link() { drop_incoming(); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  [[nodiscard]] const LeaderInfo& leader() const { return leader_; }
  [[nodiscard]] bool connected() const { return connection_ != nullptr; }
  [[nodiscard]] Monotonic last_heard() const { return last_heard_; }
  /// Still the link of this node: no other leader, no vote since, no end.
  [[nodiscard]] bool current() const { return !closed_ && following_.holds(*this); }
  void close() {
    closed_ = true;
    if (connection_) {
      connection_->close();
    }
    wake_.notify();
  }

  /// To the end of the link, which is an error.
  static net::awaitable<Error> run(std::shared_ptr<Link> link);

 private:
  static net::awaitable<std::optional<http::Endpoint>> find_endpoint(std::shared_ptr<Link> link);
  static net::awaitable<Result<void>> connect(std::shared_ptr<Link> link);
  static net::awaitable<Result<void>> subscribe(std::shared_ptr<Link> link);
  static net::awaitable<void> acknowledge(std::shared_ptr<Link> link);
  Subscribe subscription() const;
  Result<void> truncate(LogPosition position);
  Result<bool> take(const Message& message);
  Result<bool> take_batch(const Batch& batch);
  Result<bool> take_completion(const CompleteChunk& complete);
  Result<bool> take_raw(const RawChunk& piece);
  /// What the leader has committed, as far as it is durable here.
  void commit();
  void report(LinkState standing);
  Error misplaced(std::string_view what, LogPosition at) const;
  void drop_incoming();

  Following& following_;
  NodeContext& context_;
  LeaderInfo leader_;
  std::shared_ptr<http::FrameConnection> connection_;
  Monotonic last_heard_;
  bool closed_ = false;
  std::optional<LinkState> standing_;
  Bytes partial_;
  std::uint64_t round_ = 0;       ///< of the last progress
  LogPosition leader_commit_{0};  ///< likewise
  bool owes_answer_ = false;      ///< acknowledge() has something to do
  http::Notifier wake_;           ///< of acknowledge()
  std::optional<IncomingChunk> incoming_;
};

// --- Subscribing ---

/// The leader's replication endpoint, by gossip; calls the leader itself when it is not known yet.
net::awaitable<std::optional<http::Endpoint>> Following::Link::find_endpoint(
    std::shared_ptr<Link> link) {
  auto& gossip = link->following_.gossip_;
  auto& context = link->context_;
  const auto& leader = link->leader_;
  const auto* member = gossip.find(leader.node);
  if (member != nullptr && (member->instance != leader.instance)) {
    co_await GossipService::exchange(context.keep(gossip), member->http);
    member = context.serving() ? gossip.find(leader.node) : nullptr;
  }
  if (member == nullptr || member->instance != leader.instance) {
    co_return std::nullopt;
  }
  co_return member->replication;
}

net::awaitable<Result<void>> Following::Link::connect(std::shared_ptr<Link> link) {
  const auto endpoint = co_await find_endpoint(link);
  if (!endpoint || !link->current()) {
    co_return Error{Errc::kUnavailable, "its replication endpoint is not known"};
  }
  const auto& context = link->context_;
  auto connection =
      co_await context.env.frames.connect(*endpoint, context.options.timings.heartbeat_timeout);
  if (!connection) {
    co_return connection.error();
  }
  if (!link->current()) {
    (*connection)->close();
    co_return Error{Errc::kCancelled, "another leader was elected"};
  }
  link->connection_ = *connection;
  co_return Result<void>();
}

Subscribe Following::Link::subscription() const {
  const auto& log = context_.log();
  Subscribe request;
  request.node = context_.self;
  request.instance = context_.instance;
  request.read_only = context_.options.read_only_replica;
  request.cluster_size = context_.options.cluster_size;
  request.chunk_size = log.chunk_size();
  request.term = leader_.term;
  request.epochs = epoch_claims(log);
  request.writer = record_end_before(log, log.end());
  request.committed = context_.db().committed();
  return request;
}

Result<void> Following::Link::truncate(LogPosition position) {
  VERGER_FAILPOINT("node.truncate.before");
  context_.env.log.warning("truncating the log",
                           {{"node", context_.self},
                            {"from", std::to_string(context_.log().end().value())},
                            {"to", std::to_string(position.value())}});
  if (context_.options.misbehaviour.exits_to_truncate) {
    VERGER_RETURN_IF_ERROR(
        log::note_truncation(context_.env.files, context_.log().directory(), position));
    context_.env.on_shutdown();
    return Error{Errc::kCancelled, "the process ends in order to cut its log"};
  }
  VERGER_RETURN_IF_ERROR(context_.db().truncate(position));
  VERGER_FAILPOINT("node.truncate.after");
  last_heard_ = context_.now();
  following_.election_.refresh_log();
  return {};
}

/// Until the leader accepts; the log is truncated as it orders.
net::awaitable<Result<void>> Following::Link::subscribe(std::shared_ptr<Link> link) {
  // Of an earlier link there may be records that no flush has finished.
  VERGER_CO_RETURN_IF_ERROR(link->context_.db().flush());
  for (;;) {
    VERGER_CO_RETURN_IF_ERROR(co_await link->connection_->send(encode(link->subscription())));
    const auto frame = co_await link->connection_->receive();
    if (!frame || !link->current()) {
      co_return link_broke();
    }
    link->last_heard_ = link->context_.now();
    VERGER_CO_TRY(const auto answer, decode(*frame));
    if (const auto* truncate = std::get_if<Truncate>(&answer)) {
      VERGER_CO_RETURN_IF_ERROR(link->truncate(truncate->position));
    } else if (const auto* refused = std::get_if<Refused>(&answer)) {
      co_return Error{Errc::kRefused, refused->reason};
    } else if (const auto* accepted = std::get_if<Accepted>(&answer);
               accepted != nullptr && accepted->term == link->leader_.term) {
      co_return Result<void>();
    } else {
      co_return Error{Errc::kCorruption, "replication: not an answer to a subscription"};
    }
  }
}

// --- The stream ---

net::awaitable<Error> Following::Link::run(std::shared_ptr<Link> link) {
  if (const auto connected = co_await connect(link); !connected) {
    co_return connected.error();
  }
  if (const auto subscribed = co_await subscribe(link); !subscribed) {
    co_return subscribed.error();
  }
  link->report(LinkState::kSubscribed);
  link->context_.spawn(acknowledge(link));
  while (link->current()) {
    const auto frame = co_await link->connection_->receive();
    // A vote given meanwhile closes the link: nothing more is acknowledged to this leader.
    if (!frame || !link->current()) {
      break;
    }
    link->last_heard_ = link->context_.now();
    const auto message = decode(*frame);
    if (!message) {
      co_return message.error();
    }
    const auto taken = link->take(*message);
    if (!taken) {
      co_return taken.error();
    }
    if (*taken) {
      link->owes_answer_ = true;
      link->wake_.notify();
    }
  }
  co_return link_broke();
}

/// Flushes what has come, all of it at once, and says so, as long as the link lives. Meanwhile
/// more comes in.
net::awaitable<void> Following::Link::acknowledge(std::shared_ptr<Link> link) {
  auto& context = link->context_;
  while (link->current()) {
    if (!std::exchange(link->owes_answer_, false)) {
      co_await link->wake_.wait();
      continue;
    }
    const auto flush = context.db().begin_flush();
    if (!flush) {
      context.fail(flush.error().within("flush"));
      co_return;
    }
    if (*flush != nullptr) {
      static_cast<void>(co_await context.sync(*flush));  // finish_flush() has the same outcome
      // A vote given meanwhile closed the link: nothing more is acknowledged to this leader.
      if (!link->current()) {
        co_return;
      }
      if (const auto finished = context.db().finish_flush(); !finished) {
        context.fail(finished.error().within("flush"));
        co_return;
      }
      link->commit();
    }
    const Ack ack{context.log().end(), link->round_};
    if (const auto sent = co_await link->connection_->send(encode(ack)); !sent) {
      link->close();
    }
  }
}

/// One message of the stream. True when there is something to flush, or an answer is due.
Result<bool> Following::Link::take(const Message& message) {
  if (const auto* batch = std::get_if<Batch>(&message)) {
    return take_batch(*batch);
  }
  if (const auto* complete = std::get_if<CompleteChunk>(&message)) {
    return take_completion(*complete);
  }
  if (const auto* fresh = std::get_if<NewChunk>(&message)) {
    VERGER_RETURN_IF_ERROR(context_.log().start_replicated_chunk(fresh->header));
    return false;
  }
  if (const auto* raw = std::get_if<RawChunk>(&message)) {
    return take_raw(*raw);
  }
  if (const auto* progress = std::get_if<Progress>(&message)) {
    round_ = progress->round;
    leader_commit_ = progress->commit;
    commit();
    report(progress->in_quorum   ? LinkState::kInQuorum
           : progress->caught_up ? LinkState::kCaughtUp
                                 : LinkState::kSubscribed);
    return true;
  }
  return Error{Errc::kCorruption, "replication: a message that a leader does not send"};
}

Result<bool> Following::Link::take_batch(const Batch& batch) {
  if (partial_.empty() && batch.last) {
    if (batch.position != context_.log().append_position()) {
      return misplaced("records", batch.position);
    }
    VERGER_RETURN_IF_ERROR(context_.db().append_replicated(batch.bytes, streams::Flush::kLater));
    return true;
  }
  append_bytes(partial_, batch.bytes);
  if (!batch.last) {
    return false;
  }
  if (batch.position != context_.log().append_position()) {
    return misplaced("records", batch.position);
  }
  VERGER_RETURN_IF_ERROR(
      context_.db().append_replicated(std::exchange(partial_, {}), streams::Flush::kLater));
  return true;
}

Result<bool> Following::Link::take_completion(const CompleteChunk& complete) {
  if (context_.log().append_position() != complete.end) {
    return misplaced("chunk completion", complete.end);
  }
  VERGER_RETURN_IF_ERROR(context_.log().complete_replicated_chunk());
  return true;
}

Result<bool> Following::Link::take_raw(const RawChunk& piece) {
  if (piece.offset == 0) {
    drop_incoming();
    IncomingChunk incoming;
    incoming.path =
        context_.log().directory() / fmt::format("replicated-{:06}.chunk.tmp", piece.start.value());
    static_cast<void>(context_.env.files.remove(incoming.path));
    VERGER_TRY(incoming.file, context_.env.files.open(incoming.path, OpenMode::kCreateNew));
    incoming.start = piece.start;
    incoming_ = std::move(incoming);
  }
  if (!incoming_ || piece.offset != incoming_->next || piece.start != incoming_->start) {
    return Error{Errc::kCorruption, "replication: a piece of a chunk is missing"};
  }
  VERGER_RETURN_IF_ERROR(incoming_->file->write_at(piece.offset, piece.bytes));
  incoming_->next += piece.bytes.size();
  if (incoming_->next < piece.total) {
    return false;
  }
  VERGER_RETURN_IF_ERROR(incoming_->file->sync());
  incoming_->file.reset();
  VERGER_FAILPOINT("node.replicate.before-install");
  // It takes the place of what is here of it in one step; what was acknowledged is there before
  // and after.
  VERGER_RETURN_IF_ERROR(context_.db().receive_chunk(incoming_->path));
  incoming_.reset();
  VERGER_FAILPOINT("node.replicate.chunk-received");
  return true;
}

void Following::Link::drop_incoming() {
  if (incoming_) {
    incoming_->file.reset();
    if (context_.serving()) {
      static_cast<void>(context_.env.files.remove(incoming_->path));
    }
    incoming_.reset();
  }
}

void Following::Link::commit() {
  const auto commit = std::min(leader_commit_, context_.log().end());
  if (commit <= context_.db().committed()) {
    return;
  }
  VERGER_FAILPOINT("node.commit.before-index");
  if (const auto done = context_.db().commit_up_to(commit); !done) {
    context_.fail(done.error().within("commit"));
    return;
  }
  context_.changed.notify();
}

void Following::Link::report(LinkState standing) {
  if (standing != standing_) {
    standing_ = standing;
    following_.election_.link_changed(leader_.term, standing);
  }
}

Error Following::Link::misplaced(std::string_view what, LogPosition at) const {
  return {Errc::kConflict, fmt::format("replication: {} at {}, but the log ends at {}", what, at,
                                       context_.log().append_position())};
}

// --- The part ---

Following::Following(NodeContext& context, GossipService& gossip, ElectionDriver& election)
    : context_(context), gossip_(gossip), election_(election) {}

Following::~Following() = default;

void Following::follow(const LeaderInfo& leader) {
  if (link_) {
    link_->close();
  }
  link_ = std::make_shared<Link>(*this, leader);
  context_.spawn(run(context_.keep(*this), link_));
}

void Following::stop() {
  if (link_) {
    link_->close();
    link_.reset();
  }
}

void Following::tick() {
  if (link_ && context_.now() - link_->last_heard() > context_.options.timings.heartbeat_timeout) {
    context_.env.log.warning("the leader is silent",
                             {{"node", context_.self}, {"leader", link_->leader().node}});
    link_->close();
  }
}

bool Following::holds(const Link& link) const { return context_.serving() && link_.get() == &link; }

const LeaderInfo* Following::connected_leader() const {
  return link_ && link_->connected() ? &link_->leader() : nullptr;
}

net::awaitable<void> Following::run(std::shared_ptr<Following> following,
                                    std::shared_ptr<Link> link) {
  const auto error = co_await Link::run(link);
  auto& context = following->context_;
  link->close();
  if (!following->holds(*link)) {
    co_return;
  }
  const auto& leader = link->leader();
  context.env.log.warning(
      "no link to the leader",
      {{"node", context.self}, {"leader", leader.node}, {"reason", error.message}});
  if (error.code == Errc::kIo || error.code == Errc::kNoSpace) {
    context.fail(error);
    co_return;
  }
  if (error.code == Errc::kRefused || error.code == Errc::kCorruption) {
    co_await context.env.timers.sleep_for(context.options.timings.reconnect_delay);
  }
  if (following->holds(*link)) {
    following->link_.reset();
    following->election_.link_changed(leader.term, LinkState::kLost);
    following->gossip_.look_after(leader.node);
  }
}

}  // namespace verger::node
