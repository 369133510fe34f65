#include <gtest/gtest.h>

#include "tests/unit/engine_log/small_log.h"

namespace verger::log {
namespace {

using Names = std::vector<std::string>;
using Positions = std::vector<std::int64_t>;

/// Chunks 0 to 3 with an epoch at 0 and at 2000, two small events each; the log ends in chunk 3.
struct FourChunks : SmallLog {
  Positions all;

  FourChunks() {
    const auto log = open();
    const Uuid leader = random.uuid();
    for (int chunk = 0; chunk < 4; ++chunk) {
      if (chunk < 2) {
        value(log->append_epoch(EpochNumber(chunk), leader));
      }
      append_sized(*log, 300);
      append_sized(*log, 300);
      if (chunk < 3) {
        ok(log->complete_chunk());
      }
    }
    ok(log->flush());
    log->set_chaser(log->end());
    ok(log->flush_checkpoints());
    all = positions(*log);
    options.max_truncation = -1;
  }
  Positions below(std::int64_t position) const {
    Positions kept = all;
    std::erase_if(kept, [&](std::int64_t at) { return at >= position; });
    return kept;
  }
  /// Merges chunks 1 and 2.
  void merge(TransactionLog& log) {
    auto header = log.chunks()[1]->header();
    header.scavenged = true;
    header.end = ChunkNumber(2);
    auto output = value(ChunkWriter::create(files, directory, "m.tmp", header));
    for (const int i : {1, 2}) {
      auto scanner = value(
          ChunkScanner::open(log.chunks()[static_cast<std::size_t>(i)], header.start_position()));
      while (const auto record = value(scanner.next())) {
        ok(output.append(record->position(), record->framed));
      }
    }
    value(log.switch_in_chunk(value(output.finish()).path));
  }
};

/// Cuts at `position` while running, and in another copy at the next opening, and checks both.
void check_truncation(std::int64_t position, std::int64_t target, const Names& chunks, bool merged,
                      std::int64_t epoch) {
  for (const bool at_open : {false, true}) {
    SCOPED_TRACE(at_open ? "at the next opening" : "while running");
    FourChunks disk;
    auto log = disk.open();
    if (merged) {
      disk.merge(*log);
    }
    if (at_open) {
      log.reset();
      disk.put_checkpoint("truncate.chk", position);
      log = disk.open();
      EXPECT_TRUE(log->truncated_at_open());
    } else {
      ok(log->truncate(LogPosition(position)));
    }
    EXPECT_EQ(log->end().value(), target);
    EXPECT_EQ(log->append_position().value(), target);
    EXPECT_EQ(disk.positions(*log), disk.below(target));
    EXPECT_EQ(disk.chunk_names(), chunks);
    EXPECT_EQ(disk.checkpoint("writer.chk"), target);
    EXPECT_EQ(disk.checkpoint("chaser.chk"), target);
    EXPECT_EQ(disk.checkpoint("epoch.chk"), epoch);
    EXPECT_EQ(disk.checkpoint("truncate.chk"), -1);
    const auto last = log->epochs().last();
    EXPECT_EQ(last ? last->position.value() : -1, epoch);
    // The log continues from there, and is sound after that.
    disk.append_sized(*log, 300);
    ok(log->complete_chunk());
    for (const auto& chunk : log->chunks()) {
      if (chunk->completed()) {
        ok(chunk->verify_md5());
      }
    }
    log.reset();
    auto want = disk.below(target);
    want.push_back(target);
    EXPECT_EQ(disk.positions(*disk.open()), want);
  }
}

const char* const kChunk0 = "chunk-000000.000000";
const char* const kChunk1 = "chunk-000001.000000";

TEST(Truncate, InsideAChunk) {
  FourChunks disk;
  const std::int64_t inside = disk.all[disk.all.size() - 5];  // the second event of chunk 1
  ASSERT_EQ(inside / 2000, 1);
  check_truncation(inside, inside, {kChunk0, kChunk1}, false, 2000);
}

TEST(Truncate, OnABoundaryTakesTheChunkThatStartsThere) {
  check_truncation(4000, 4000, {kChunk0, kChunk1}, false, 2000);
}

TEST(Truncate, BelowTheLastEpochGoesBackToTheOneBefore) {
  check_truncation(2000, 2000, {kChunk0}, false, 0);
}

TEST(Truncate, ToNothing) { check_truncation(0, 0, {}, false, -1); }

TEST(Truncate, AScavengedChunkGoesWhole) {
  FourChunks disk;
  check_truncation(4300, 2000, {kChunk0}, true, 0);
}

TEST(Truncate, LeavesZerosWhereTheFooterWas) {
  FourChunks disk;
  const auto log = disk.open();
  const std::int64_t inside = disk.all[disk.all.size() - 5];
  ok(log->truncate(LogPosition(inside)));
  const Bytes bytes = disk.content(kChunk1);
  EXPECT_EQ(bytes.size(), 4096U);
  const ByteView tail = ByteView(bytes).subspan(static_cast<std::size_t>(128 + inside % 2000));
  EXPECT_TRUE(std::ranges::all_of(tail, [](std::byte b) { return b == std::byte{0}; }));
}

TEST(Truncate, ReadersOfWhatWentFail) {
  FourChunks disk;
  const auto log = disk.open();
  const auto gone = log->chunks()[2];
  const auto cut = log->chunks()[1];
  Bytes buffer;
  value(gone->read(LogPosition(4000), buffer));
  const std::int64_t inside = disk.all[disk.all.size() - 5];
  ok(log->truncate(LogPosition(inside)));
  EXPECT_EQ(gone->read(LogPosition(4000), buffer).error().code, Errc::kNotFound);
  EXPECT_EQ(cut->read(LogPosition(inside), buffer).error().code, Errc::kNotFound);
  value(cut->read(LogPosition(2000), buffer));
}

TEST(Truncate, ARetiredFileDoesNotTakeItsSuccessorAlong) {
  FourChunks disk;
  const auto log = disk.open();
  auto retired = log->chunks()[2];
  disk.merge(*log);
  ok(log->truncate(LogPosition(2000)));
  disk.append_sized(*log, 300);
  ok(log->complete_chunk());
  EXPECT_EQ(disk.chunk_names().back(), "chunk-000002.000000");
  retired.reset();  // it had this name
  EXPECT_EQ(disk.chunk_names().back(), "chunk-000002.000000");
}

TEST(Truncate, RefusesWhatItMayNotOrCannot) {
  const auto refusal = [](std::int64_t position, auto prepare, std::string_view what) {
    FourChunks disk;
    prepare(disk);
    disk.put_checkpoint("truncate.chk", position);
    std::vector<Bytes> before;
    for (const auto& name : disk.names()) {
      before.push_back(disk.content(name));
    }
    const auto log = disk.try_open();
    ASSERT_FALSE(log.has_value()) << what;
    EXPECT_NE(log.error().message.find(what), std::string::npos) << log.error().message;
    std::vector<Bytes> after;
    for (const auto& name : disk.names()) {
      after.push_back(disk.content(name));
    }
    EXPECT_EQ(before, after);
  };
  const auto nothing = [](FourChunks&) {};
  refusal(2000, [](FourChunks& d) { d.options.max_truncation = 1000; }, "the limit is 1000");
  refusal(2001, nothing, "no record ends there");
  refusal(-2, nothing, "is not a log position");
  refusal(20000, nothing, "the log ends at");
  refusal(
      2000, [](FourChunks& d) { d.put("chunk-000004.000000", d.content("chunk-000003.000000")); },
      "chunk 4 exists");
  refusal(
      4000, [](FourChunks& d) { ok(d.files.remove(d.directory / "chunk-000001.000000")); },
      "chunk 1 is missing");
  FourChunks disk;
  const auto log = disk.open();
  EXPECT_EQ(log->truncate(log->end() + 1).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(disk.positions(*log), disk.all);
}

TEST(Truncate, APendingOneIsOnlyAnnouncedToReaders) {
  FourChunks disk;
  disk.put_checkpoint("truncate.chk", 2000);
  const auto log = disk.open_read_only();
  EXPECT_EQ(disk.positions(*log), disk.all);
  EXPECT_EQ(log->checkpoints().truncate.value(), 2000);
  EXPECT_FALSE(log->truncated_at_open());
}

}  // namespace
}  // namespace verger::log
