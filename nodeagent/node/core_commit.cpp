// The leader's commit position: what a majority has on disk, and its own epoch covers.
#include <algorithm>

#include "engine/base/failpoint.h"
#include "engine/streams/stream_names.h"
#include "nodeagent/node/detail/core.h"

namespace verger::node {
namespace {

/// A scavenge point ends its chunk, else nobody can scavenge up to it. Whoever wrote it may have
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

bool Core::accepts_writes() const {
  return serving() && !stopping && election->state() == api::NodeState::kLeader &&
         leading_term == election->term();
}

void Core::prepare_to_lead(EpochNumber term) {
  leading_term = term;
  draining = false;
  VERGER_FAILPOINT("node.leader.before-epoch");
  if (const auto ended = end_chunk_of_a_last_point(log()); !ended) {
    fail(ended.error().within("the scavenge point's chunk was not completed"));
    return;
  }
  const auto epoch = log().append_epoch(term, instance);
  if (!epoch) {
    fail(epoch.error().within("epoch not written"));
    return;
  }
  VERGER_FAILPOINT("node.leader.after-epoch");
  epoch_end = log().end();
  refresh_log();
  advance_commit();
}

void Core::stop_leading() {
  leading_term = EpochNumber(-1);
  draining = false;
  const auto gone = std::move(subscribers);
  subscribers.clear();
  for (const auto& subscriber : gone) {
    subscriber->close();
  }
  for (const auto& waiter : waiters) {
    waiter->lost = true;
  }
  waiters.clear();
  changed.notify();
}

void Core::advance_commit() {
  if (failed || leading_term.value() < 0 || !election->leads(leading_term)) {
    return;
  }
  // One position per voter, however many connections it has.
  std::map<NodeId, LogPosition> durable{{self, log().end()}};
  for (const auto& subscriber : subscribers) {
    if (subscriber->voter && subscriber->accepted && subscriber->term == leading_term) {
      auto& position = durable[subscriber->node];
      position = std::max(position, subscriber->acknowledged);
    }
  }
  std::vector<LogPosition> positions;
  positions.reserve(durable.size());
  for (const auto& [node, position] : durable) {
    positions.push_back(position);
  }
  std::ranges::sort(positions, std::greater<>());
  const auto majority = static_cast<std::size_t>(options.cluster_size) / 2 + 1;
  if (positions.size() >= majority) {
    const auto commit = std::min(positions[majority - 1], log().end());
    // Records of older epochs count only once a record of this one above them does.
    if (commit >= epoch_end && commit > db().committed()) {
      VERGER_FAILPOINT("node.commit.before-index");
      if (const auto done = db().commit_up_to(commit); !done) {
        fail(done.error().within("commit"));
        return;
      }
      std::erase_if(waiters, [&](const auto& waiter) {
        waiter->committed = waiter->end <= commit;
        return waiter->committed;
      });
      changed.notify();
    }
  }
  for (const auto& subscriber : subscribers) {
    subscriber->wake.notify();
  }
  if (db().committed() >= epoch_end && election->state() == api::NodeState::kPreLeader) {
    apply(election->lead(now(), leading_term));
  }
}

net::awaitable<bool> Core::wait_for_commit(std::shared_ptr<Core> core, LogPosition end) {
  if (core->db().committed() >= end) {
    co_return true;
  }
  auto waiter = std::make_shared<CommitWaiter>();
  waiter->end = end;
  core->waiters.push_back(waiter);
  const auto deadline = core->now() + core->options.timings.write_timeout;
  while (!waiter->committed && !waiter->lost && core->now() < deadline) {
    co_await core->changed.wait();
  }
  core->waiters.remove(waiter);
  co_return waiter->committed;
}

void Core::commit_replicated(LogPosition leader_commit) {
  const auto commit = std::min(leader_commit, log().end());
  if (commit <= db().committed()) {
    return;
  }
  VERGER_FAILPOINT("node.commit.before-index");
  if (const auto done = db().commit_up_to(commit); !done) {
    fail(done.error().within("commit"));
    return;
  }
  changed.notify();
}

}  // namespace verger::node
