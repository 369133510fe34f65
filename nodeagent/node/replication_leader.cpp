// The leader's side of a replication link (docs/formats/replication.md).
#include <algorithm>

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

bool still_current(const Core& core, const Subscriber& subscriber) {
  return core.serving() && !subscriber.closed && core.leading_term == subscriber.term;
}

net::awaitable<bool> send(std::shared_ptr<Core> core, std::shared_ptr<Subscriber> subscriber,
                          Message message) {
  auto frame = encode(message);
  subscriber->bytes_sent += frame.size();
  const auto sent = co_await subscriber->connection->send(std::move(frame));
  subscriber->last_sent = core->now();
  co_return sent.has_value() && still_current(*core, *subscriber);
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

net::awaitable<bool> send_batch(std::shared_ptr<Core> core, std::shared_ptr<Subscriber> subscriber,
                                LogPosition position, Bytes records) {
  for (std::size_t at = 0; at < records.size(); at += kPieceSize) {
    const auto size = std::min(kPieceSize, records.size() - at);
    const auto piece = ByteView(records).subspan(at, size);
    Batch batch{position, at + size == records.size(), Bytes(piece.begin(), piece.end())};
    if (!co_await send(core, subscriber, std::move(batch))) {
      co_return false;
    }
  }
  co_return true;
}

net::awaitable<bool> send_raw(std::shared_ptr<Core> core, std::shared_ptr<Subscriber> subscriber,
                              std::shared_ptr<const log::Chunk> chunk) {
  const auto total = chunk->file_size();
  for (std::uint64_t at = 0; at < total; at += kPieceSize) {
    RawChunk piece{chunk->start(), chunk->end(), at, total, {}};
    piece.bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kPieceSize, total - at)));
    if (const auto read = chunk->read_raw(at, piece.bytes); !read) {
      core->env.log.error("chunk not sent",
                          {{"chunk", chunk->path().string()}, {"reason", read.error().message}});
      co_return false;
    }
    if (!co_await send(core, subscriber, std::move(piece))) {
      co_return false;
    }
  }
  co_return true;
}

/// Commit position and standing, when they changed or silence has lasted long enough.
net::awaitable<bool> send_progress(std::shared_ptr<Core> core,
                                   std::shared_ptr<Subscriber> subscriber) {
  const auto end = core->log().end();
  const auto commit = core->db().committed();
  const bool caught_up = end - subscriber->acknowledged <= kCaughtUpDistance;
  const bool in_quorum = subscriber->told_in_quorum || caught_up;
  const bool due = core->now() - subscriber->last_sent >= core->options.timings.heartbeat_interval;
  if (commit == subscriber->told_commit && in_quorum == subscriber->told_in_quorum && !due) {
    co_return true;
  }
  subscriber->told_commit = commit;
  subscriber->told_in_quorum = in_quorum;
  co_return co_await send(core, subscriber, Progress{commit, end, caught_up, in_quorum});
}

net::awaitable<void> send_log(std::shared_ptr<Core> core, std::shared_ptr<Subscriber> subscriber,
                              LogPosition position) {
  std::shared_ptr<const log::Chunk> chunk;
  while (still_current(*core, *subscriber)) {
    if (!co_await send_progress(core, subscriber)) {
      break;
    }
    auto& log = core->log();
    if (position >= log.end() || position - subscriber->acknowledged > kWindow) {
      co_await subscriber->wake.wait();
      continue;
    }
    if (chunk == nullptr || position >= chunk->end_position()) {
      chunk = log.chunk_at(position);
      if (chunk == nullptr) {
        co_await subscriber->wake.wait();
        continue;
      }
      if (!chunk->header().scavenged && position == chunk->start_position() &&
          !co_await send(core, subscriber, NewChunk{chunk->header()})) {
        break;
      }
    }
    if (chunk->header().scavenged) {
      if (!co_await send_raw(core, subscriber, chunk)) {
        break;
      }
      position = chunk->end_position();
      continue;
    }
    const auto data_end = chunk->start_position() + chunk->data_size();
    if (position < data_end) {
      auto batch = read_batch(*chunk, position, data_end);
      if (!batch) {
        core->env.log.error("records not sent",
                            {{"follower", subscriber->node}, {"reason", batch.error().message}});
        break;
      }
      const auto size = static_cast<std::int64_t>(batch->size());
      if (!co_await send_batch(core, subscriber, position, *std::move(batch))) {
        break;
      }
      position = position + size;
    } else if (chunk->completed()) {
      if (!co_await send(core, subscriber, CompleteChunk{position})) {
        break;
      }
      position = chunk->end_position();
    } else {
      // The log goes on in the next chunk, so this one was completed, and maybe scavenged since.
      chunk = log.chunk_at(chunk->start_position());
      if (chunk == nullptr || !chunk->completed()) {
        chunk = nullptr;
        co_await subscriber->wake.wait();
      }
    }
  }
  subscriber->close();
}

std::string refusal(const Core& core, const Subscribe& request) {
  if (!core.serving() || core.leading_term.value() < 0) {
    return "this node is not the leader";
  }
  if (request.term != core.leading_term) {
    return fmt::format("this node leads term {}, not {}", core.leading_term, request.term);
  }
  if (!request.read_only && request.cluster_size != core.options.cluster_size) {
    return fmt::format("its cluster size is {}, ours {}: configure all nodes alike",
                       request.cluster_size, core.options.cluster_size);
  }
  return {};
}

/// Handshake: until the follower's log is a prefix of ours. nullopt: refused, or gone.
net::awaitable<std::optional<LogPosition>> agree(std::shared_ptr<Core> core,
                                                 std::shared_ptr<Subscriber> subscriber) {
  while (!subscriber->closed) {
    const auto frame = co_await subscriber->connection->receive();
    if (!frame) {
      co_return std::nullopt;
    }
    subscriber->last_heard = core->now();
    const auto message = decode(*frame);
    const auto* request = message ? std::get_if<Subscribe>(&*message) : nullptr;
    if (request == nullptr) {
      core->env.log.warning("replication: a connection does not begin with a subscription");
      co_return std::nullopt;
    }
    auto reason = refusal(*core, *request);
    Placement placement;
    if (reason.empty()) {
      placement = place_follower(core->log(), *request);
      reason = placement.reason;
    }
    if (placement.kind == Placement::Kind::kRefuse) {
      core->env.log.warning("follower refused", {{"follower", request->node}, {"reason", reason}});
      static_cast<void>(co_await subscriber->connection->send(encode(Refused{reason})));
      co_return std::nullopt;
    }
    subscriber->node = request->node;
    subscriber->instance = request->instance;
    subscriber->voter = !request->read_only;
    subscriber->term = core->leading_term;
    if (placement.kind == Placement::Kind::kStart) {
      subscriber->acknowledged = placement.position;
      co_return placement.position;
    }
    core->env.log.info("follower has to truncate",
                       {{"follower", request->node},
                        {"from", std::to_string(request->writer.place.value())},
                        {"to", std::to_string(placement.position.value())}});
    const auto sent = co_await subscriber->connection->send(encode(Truncate{placement.position}));
    if (!sent) {
      co_return std::nullopt;
    }
  }
  co_return std::nullopt;
}

net::awaitable<void> serve(std::shared_ptr<Core> core, std::shared_ptr<Subscriber> subscriber) {
  const auto start = co_await agree(core, subscriber);
  if (!start || !still_current(*core, *subscriber)) {
    co_return;
  }
  for (const auto& other : core->subscribers) {
    if (other != subscriber && other->node == subscriber->node) {
      other->close();  // it came back before we noticed that it had gone
    }
  }
  subscriber->accepted = true;
  if (!co_await send(core, subscriber, Accepted{subscriber->term, *start})) {
    co_return;
  }
  core->members.mark_alive(subscriber->node);
  core->tasks->spawn(send_log(core, subscriber, *start));
  core->advance_commit();
  while (still_current(*core, *subscriber)) {
    const auto frame = co_await subscriber->connection->receive();
    if (!frame || !still_current(*core, *subscriber)) {
      break;
    }
    subscriber->bytes_received += frame->size();
    const auto message = decode(*frame);
    const auto* ack = message ? std::get_if<Ack>(&*message) : nullptr;
    if (ack == nullptr || ack->durable > core->log().end()) {
      core->env.log.error("replication: not an acknowledgement", {{"follower", subscriber->node}});
      break;
    }
    subscriber->last_heard = core->now();
    subscriber->acknowledged = ack->durable;
    core->advance_commit();
  }
}

}  // namespace

net::awaitable<void> serve_follower(std::shared_ptr<Core> core,
                                    std::shared_ptr<http::FrameConnection> connection) {
  if (!core->serving()) {
    co_return;
  }
  auto subscriber = std::make_shared<Subscriber>(core->env.executor);
  subscriber->connection = std::move(connection);
  subscriber->last_heard = core->now();
  core->subscribers.push_back(subscriber);
  // Also when this coroutine is cancelled: what does not listen must not count for a majority.
  struct Leave {
    std::shared_ptr<Core> core;
    std::shared_ptr<Subscriber> subscriber;
    ~Leave() {
      if (!core->stopped) {
        subscriber->close();
        std::erase(core->subscribers, subscriber);
      }
    }
  } leave{core, subscriber};
  co_await serve(core, subscriber);
  if (subscriber->accepted && core->serving()) {
    if (const auto* member = core->members.find(subscriber->node)) {
      core->tasks->spawn(gossip_with(core, member->http));  // is it dead, or only the link?
    }
  }
}

}  // namespace verger::node
