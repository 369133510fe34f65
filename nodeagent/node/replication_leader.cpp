#include "nodeagent/node/detail/replication_leader.h"

#include <algorithm>
#include <utility>

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
using replication::kPieceSize;
using replication::Message;
using replication::NewChunk;
using replication::place_follower;
using replication::Placement;
using replication::Progress;
using replication::RawChunk;
using replication::Refused;
using replication::Subscribe;
using replication::Truncate;

constexpr std::size_t kBatchBytes = 256UZ * 1024;
/// Sent and not yet acknowledged, in log positions.
constexpr std::int64_t kWindow = 8LL * 1024 * 1024;
/// A follower that is so near counts as caught up (node-interface.md §3.7).
constexpr std::int64_t kCaughtUpDistance = 1024;

using Leader = std::shared_ptr<Leadership>;
using Follower = std::shared_ptr<Subscriber>;

bool still_current(const Leadership& leader, const Subscriber& follower) {
  return leader.context().serving() && !follower.closed && leader.term() == follower.term;
}

net::awaitable<bool> send(Leader leader, Follower follower, Message message) {
  auto frame = encode(message);
  follower->bytes_sent += frame.size();
  const auto sent = co_await follower->connection->send(std::move(frame));
  follower->last_sent = leader->context().now();
  co_return sent.has_value() && still_current(*leader, *follower);
}

/// Whole framed records from `position` on, ended between two writes.
Result<Bytes> read_batch(const log::Chunk& chunk, LogPosition position, LogPosition limit) {
  Bytes batch;
  Bytes buffer;
  bool between_writes = true;
  while (position < limit && (!between_writes || batch.size() < kBatchBytes)) {
    VERGER_TRY(const auto record, chunk.read(position, buffer));
    append_bytes(batch, record.framed);
    position = position + static_cast<std::int64_t>(record.framed.size());
    const auto* prepare = record.prepare();
    between_writes = prepare == nullptr || !prepare->has(log::prepare_flags::kIsCommitted) ||
                     prepare->has(log::prepare_flags::kTransactionEnd);
  }
  return batch;
}

net::awaitable<bool> send_batch(Leader leader, Follower follower, LogPosition position,
                                Bytes records) {
  for (std::size_t at = 0; at < records.size(); at += kPieceSize) {
    const auto size = std::min(kPieceSize, records.size() - at);
    const auto piece = ByteView(records).subspan(at, size);
    Batch batch{position, at + size == records.size(), Bytes(piece.begin(), piece.end())};
    if (!co_await send(leader, follower, std::move(batch))) {
      co_return false;
    }
  }
  co_return true;
}

net::awaitable<bool> send_raw(Leader leader, Follower follower,
                              std::shared_ptr<const log::Chunk> chunk) {
  const auto total = chunk->file_size();
  for (std::uint64_t at = 0; at < total; at += kPieceSize) {
    RawChunk piece{chunk->start(), chunk->end(), at, total, {}};
    piece.bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kPieceSize, total - at)));
    if (const auto read = chunk->read_raw(at, piece.bytes); !read) {
      leader->context().env.log.error(
          "chunk not sent", {{"chunk", chunk->path().string()}, {"reason", read.error().message}});
      co_return false;
    }
    if (!co_await send(leader, follower, std::move(piece))) {
      co_return false;
    }
  }
  co_return true;
}

/// Commit position and standing, when they changed or silence has lasted long enough.
net::awaitable<bool> send_progress(Leader leader, Follower follower) {
  const auto& context = leader->context();
  const auto end = context.log().end();
  const auto commit = context.db().committed();
  const bool caught_up = end - follower->acknowledged <= kCaughtUpDistance;
  const bool in_quorum = follower->sent_in_quorum || caught_up;
  const bool due =
      context.now() - follower->last_sent >= context.options.timings.heartbeat_interval;
  const auto round = leader->round();
  if (commit == follower->sent_commit && in_quorum == follower->sent_in_quorum &&
      round == follower->sent_round && !due) {
    co_return true;
  }
  follower->sent_commit = commit;
  follower->sent_in_quorum = in_quorum;
  follower->sent_round = round;
  co_return co_await send(leader, follower, Progress{commit, end, caught_up, in_quorum, round});
}

net::awaitable<void> send_log(Leader leader, Follower follower, LogPosition position) {
  const auto& context = leader->context();
  std::shared_ptr<const log::Chunk> chunk;
  while (still_current(*leader, *follower)) {
    if (!co_await send_progress(leader, follower)) {
      break;
    }
    const auto& log = context.log();
    if (position >= log.end() || position - follower->acknowledged > kWindow) {
      co_await follower->wake.wait();
      continue;
    }
    if (chunk == nullptr || position >= chunk->end_position()) {
      chunk = log.chunk_at(position);
      if (chunk == nullptr) {
        co_await follower->wake.wait();
        continue;
      }
      if (!chunk->header().scavenged && position == chunk->start_position() &&
          !co_await send(leader, follower, NewChunk{chunk->header()})) {
        break;
      }
    }
    if (chunk->header().scavenged) {
      if (!co_await send_raw(leader, follower, chunk)) {
        break;
      }
      position = chunk->end_position();
      continue;
    }
    const auto data_end = chunk->start_position() + chunk->data_size();
    if (position < data_end) {
      auto batch = read_batch(*chunk, position, data_end);
      if (!batch) {
        context.env.log.error("records not sent",
                              {{"follower", follower->node}, {"reason", batch.error().message}});
        break;
      }
      const auto size = static_cast<std::int64_t>(batch->size());
      if (!co_await send_batch(leader, follower, position, *std::move(batch))) {
        break;
      }
      position = position + size;
    } else if (chunk->completed()) {
      if (!co_await send(leader, follower, CompleteChunk{position})) {
        break;
      }
      position = chunk->end_position();
    } else {
      // The log continues in the next chunk, so this one was completed, and maybe scavenged since.
      chunk = log.chunk_at(chunk->start_position());
      if (chunk == nullptr || !chunk->completed()) {
        chunk = nullptr;
        co_await follower->wake.wait();
      }
    }
  }
  follower->close();
}

std::string refusal(const Leadership& leader, const Subscribe& request) {
  const auto& context = leader.context();
  if (!context.serving() || leader.term().value() < 0) {
    return "this node is not the leader";
  }
  if (request.term != leader.term()) {
    return fmt::format("this node leads term {}, not {}", leader.term(), request.term);
  }
  if (!request.read_only && request.cluster_size != context.options.cluster_size) {
    return fmt::format("its cluster size is {}, ours {}: configure all nodes alike",
                       request.cluster_size, context.options.cluster_size);
  }
  return {};
}

/// Handshake: until the follower's log is a prefix of ours. nullopt: refused, or gone.
net::awaitable<std::optional<LogPosition>> agree(Leader leader, Follower follower) {
  const auto& context = leader->context();
  while (!follower->closed) {
    const auto frame = co_await follower->connection->receive();
    if (!frame) {
      co_return std::nullopt;
    }
    follower->last_heard = context.now();
    const auto message = decode(*frame);
    const auto* request = message ? std::get_if<Subscribe>(&*message) : nullptr;
    if (request == nullptr) {
      context.env.log.warning("replication: a connection does not begin with a subscription");
      co_return std::nullopt;
    }
    auto reason = refusal(*leader, *request);
    Placement placement;
    if (reason.empty()) {
      placement = place_follower(context.log(), *request);
      reason = placement.reason;
    }
    if (placement.kind == Placement::Kind::kRefuse) {
      context.env.log.warning("follower refused",
                              {{"follower", request->node}, {"reason", reason}});
      static_cast<void>(co_await follower->connection->send(encode(Refused{reason})));
      co_return std::nullopt;
    }
    follower->node = request->node;
    follower->instance = request->instance;
    follower->voter = !request->read_only;
    follower->term = leader->term();
    if (placement.kind == Placement::Kind::kStart) {
      follower->acknowledged = placement.position;
      co_return placement.position;
    }
    context.env.log.info("follower has to truncate",
                         {{"follower", request->node},
                          {"from", std::to_string(request->writer.place.value())},
                          {"to", std::to_string(placement.position.value())}});
    const auto sent = co_await follower->connection->send(encode(Truncate{placement.position}));
    if (!sent) {
      co_return std::nullopt;
    }
  }
  co_return std::nullopt;
}

net::awaitable<void> serve(Leader leader, std::shared_ptr<GossipService> gossip,
                           Follower follower) {
  const auto start = co_await agree(leader, follower);
  if (!start || !still_current(*leader, *follower)) {
    co_return;
  }
  leader->accept(*follower);
  if (!co_await send(leader, follower, Accepted{follower->term, *start})) {
    co_return;
  }
  auto& context = leader->context();
  gossip->mark_alive(follower->node);
  context.spawn(send_log(leader, follower, *start));
  leader->advance_commit();
  while (still_current(*leader, *follower)) {
    const auto frame = co_await follower->connection->receive();
    if (!frame || !still_current(*leader, *follower)) {
      break;
    }
    follower->bytes_received += frame->size();
    const auto message = decode(*frame);
    const auto* ack = message ? std::get_if<Ack>(&*message) : nullptr;
    if (ack == nullptr || ack->durable > context.log().end()) {
      context.env.log.error("replication: not an acknowledgement", {{"follower", follower->node}});
      break;
    }
    follower->last_heard = context.now();
    follower->acknowledged = ack->durable;
    if (std::exchange(follower->confirmed_round, ack->round) != ack->round) {
      context.changed.notify();
    }
    leader->advance_commit();
  }
}

}  // namespace

net::awaitable<void> serve_follower(std::shared_ptr<Leadership> leadership,
                                    std::shared_ptr<GossipService> gossip,
                                    std::shared_ptr<http::FrameConnection> connection) {
  const auto& context = leadership->context();
  if (!context.serving()) {
    co_return;
  }
  auto follower = std::make_shared<Subscriber>(context.env.executor);
  follower->connection = std::move(connection);
  follower->last_heard = context.now();
  leadership->enter(follower);
  // Also when this coroutine is cancelled: what does not listen must not count for a majority.
  struct Leave {
    Leader leader;
    Follower follower;
    ~Leave() { leader->leave(follower); }
  } leave{leadership, follower};
  co_await serve(leadership, gossip, follower);
  if (follower->accepted && context.serving()) {
    gossip->look_after(follower->node);
  }
}

}  // namespace verger::node
