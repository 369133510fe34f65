#include <gtest/gtest.h>

#include "tests/unit/engine_log/small_log.h"

namespace verger::log {
namespace {

using Positions = std::vector<std::int64_t>;

void create(SmallLog& disk, const Path& name, FileSystem& from, const Path& source) {
  const Bytes bytes = value(read_file(from, source));
  const auto file = value(disk.files.open(disk.directory / name, OpenMode::kCreateNew));
  ok(file->write_at(0, bytes));
  ok(file->sync());
}

/// Copies what the leader has from the follower's position on, chunk by chunk as replication does.
void follow(SmallLog& from, const TransactionLog& leader, SmallLog& to, TransactionLog& follower) {
  while (follower.append_position() < leader.end()) {
    const auto at = follower.append_position();
    const auto chunk = leader.chunk_at(at);
    ASSERT_TRUE(chunk);
    if (chunk->header().scavenged) {
      create(to, "received.tmp", from.files, chunk->path());
      ok(follower.receive_chunk(to.directory / "received.tmp"));
      continue;
    }
    if (at == chunk->start_position()) {
      ok(follower.start_replicated_chunk(chunk->header()));
    }
    auto scanner = value(ChunkScanner::open(chunk, at));
    while (const auto record = value(scanner.next())) {
      ok(follower.append_replicated(record->framed));
    }
    if (!chunk->completed()) {
      break;
    }
    ok(follower.complete_replicated_chunk());
  }
  ok(follower.flush());
}

struct Pair {
  SmallLog leader_disk;
  SmallLog follower_disk;
  std::unique_ptr<TransactionLog> leader;
  std::unique_ptr<TransactionLog> follower;

  Pair() {
    follower_disk.random = SeededRandom(99);
    leader = leader_disk.open();
    follower = follower_disk.open();
    value(leader->append_epoch(EpochNumber(0), leader_disk.random.uuid()));
    for (int i = 0; i < 6; ++i) {
      leader_disk.append_sized(*leader, 800);
    }
    value(leader->append_epoch(EpochNumber(1), leader_disk.random.uuid()));
  }
  void catch_up() { follow(leader_disk, *leader, follower_disk, *follower); }
};

TEST(Replicate, TheFollowersFilesAreTheLeadersByteForByte) {
  Pair pair;
  pair.catch_up();
  EXPECT_EQ(pair.leader->end(), pair.follower->end());
  const auto names = pair.leader_disk.chunk_names();
  EXPECT_GE(names.size(), 4U);
  EXPECT_EQ(names, pair.follower_disk.chunk_names());
  for (const auto& name : names) {
    EXPECT_EQ(to_hex(pair.leader_disk.content(name)), to_hex(pair.follower_disk.content(name)))
        << name;
  }
  EXPECT_EQ(pair.follower->epochs().all(), pair.leader->epochs().all());
  EXPECT_EQ(pair.follower_disk.checkpoint("epoch.chk"), pair.leader_disk.checkpoint("epoch.chk"));
}

TEST(Replicate, ContinuesAfterTheFollowerWasReopened) {
  Pair pair;
  pair.catch_up();
  pair.follower.reset();
  pair.follower = pair.follower_disk.open();
  pair.leader_disk.append_sized(*pair.leader, 100);
  ok(pair.leader->complete_chunk());
  pair.catch_up();
  for (const auto& chunk : pair.follower->chunks()) {
    if (chunk->completed()) {
      ok(chunk->verify_md5());
    }
  }
  EXPECT_EQ(pair.follower_disk.positions(*pair.follower), pair.leader_disk.positions(*pair.leader));
}

TEST(Replicate, AChunkFilledToItsLastByteIsCompletedByTheNextOne) {
  for (const bool reopened : {false, true}) {
    SmallLog from;
    SmallLog to;
    auto leader = from.open();
    auto follower = to.open();
    value(leader->append_epoch(EpochNumber(0), from.random.uuid()));
    const auto first = leader->chunk_at(LogPosition(0));
    const auto room = first->end_position() - leader->append_position();
    from.append_sized(*leader, static_cast<std::size_t>(room));
    ok(leader->flush());
    ASSERT_EQ(leader->end(), first->end_position());
    // Everything has arrived, and the link broke.
    follow(from, *leader, to, *follower);
    ASSERT_EQ(follower->end(), leader->end());
    if (reopened) {
      follower.reset();
      follower = to.open();
    }
    from.append_sized(*leader, 200);
    ok(leader->flush());
    follow(from, *leader, to, *follower);
    EXPECT_EQ(follower->end(), leader->end());
    EXPECT_EQ(to.positions(*follower), from.positions(*leader));
    EXPECT_TRUE(follower->chunk_at(LogPosition(0))->completed());
    ok(follower->chunk_at(LogPosition(0))->verify_md5());
  }
}

TEST(Replicate, AScavengedChunkIsTakenWholeAndNumberedHere) {
  Pair pair;
  const auto first = pair.leader->chunks()[0];
  auto header = first->header();
  header.scavenged = true;
  header.end = ChunkNumber(1);
  for (int version = 1; version <= 2; ++version) {
    auto output = value(ChunkWriter::create(pair.leader_disk.files, "/db", "s.tmp", header));
    auto scanner = value(ChunkScanner::open(pair.leader->chunks()[0], LogPosition(0)));
    while (const auto record = value(scanner.next())) {
      if (const auto* event = record->prepare(); event == nullptr || event->stream != "s") {
        ok(output.append(record->position(), record->framed));
      }
    }
    value(pair.leader->switch_in_chunk(value(output.finish()).path));
  }
  EXPECT_EQ(pair.leader_disk.chunk_names().front(), "chunk-000000.000000");
  pair.catch_up();
  EXPECT_EQ(pair.follower_disk.chunk_names().front(), "chunk-000000.000001");
  EXPECT_EQ(to_hex(pair.leader_disk.content("chunk-000000.000002")),
            to_hex(pair.follower_disk.content("chunk-000000.000001")));
  EXPECT_EQ(pair.follower_disk.positions(*pair.follower), pair.leader_disk.positions(*pair.leader));
  EXPECT_EQ(pair.follower->epochs().all(), pair.leader->epochs().all());
  pair.follower.reset();
  EXPECT_EQ(pair.follower_disk.open()->epochs().all(), pair.leader->epochs().all());
}

TEST(Replicate, RefusesWhatDoesNotFitHere) {
  Pair pair;
  const auto chunk = pair.leader->chunks()[0];
  Bytes buffer;
  const auto record = value(chunk->read(LogPosition(0), buffer));
  auto& follower = *pair.follower;
  EXPECT_EQ(follower.append_replicated(record.framed).error().code, Errc::kConflict)
      << "the chunk was not started";
  ok(follower.start_replicated_chunk(chunk->header()));
  Bytes second;
  const auto next = value(chunk->read(record.next, second));
  EXPECT_EQ(follower.append_replicated(next.framed).error().code, Errc::kConflict);
  EXPECT_EQ(follower.append_replicated(record.framed.first(50)).error().code, Errc::kCorruption);
  Bytes damaged(record.framed.begin(), record.framed.end());
  damaged[4] = std::byte{9};
  EXPECT_FALSE(follower.append_replicated(damaged).has_value());
  damaged[4] = std::byte{2};
  damaged.back() = std::byte{1};
  EXPECT_EQ(follower.append_replicated(damaged).error().code, Errc::kCorruption);
  EXPECT_EQ(follower.append_position().value(), 0) << "nothing of it was written";
  ok(follower.append_replicated(record.framed));
  EXPECT_EQ(follower.start_replicated_chunk(chunk->header()).error().code, Errc::kConflict);
}

TEST(Replicate, RefusesRecordsThatAreNotCanonical) {
  // The length of the stream's name in two bytes where one will do: readers accept it, but our
  // chunk would differ from the leader's.
  Pair pair;
  ok(pair.follower->start_replicated_chunk(pair.leader->chunks()[0]->header()));
  Prepare prepare = pair.leader_disk.event("s");
  prepare.position = LogPosition(0);
  prepare.transaction_position = LogPosition(0);
  Bytes frame;
  append_framed(frame, prepare);
  frame[36] = std::byte{0x81};
  frame.insert(frame.begin() + 37, std::byte{0});
  const auto size = static_cast<std::int32_t>(frame.size()) - kFramingSize;
  store_le(frame.data(), size);
  store_le(frame.data() + frame.size() - 4, size);
  ASSERT_TRUE(decode_record(ByteView(frame).subspan(4, frame.size() - 8)).has_value());
  const auto outcome = pair.follower->append_replicated(frame);
  ASSERT_FALSE(outcome.has_value());
  EXPECT_NE(outcome.error().message.find("canonical"), std::string::npos);
}

TEST(Replicate, RefusesADamagedOrMisplacedChunk) {
  Pair pair;
  auto header = pair.leader->chunks()[0]->header();
  header.scavenged = true;
  auto output = value(ChunkWriter::create(pair.follower_disk.files, "/db", "r.tmp", header));
  const Path path = value(output.finish()).path;
  const auto file = value(pair.follower_disk.files.open(path, OpenMode::kReadWrite));
  const std::byte flipped[] = {std::byte{1}};
  ok(file->write_at(2000, flipped));
  EXPECT_EQ(pair.follower->receive_chunk(path).error().code, Errc::kCorruption);
  const std::byte restored[] = {std::byte{0}};
  ok(file->write_at(2000, restored));
  pair.catch_up();
  EXPECT_EQ(pair.follower->receive_chunk(path).error().code, Errc::kConflict);
}

}  // namespace
}  // namespace verger::log
