#include <gtest/gtest.h>

#include "tests/unit/engine_log/small_log.h"

namespace verger::log {
namespace {

using Names = std::vector<std::string>;
using Positions = std::vector<std::int64_t>;

TEST(Append, ANewDatabaseHasCheckpointsAndNoChunk) {
  SmallLog disk;
  {
    const auto log = disk.open();
    EXPECT_EQ(log->end().value(), 0);
    EXPECT_TRUE(log->chunks().empty());
  }
  EXPECT_EQ(disk.names(), (Names{"chaser.chk", "epoch.chk", "proposal.chk", "truncate.chk",
                                 "verger.lock", "writer.chk"}));
  EXPECT_EQ(disk.checkpoint("writer.chk"), 0);
  EXPECT_EQ(disk.checkpoint("epoch.chk"), -1);
  EXPECT_EQ(disk.checkpoint("truncate.chk"), -1);
  EXPECT_EQ(disk.open_read_only()->end().value(), 0);
}

TEST(Append, IsSeenOnceFlushed) {
  SmallLog disk;
  const auto log = disk.open();
  const auto position = disk.append_sized(*log, 200);
  EXPECT_EQ(position.value(), 0);
  EXPECT_EQ(log->append_position().value(), 200);
  EXPECT_EQ(log->end().value(), 0);
  Bytes buffer;
  EXPECT_EQ(log->read(position, buffer).error().code, Errc::kNotFound);
  ok(log->flush());
  EXPECT_EQ(log->end().value(), 200);
  EXPECT_EQ(value(log->read(position, buffer)).framed.size(), 200U);
  EXPECT_EQ(disk.checkpoint("writer.chk"), 200);
}

TEST(Append, AnActiveChunkHasTheBytesOfTheFormat) {
  SmallLog disk;
  const auto log = disk.open();
  Prepare prepare = disk.event();
  value(log->append(std::span(&prepare, 1)));
  ok(log->flush());
  const auto chunk = log->chunks().front();
  Bytes want;
  append_bytes(want, encode_chunk_header(chunk->header()));
  append_framed(want, prepare);
  want.resize(4096);  // 128 + 2000 + 128, aligned
  EXPECT_EQ(to_hex(disk.content("chunk-000000.000000")), to_hex(want));
  EXPECT_EQ(chunk->header().version, 4);
  EXPECT_EQ(chunk->header().min_compatible_version, 3);
}

TEST(Append, ACompletedChunkHasTheBytesOfTheFormat) {
  SmallLog disk;
  const auto log = disk.open();
  Prepare prepare = disk.event();
  value(log->append(std::span(&prepare, 1)));
  ok(log->complete_chunk());
  Bytes want;
  append_bytes(want, encode_chunk_header(log->chunks().front()->header()));
  append_framed(want, prepare);
  const auto size = static_cast<std::int32_t>(want.size()) - 128;
  want.resize(4096 - 128);
  ChunkFooter footer{.completed = true, .physical_data_size = size, .logical_data_size = size};
  const auto tail = encode_chunk_footer(footer);
  append_bytes(want, ByteView(tail).first(112));
  append_bytes(want, md5(want));
  EXPECT_EQ(to_hex(disk.content("chunk-000000.000000")), to_hex(want));
  EXPECT_EQ(log->end().value(), 2000);
  EXPECT_EQ(disk.checkpoint("writer.chk"), 2000);
  EXPECT_EQ(disk.chunk_names(), (Names{"chunk-000000.000000", "chunk-000001.000000"}));
  EXPECT_FALSE(disk.files.open("/db/chunk-000000.000000", OpenMode::kReadWrite).has_value())
      << "a completed chunk is read-only";
}

/// Completing cuts the file behind its records before it writes the footer: a crash in between
/// leaves a file that is shorter than header and footer.
TEST(Append, AChunkOfFewRecordsWhoseCompletionWasCutOffContinues) {
  SmallLog disk;
  {
    const auto log = disk.open();
    disk.append_sized(*log, 100);
    ok(log->flush());
  }
  {
    const auto file = value(disk.files.open("/db/chunk-000000.000000", OpenMode::kReadWrite));
    ok(file->resize(128 + 100));
    ok(file->sync());
  }
  const auto log = disk.open();
  EXPECT_EQ(log->end().value(), 100);
  disk.append_sized(*log, 200);
  ok(log->complete_chunk());
  EXPECT_EQ(disk.positions(*log), (Positions{0, 100}));
  ok(log->chunks()[0]->verify_md5());
}

TEST(Append, TheHashMayBeComputedInTheBackground) {
  SmallLog disk;
  disk.options.hash_in_background = true;
  {
    const auto log = disk.open();
    disk.append_sized(*log, 1500);
    disk.append_sized(*log, 600);
    ok(log->flush());
    ok(log->chunks()[0]->verify_md5());
  }
  const auto log = disk.open();
  disk.append_sized(*log, 300);
  ok(log->complete_chunk());
  EXPECT_EQ(disk.positions(*log), (Positions{0, 2000, 2600}));
  ok(log->chunks()[1]->verify_md5());
}

TEST(Append, ARecordThatDoesNotFitGoesToTheNextChunk) {
  SmallLog disk;
  const auto log = disk.open();
  disk.append_sized(*log, 1500);
  EXPECT_EQ(disk.append_sized(*log, 501).value(), 2000);
  ok(log->flush());
  EXPECT_EQ(disk.positions(*log), (Positions{0, 2000}));
  Bytes buffer;
  const auto record = value(log->read(LogPosition(2000), buffer));
  EXPECT_EQ(record.prepare()->transaction_position.value(), 2000);
  EXPECT_EQ(log->chunks()[0]->data_size(), 1500);
  ok(log->chunks()[0]->verify_md5());
}

TEST(Append, AChunkMayBeFilledToItsLastByte) {
  SmallLog disk;
  {
    const auto log = disk.open();
    disk.append_sized(*log, 1500);
    disk.append_sized(*log, 500);
    ok(log->flush());
    EXPECT_EQ(log->end().value(), 2000);
    EXPECT_FALSE(log->chunks().front()->completed());
  }
  EXPECT_EQ(disk.checkpoint("writer.chk"), 2000);
  const auto log = disk.open();  // case 6.3 rule 2
  EXPECT_EQ(disk.positions(*log), (Positions{0, 1500}));
  EXPECT_EQ(disk.append_sized(*log, 300).value(), 2000);
  ok(log->flush());
  EXPECT_TRUE(log->chunks().front()->completed());
  ok(log->chunks().front()->verify_md5());
  EXPECT_EQ(disk.positions(*log), (Positions{0, 1500, 2000}));
}

TEST(Append, AWriteOfSeveralNeverStraddlesChunks) {
  SmallLog disk;
  const auto log = disk.open();
  disk.append_sized(*log, 1500);
  const std::string data(200, 'x');
  std::vector<Prepare> write{disk.event("s", data), disk.event("s", data)};
  const auto positions = value(log->append(write));
  ASSERT_EQ(positions.size(), 2U);
  EXPECT_EQ(positions[0].value(), 2000);
  EXPECT_EQ(write[1].transaction_position.value(), 2000);
  EXPECT_EQ(write[1].position, positions[1]);
  ok(log->flush());
  EXPECT_EQ(disk.positions(*log), (Positions{0, 2000, positions[1].value()}));

  const std::string large(1200, 'x');
  std::vector<Prepare> too_large{disk.event("s", large), disk.event("s", large)};
  EXPECT_EQ(log->append(too_large).error().code, Errc::kInvalidArgument);
}

TEST(Append, ACompletedChunkIsFollowedByTheNext) {
  SmallLog disk;
  const auto log = disk.open();
  disk.append_sized(*log, 200);
  ok(log->complete_chunk());
  EXPECT_EQ(log->append_position().value(), 2000);
  EXPECT_EQ(log->end().value(), 2000);
  EXPECT_EQ(disk.append_sized(*log, 200).value(), 2000);
}

TEST(Append, ACommitCarriesItsOwnPosition) {
  SmallLog disk;
  const auto log = disk.open();
  const auto first = disk.append_sized(*log, 200);
  Commit commit;
  commit.transaction_position = first;
  commit.first_event_number = EventNumber(3);
  commit.correlation_id = disk.random.uuid();
  const auto position = value(log->append(commit));
  ok(log->flush());
  Bytes buffer;
  const auto record = value(log->read(position, buffer));
  EXPECT_EQ(std::get<Commit>(record.record).sort_key, 200);
}

TEST(Append, RefusesWhatCouldNotBeReadBack) {
  SmallLog disk;
  const auto log = disk.open();
  const auto refused = [&](auto change) {
    Prepare prepare = disk.event();
    change(prepare);
    const auto done = log->append(std::span(&prepare, 1));
    return !done && done.error().code == Errc::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](Prepare& p) { p.stream = ""; }));
  EXPECT_TRUE(refused([](Prepare& p) { p.stream = "\xff"; }));
  EXPECT_TRUE(refused([](Prepare& p) { p.type = "\xc0\x80"; }));
  EXPECT_TRUE(refused([](Prepare& p) { p.event_id = Uuid{}; }));
  EXPECT_TRUE(refused([](Prepare& p) { p.expected_version = -3; }));
  EXPECT_TRUE(refused([](Prepare& p) { p.timestamp = Ticks(-1); }));
  EXPECT_EQ(log->append_position().value(), 0);
  disk.append(*log, disk.event("Grüße, 世界 🌍"));
}

TEST(Append, EpochsAreChainedAndNumbered) {
  SmallLog disk;
  const Uuid leader = disk.random.uuid();
  {
    const auto log = disk.open();
    const auto first = value(log->append_epoch(EpochNumber(0), leader));
    EXPECT_EQ(first.position.value(), 0);
    EXPECT_EQ(first.previous, kNoPosition);
    const auto second = value(log->append_epoch(EpochNumber(4), leader));
    EXPECT_EQ(second.previous.value(), 0);
    EXPECT_EQ(log->append_epoch(EpochNumber(4), leader).error().code, Errc::kInvalidArgument);
    EXPECT_EQ(disk.checkpoint("epoch.chk"), second.position.value());
    // Each record is followed by its event; the second event follows the first by number.
    std::vector<std::int64_t> numbers;
    LogCursor cursor(*log, LogPosition(0), log->end());
    while (const auto record = value(cursor.next())) {
      if (const auto* event = record->prepare()) {
        EXPECT_EQ(event->stream, "$epoch-information");
        EXPECT_EQ(event->flags, 0x0127);
        numbers.push_back(event->event_number().value());
      }
    }
    EXPECT_EQ(numbers, (Positions{0, 1}));
  }
  const auto log = disk.open();
  ASSERT_EQ(log->epochs().all().size(), 2U);
  EXPECT_EQ(log->epochs().last()->leader_instance_id, leader);
}

TEST(Append, EpochsAreFoundWithoutTheirCheckpoint) {
  SmallLog disk;
  disk.open();
  {
    const auto log = disk.open();
    value(log->append_epoch(EpochNumber(0), disk.random.uuid()));
    ok(log->complete_chunk());
    value(log->append_epoch(EpochNumber(1), disk.random.uuid()));
    disk.append_sized(*log, 200);
    ok(log->complete_chunk());
  }
  for (const std::int64_t stored : {-1, 0}) {
    disk.put_checkpoint("epoch.chk", stored);
    const auto log = disk.open();
    ASSERT_EQ(log->epochs().all().size(), 2U) << stored;
    ok(log->flush_checkpoints());
    EXPECT_EQ(disk.checkpoint("epoch.chk"), 2000);
  }
}

TEST(Append, APublishedChaserIsSeenByOthersAndDurableWithTheNextFlushOfCheckpoints) {
  for (const bool flushed : {false, true}) {
    SmallLog disk;
    disk.open();
    {
      const auto log = disk.open();
      disk.append_sized(*log, 200);
      ok(log->flush());
      log->set_chaser(LogPosition(200));
      ok(log->flush_checkpoints());
      disk.append_sized(*log, 200);
      log->set_chaser(LogPosition(400));
      ok(log->publish_chaser());
      EXPECT_EQ(disk.checkpoint("chaser.chk"), 200) << "writer.chk is not beyond";
      ok(log->flush());
      ok(log->publish_chaser());
      EXPECT_EQ(disk.checkpoint("chaser.chk"), 400);
      if (flushed) {
        ok(log->flush_checkpoints());
      }
      disk.files.cut_power();
    }
    EXPECT_EQ(disk.checkpoint("chaser.chk"), flushed ? 400 : 200);
    EXPECT_EQ(disk.checkpoint("writer.chk"), 400);
  }
}

TEST(Append, AFullDiskFailsTheWriterAndLosesNothing) {
  SmallLog disk;
  disk.options.chunk_size = 100'000;
  {
    const auto log = disk.open();
    disk.append_sized(*log, 200);
    ok(log->flush());
    disk.files.set_free_space(0);
    Prepare prepare = disk.event();
    const std::string data(50'000, 'x');
    prepare.data = as_bytes(data);
    value(log->append(std::span(&prepare, 1)));  // still in memory
    const auto outcome = log->flush();
    ASSERT_FALSE(outcome.has_value());
    EXPECT_EQ(outcome.error().code, Errc::kNoSpace);
    disk.files.set_free_space(std::nullopt);
    EXPECT_FALSE(log->flush().has_value()) << "a failed writer stays failed";
    EXPECT_EQ(log->end().value(), 200);
  }
  const auto log = disk.open();
  EXPECT_EQ(disk.positions(*log), (Positions{0}));
}

TEST(Append, IsRefusedOnALogOpenedForReading) {
  SmallLog disk;
  disk.open();
  const auto log = disk.open_read_only();
  Prepare prepare = disk.event();
  EXPECT_EQ(log->append(std::span(&prepare, 1)).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(log->flush().error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace verger::log
