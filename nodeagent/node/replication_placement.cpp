#include "nodeagent/node/replication_placement.h"

#include <algorithm>

namespace verger::node::replication {

RecordEnd record_end_before(const log::TransactionLog& log, LogPosition place) {
  RecordEnd end{place, place, false};
  if (place.value() <= 0 || place.value() % log.chunk_size() != 0) {
    return end;
  }
  const auto chunk = log.chunk_at(LogPosition(place.value() - 1));
  if (chunk == nullptr) {
    return end;
  }
  if (chunk->header().scavenged) {
    end.scavenged = true;
  } else {
    end.data_end = chunk->start_position() + chunk->data_size();
  }
  return end;
}

std::vector<EpochClaim> epoch_claims(const log::TransactionLog& log, std::size_t limit) {
  const auto& epochs = log.epochs().all();
  std::vector<EpochClaim> claims;
  for (std::size_t i = epochs.size() > limit ? epochs.size() - limit : 0; i < epochs.size(); ++i) {
    claims.push_back({epochs[i], record_end_before(log, epochs[i].position)});
  }
  return claims;
}

namespace {

Placement refuse(std::string reason) {
  return {Placement::Kind::kRefuse, LogPosition(0), std::move(reason)};
}

/// The two logs agree up to the end of the newest common epoch's shorter part. `theirs` and `ours`
/// are where that epoch ends in each log (at the next epoch's record, or at the log's end).
struct Parting {
  LogPosition keep;     ///< the follower keeps what lies below
  bool unsure = false;  ///< whether its last chunk below `keep` is right is not known
};

Parting part(const log::TransactionLog& leader, const RecordEnd& ours, const RecordEnd& theirs,
             LogPosition committed) {
  const auto shorter = std::min(theirs.place, ours.place);
  if (theirs.scavenged || committed >= shorter) {
    // What a follower has scavenged or seen committed, it shares with every leader: chunks that end
    // there, too.
    return {shorter};
  }
  if (ours.scavenged) {
    const auto chunk = leader.chunk_at(LogPosition(ours.place.value() - 1));
    const bool below = chunk != nullptr && theirs.place <= chunk->start_position();
    return {std::min(theirs.place, ours.place), !below && committed < ours.place};
  }
  if (theirs.data_end > ours.data_end) {
    return {ours.data_end};
  }
  // The follower has no record too many. It may have completed its chunk where ours continued.
  if (theirs.place <= ours.place &&
      record_end_before(leader, theirs.place).data_end == theirs.data_end) {
    return {theirs.place};
  }
  return {theirs.data_end};
}

}  // namespace

Placement place_follower(const log::TransactionLog& leader, const Subscribe& follower) {
  if (follower.version != kProtocolVersion) {
    return refuse(fmt::format("its replication protocol is version {}, ours is {}",
                              follower.version, kProtocolVersion));
  }
  if (follower.chunk_size != leader.chunk_size()) {
    return refuse(fmt::format("its chunk size is {}, the cluster's is {}: start it with that one",
                              follower.chunk_size, leader.chunk_size()));
  }
  const auto& epochs = leader.epochs().all();
  const auto writer = follower.writer.place;
  if (writer.value() <= 0) {
    return {Placement::Kind::kStart, LogPosition(0), {}};
  }
  if (follower.epochs.empty()) {
    return refuse("it has data but no epochs: it was never part of this cluster; empty it first");
  }
  // The newest epoch that both have.
  std::size_t mine = 0;
  auto claim = follower.epochs.size();
  for (auto i = follower.epochs.size(); i-- > 0 && claim == follower.epochs.size();) {
    const auto& theirs = follower.epochs[i].epoch;
    const auto found = std::ranges::find_if(epochs, [&](const log::Epoch& ours) {
      return ours.number == theirs.number && ours.id == theirs.id &&
             ours.position == theirs.position;
    });
    if (found != epochs.end()) {
      mine = static_cast<std::size_t>(found - epochs.begin());
      claim = i;
    }
  }
  if (claim == follower.epochs.size()) {
    if (follower.committed.value() > 0) {
      return refuse(fmt::format(
          "its log has no epoch in common with the leader's, but committed data up to {}: it "
          "belongs to another cluster; empty it, or correct the seeds",
          follower.committed));
    }
    return {Placement::Kind::kTruncate, LogPosition(0), {}};
  }
  const auto ours = record_end_before(
      leader, mine + 1 < epochs.size() ? epochs[mine + 1].position : leader.end());
  const auto theirs =
      claim + 1 < follower.epochs.size() ? follower.epochs[claim + 1].before : follower.writer;
  const auto parting = part(leader, ours, theirs, follower.committed);
  if (parting.keep < writer) {
    return {Placement::Kind::kTruncate, parting.keep, {}};
  }
  if (parting.unsure) {
    const auto chunk = leader.chunk_at(LogPosition(ours.place.value() - 1));
    return {Placement::Kind::kStart, chunk->start_position(), {}};
  }
  return {Placement::Kind::kStart, writer, {}};
}

}  // namespace verger::node::replication
