#include "nodeagent/node/detail/leadership.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "engine/base/failpoint.h"
#include "engine/streams/stream_names.h"

namespace verger::node {
namespace {

/// A scavenge point ends its chunk, else no node can scavenge up to it. Its writer may have
/// gone, as leader or process, before it did so.
Result<void> end_chunk_of_a_last_point(log::TransactionLog& log) {
  if (log.end().value() % log.chunk_size() == 0) {
    return {};
  }
  Bytes buffer;
  VERGER_TRY(const auto last, log::read_before(log, log.end(), buffer));
  const auto* prepare = last ? last->prepare() : nullptr;
  if (prepare == nullptr || prepare->stream != streams::kScavengePointsStream ||
      prepare->type != streams::kScavengePointType) {
    return {};
  }
  return log.complete_chunk();
}

}  // namespace

// --- The election's orders ---

void Leadership::prepare(EpochNumber term) {
  term_ = term;
  draining_ = false;
  VERGER_FAILPOINT("node.leader.before-epoch");
  if (const auto ended = end_chunk_of_a_last_point(context_.log()); !ended) {
    context_.fail(ended.error().within("the scavenge point's chunk was not completed"));
    return;
  }
  const auto epoch = context_.log().append_epoch(term, context_.instance);
  if (!epoch) {
    context_.fail(epoch.error().within("epoch not written"));
    return;
  }
  context_.db().begin_term();
  VERGER_FAILPOINT("node.leader.after-epoch");
  epoch_end_ = context_.log().end();
  election_.refresh_log();
  advance_commit();
}

void Leadership::stop() {
  if (draining_) {
    VERGER_FAILPOINT("node.resign.before-unknown");
  }
  // Another leader's records, or a claim of what is in this log, come next. What is in it, and was
  // acknowledged to no client, may survive.
  if (const auto flushed = context_.db().flush(); !flushed) {
    context_.fail(flushed.error().within("flush"));
    return;
  }
  drop();
}

void Leadership::drop() {
  term_ = EpochNumber(-1);
  draining_ = false;
  const auto gone = std::move(subscribers_);
  subscribers_.clear();
  for (const auto& subscriber : gone) {
    subscriber->close();
  }
  for (const auto& waiter : waiters_) {
    waiter->lost = true;
    waiter->wake.notify();
  }
  waiters_.clear();
  context_.changed.notify();
}

void Leadership::tick() {
  const auto& timings = context_.options.timings;
  const auto now = context_.now();
  std::set<NodeId> voters;
  for (const auto& subscriber : subscribers_) {
    if (now - subscriber->last_heard > timings.heartbeat_timeout) {
      subscriber->close();
    } else if (subscriber->accepted && !subscriber->closed) {
      if (subscriber->voter) {
        voters.insert(subscriber->node);
      }
      if (now - subscriber->last_sent >= timings.heartbeat_interval) {
        subscriber->wake.notify();
      }
    }
  }
  for (const auto& waiter : waiters_) {
    if (now >= waiter->deadline) {
      waiter->wake.notify();
    }
  }
  if (election_.leads(term_)) {
    election_.subscribed_voters(static_cast<int>(voters.size()));
    if (draining_ && waiters_.empty()) {
      election_.drained();
    }
  }
}

// --- Writes ---

bool Leadership::accepts_writes() const {
  return context_.takes_work() && election_.state() == api::NodeState::kLeader &&
         term_ == election_.term();
}

std::optional<LogPosition> Leadership::majority_position() const {
  // One position per voter, however many connections it has.
  std::map<NodeId, LogPosition> durable{{context_.self, context_.log().end()}};
  for (const auto& subscriber : subscribers_) {
    if (subscriber->voter && subscriber->accepted && subscriber->term == term_) {
      auto& position = durable[subscriber->node];
      position = std::max(position, subscriber->acknowledged);
    }
  }
  std::vector<LogPosition> positions;
  positions.reserve(durable.size());
  for (const auto& [node, position] : durable) {
    positions.push_back(position);
  }
  const auto majority = static_cast<std::size_t>(context_.options.cluster_size) / 2 + 1;
  if (positions.size() < majority) {
    return std::nullopt;
  }
  std::ranges::sort(positions, std::greater<>());
  return std::min(positions[majority - 1], context_.log().end());
}

void Leadership::appended() {
  if (!std::exchange(flushing_, true)) {
    context_.spawn(flush_appended(context_.keep(*this)));
  }
}

net::awaitable<void> Leadership::flush_appended(std::shared_ptr<Leadership> leadership) {
  auto& context = leadership->context_;
  while (context.serving()) {
    const auto flush = context.db().begin_flush();
    if (!flush) {
      context.fail(flush.error().within("flush"));
      break;
    }
    if (*flush == nullptr) {
      break;
    }
    static_cast<void>(co_await context.sync(*flush));  // finish_flush() has the same outcome
    if (!context.serving()) {
      break;
    }
    if (const auto finished = context.db().finish_flush(); !finished) {
      context.fail(finished.error().within("flush"));
      break;
    }
    leadership->advance_commit();
  }
  leadership->flushing_ = false;
}

void Leadership::advance_commit() {
  if (context_.failed() || term_.value() < 0 || !election_.leads(term_)) {
    return;
  }
  auto& db = context_.db();
  // Records of older epochs count only once a record of this one above them does.
  if (const auto commit = majority_position();
      commit && *commit >= epoch_end_ && *commit > db.committed()) {
    VERGER_FAILPOINT("node.commit.before-index");
    if (const auto done = db.commit_up_to(*commit); !done) {
      context_.fail(done.error().within("commit"));
      return;
    }
    std::erase_if(waiters_, [&](const auto& waiter) {
      waiter->committed = waiter->end <= *commit;
      if (waiter->committed) {
        waiter->wake.notify();
      }
      return waiter->committed;
    });
    context_.changed.notify();
  }
  for (const auto& subscriber : subscribers_) {
    subscriber->wake.notify();
  }
  if (db.committed() >= epoch_end_ && election_.state() == api::NodeState::kPreLeader) {
    election_.epoch_committed(term_);
  }
}

net::awaitable<bool> Leadership::wait_for_commit(std::shared_ptr<Leadership> leadership,
                                                 LogPosition end) {
  auto& context = leadership->context_;
  if (context.db().committed() >= end) {
    co_return true;
  }
  const auto waiter = std::make_shared<CommitWaiter>(
      context.env.executor, end, context.now() + context.options.timings.write_timeout);
  leadership->waiters_.push_back(waiter);
  while (!waiter->committed && !waiter->lost && context.now() < waiter->deadline) {
    co_await waiter->wake.wait();
  }
  leadership->waiters_.remove(waiter);
  co_return waiter->committed;
}

bool Leadership::majority_confirmed(std::uint64_t round) const {
  std::set<NodeId> voters{context_.self};
  for (const auto& subscriber : subscribers_) {
    if (subscriber->voter && subscriber->accepted && subscriber->term == term_ &&
        subscriber->confirmed_round >= round) {
      voters.insert(subscriber->node);
    }
  }
  return voters.size() > static_cast<std::size_t>(context_.options.cluster_size) / 2;
}

net::awaitable<bool> Leadership::confirm(std::shared_ptr<Leadership> leadership) {
  auto& context = leadership->context_;
  const auto term = leadership->term_;
  const auto round = ++leadership->round_;
  for (const auto& subscriber : leadership->subscribers_) {
    subscriber->wake.notify();
  }
  struct Waiting {
    explicit Waiting(int& n) : count(n) { ++count; }
    ~Waiting() { --count; }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    int& count;
  } waiting(leadership->confirming_);
  const auto deadline = context.now() + context.options.timings.write_timeout;
  while (leadership->accepts_writes() && leadership->term_ == term) {
    if (leadership->majority_confirmed(round)) {
      co_return true;
    }
    if (context.now() >= deadline) {
      break;
    }
    co_await context.changed.wait();
  }
  co_return false;
}

// --- Subscribers ---

void Leadership::enter(std::shared_ptr<Subscriber> subscriber) {
  subscribers_.push_back(std::move(subscriber));
}

void Leadership::accept(Subscriber& subscriber) {
  for (const auto& other : subscribers_) {
    if (other.get() != &subscriber && other->node == subscriber.node) {
      other->close();  // it came back before we noticed that it had gone
    }
  }
  subscriber.accepted = true;
}

void Leadership::leave(const std::shared_ptr<Subscriber>& subscriber) {
  if (!context_.stopped()) {
    subscriber->close();
    std::erase(subscribers_, subscriber);
  }
}

}  // namespace verger::node
