// What opening makes of a directory: crash states are recovered, damage is refused and changes
// nothing.
#include <functional>
#include <gtest/gtest.h>

#include "engine/base/forwarding_file_system.h"
#include "tests/unit/engine_log/hex.h"
#include "tests/unit/engine_log/small_log.h"

namespace verger::log {
namespace {

using Names = std::vector<std::string>;
using Positions = std::vector<std::int64_t>;

/// Two completed chunks of two records each, and one record in the active third.
struct ThreeChunks : SmallLog {
  ThreeChunks() {
    const auto log = open();
    for (int i = 0; i < 5; ++i) {
      append_sized(*log, 900);
    }
    ok(log->flush());
    log->set_chaser(log->end());
    ok(log->flush_checkpoints());
    options.create = false;
    options.chunk_size = 0;
  }
  /// Everything in the directory, with contents.
  std::vector<std::pair<std::string, std::string>> everything() {
    std::vector<std::pair<std::string, std::string>> all;
    for (const auto& name : names()) {
      all.emplace_back(name, to_hex(content(name)));
    }
    return all;
  }
  /// Opening for writing is refused with `code`, says `what`, and leaves every byte as it was.
  void refuses(Errc code, std::string_view what) {
    const auto before = everything();
    const auto log = try_open();
    ASSERT_FALSE(log.has_value());
    EXPECT_EQ(log.error().code, code) << log.error().message;
    EXPECT_NE(log.error().message.find(what), std::string::npos) << log.error().message;
    EXPECT_EQ(everything(), before);
  }
  void flip(const std::string& name, std::size_t offset, unsigned mask = 0xff) {
    Bytes bytes = content(name);
    bytes[offset] ^= std::byte{static_cast<unsigned char>(mask)};
    put(name, bytes);
  }
  void cut(const std::string& name, std::size_t size) {
    Bytes bytes = content(name);
    bytes.resize(size);
    put(name, bytes);
  }
  static constexpr std::int64_t kEnd = 4900;
};

const Positions kAll{0, 900, 2000, 2900, 4000};

TEST(Open, ContinuesWhereTheLogEnds) {
  ThreeChunks disk;
  {
    const auto log = disk.open();
    EXPECT_EQ(log->chunk_size(), 2000);
    EXPECT_EQ(disk.positions(*log), kAll);
    EXPECT_EQ(disk.append_sized(*log, 900).value(), 4900);
    EXPECT_EQ(disk.append_sized(*log, 900).value(), 6000);
    ok(log->flush());
    ok(log->chunks()[2]->verify_md5());
  }
  EXPECT_EQ(disk.positions(*disk.open()), (Positions{0, 900, 2000, 2900, 4000, 4900, 6000}));
}

TEST(Open, ReadingChangesNothing) {
  ThreeChunks disk;
  disk.put("foreign.tmp", as_bytes("x"));
  disk.put("chunk-000001.000000.old", as_bytes("x"));
  const auto before = disk.everything();
  disk.files.reset_count();
  const auto log = disk.open_read_only();
  EXPECT_EQ(disk.positions(*log), kAll);
  EXPECT_EQ(disk.files.operation_count(), 0U);
  EXPECT_EQ(disk.everything(), before);
}

TEST(Open, ForWritingIsForOneAtATime) {
  ThreeChunks disk;
  const auto first = disk.open();
  EXPECT_EQ(disk.try_open().error().code, Errc::kRefused);
  EXPECT_EQ(disk.positions(*disk.open_read_only()), kAll);
}

TEST(Open, RemovesTemporaryFilesAndLeavesForeignOnes) {
  ThreeChunks disk;
  disk.put("chunk-000009.000000.3.tmp", as_bytes("x"));
  disk.put("notes.txt", as_bytes("x"));
  disk.put("chunk-9.0", as_bytes("x"));
  disk.open();
  const auto names = disk.names();
  EXPECT_EQ(std::ranges::count(names, "chunk-000009.000000.3.tmp"), 0);
  EXPECT_EQ(std::ranges::count(names, "notes.txt"), 1);
  EXPECT_EQ(std::ranges::count(names, "chunk-9.0"), 1);
}

// --- Crash states ---

TEST(Open, OverwritesWhatLiesBehindWriterChk) {
  ThreeChunks disk;
  Bytes bytes = disk.content("chunk-000002.000000");
  for (std::size_t i = 128 + 900; i < bytes.size(); ++i) {
    bytes[i] = std::byte{0x5a};
  }
  disk.put("chunk-000002.000000", bytes);
  const auto log = disk.open();
  EXPECT_EQ(disk.positions(*log), kAll);
  disk.append_sized(*log, 500);
  ok(log->complete_chunk());
  ok(log->chunks()[2]->verify_md5());
  const Bytes completed = disk.content("chunk-000002.000000");
  EXPECT_EQ(std::ranges::count(completed, std::byte{0x5a}) < 40, true) << "stale bytes are gone";
}

TEST(Open, ReopensACompletedChunkAndRemovesTheEmptyNextOne) {
  ThreeChunks disk;
  const auto header = [&] {
    const auto log = disk.open();
    ok(log->complete_chunk());
    return log->chunks().back()->header();
  }();
  disk.put_checkpoint("writer.chk", ThreeChunks::kEnd);
  const auto log = disk.open();
  EXPECT_EQ(disk.chunk_names(),
            (Names{"chunk-000000.000000", "chunk-000001.000000", "chunk-000002.000000"}));
  EXPECT_EQ(disk.append_sized(*log, 100).value(), 4900);
  ok(log->complete_chunk());
  ok(log->chunks()[2]->verify_md5());
  EXPECT_NE(log->chunks().back()->header().chunk_id, header.chunk_id);
}

TEST(Open, TheNextChunkMayBeMissingOrThereOnABoundary) {
  for (const bool missing : {false, true}) {
    ThreeChunks disk;
    ok(disk.open()->complete_chunk());
    if (missing) {
      ok(disk.files.remove("/db/chunk-000003.000000"));
    }
    const auto log = disk.open();
    EXPECT_EQ(log->end().value(), 6000);
    EXPECT_EQ(log->chunks().size(), missing ? 3U : 4U);
    EXPECT_EQ(disk.append_sized(*log, 100).value(), 6000);
    ok(log->flush());
    EXPECT_EQ(disk.positions(*log).back(), 6000);
  }
}

TEST(Open, TheHigherVersionCountsAndTheOldOneGoes) {
  ThreeChunks disk;
  disk.put("chunk-000000.000003", disk.content("chunk-000000.000000"));
  EXPECT_EQ(disk.open_read_only()->chunks().front()->version(), 3);
  EXPECT_EQ(disk.open()->chunks().front()->version(), 3);
  EXPECT_EQ(disk.chunk_names().front(), "chunk-000000.000003");
  EXPECT_EQ(disk.chunk_names().size(), 3U);
}

TEST(Open, AReceivedChunkAtWriterChkMovesIt) {
  ThreeChunks disk;
  {
    auto log = disk.open();
    auto header = log->chunks().front()->header();
    header.scavenged = true;
    header.start = ChunkNumber(2);
    header.end = ChunkNumber(4);
    auto writer = value(ChunkWriter::create(disk.files, disk.directory, "a.tmp", header));
    ok(log->truncate(LogPosition(4000)));
    value(writer.finish());
    log.reset();
    ok(disk.files.rename("/db/a.tmp", "/db/chunk-000002.000001"));
  }
  EXPECT_EQ(disk.checkpoint("writer.chk"), 4000);
  EXPECT_EQ(disk.open_read_only()->end().value(), 10000);
  EXPECT_EQ(disk.checkpoint("writer.chk"), 4000);
  const auto log = disk.open();
  EXPECT_EQ(log->end().value(), 10000);
  EXPECT_EQ(disk.checkpoint("writer.chk"), 10000);
  EXPECT_EQ(disk.append_sized(*log, 100).value(), 10000);
}

TEST(Open, AnActiveChunkOfFormatTwoBecomesOneOfFormatThree) {
  ThreeChunks disk;
  Bytes bytes = disk.content("chunk-000002.000000");
  bytes[1] = std::byte{2};
  bytes[34] = std::byte{0};
  disk.put("chunk-000002.000000", bytes);
  const auto log = disk.open();
  EXPECT_EQ(to_hex(ByteView(disk.content("chunk-000002.000000")).first(2)), "0203");
  EXPECT_EQ(to_hex(ByteView(disk.content("chunk-000002.000000")).subspan(34, 2)), "0000");
  ok(log->complete_chunk());
  ok(log->chunks()[2]->verify_md5());
}

// --- Damage: refused, and nothing changed ---

TEST(Open, RefusesAWrongWriterChk) {
  for (const auto& [writer, what] : std::vector<std::pair<std::int64_t, const char*>>{
           {0, "chunk-000001.000000 lies behind that"},
           {900, "chunk-000001.000000 lies behind that"},
           {2900, "chunk-000002.000000 lies behind that and holds records"},
           {2000, "chunk-000002.000000 lies behind that and holds records"},
           {4500, "no record ends there"},
           {4901, "no record ends there"},
           {9000, "chunk 3 is missing"},
           {6000, "neither completed nor full"},
           {-1, "cannot be negative"},
           {std::int64_t{1} << 60, "no database has that many chunks"}}) {
    ThreeChunks disk;
    disk.put_checkpoint("chaser.chk", 0);
    disk.put_checkpoint("writer.chk", writer);
    SCOPED_TRACE(writer);
    disk.refuses(writer == 9000 ? Errc::kNotFound : Errc::kCorruption, what);
  }
}

TEST(Open, RefusesCheckpointsThatContradictEachOther) {
  ThreeChunks disk;
  disk.put_checkpoint("chaser.chk", 4901);
  disk.refuses(Errc::kCorruption, "chaser.chk");
  disk.put_checkpoint("chaser.chk", 0);
  disk.put_checkpoint("epoch.chk", 4901);
  disk.refuses(Errc::kCorruption, "epoch.chk");
  disk.put_checkpoint("epoch.chk", 900);
  disk.refuses(Errc::kCorruption, "epoch record at log position 900");
  disk.put_checkpoint("epoch.chk", -1);
  disk.open();
}

TEST(Open, RefusesACheckpointThatIsCutOff) {
  ThreeChunks disk;
  disk.put("writer.chk", {});
  disk.refuses(Errc::kCorruption, "has 0 bytes instead of 8");
  ok(disk.files.remove("/db/writer.chk"));
  disk.refuses(Errc::kCorruption, "is missing although there are chunk files");
  disk.put_checkpoint("writer.chk", ThreeChunks::kEnd);
  disk.put("truncate.chk", {});
  disk.refuses(Errc::kCorruption, "truncate.chk: has 0 bytes instead of 8");
}

TEST(Open, CheckpointsOfOddLengthCountAsTheServerHasIt) {
  ThreeChunks disk;
  disk.put("chaser.chk", from_hex("8403"));
  Bytes long_writer;
  append_le(long_writer, ThreeChunks::kEnd);
  append_le(long_writer, std::int64_t{77});
  disk.put("writer.chk", long_writer);
  ok(disk.files.remove("/db/epoch.chk"));
  const auto log = disk.open();
  EXPECT_EQ(log->checkpoints().chaser.value(), 900);
  EXPECT_EQ(log->end().value(), ThreeChunks::kEnd);
  EXPECT_EQ(disk.checkpoint("epoch.chk"), -1);
}

TEST(Open, RefusesMissingAndForeignDirectories) {
  SmallLog disk;
  disk.options.create = false;
  EXPECT_EQ(disk.try_open().error().code, Errc::kNotFound);
  ok(disk.files.make_directories("/db"));
  disk.put("holiday.jpg", as_bytes("x"));
  const auto refused = disk.try_open();
  EXPECT_EQ(refused.error().code, Errc::kNotFound);
  EXPECT_NE(refused.error().message.find("neither chunk files nor writer.chk"), std::string::npos);
  EXPECT_EQ(disk.names(), Names{"holiday.jpg"});
}

TEST(Open, RefusesDamagedAndMissingChunks) {
  const auto with = [](auto damage, Errc code, std::string_view what) {
    ThreeChunks disk;
    damage(disk);
    SCOPED_TRACE(what);
    disk.refuses(code, what);
  };
  const std::string first = "chunk-000000.000000";
  const std::string active = "chunk-000002.000000";
  with([&](auto& d) { ok(d.files.remove(d.directory / first)); }, Errc::kNotFound,
       "chunk 0 is missing");
  with([&](auto& d) { ok(d.files.remove(d.directory / active)); }, Errc::kNotFound,
       "chunk 2 is missing");
  with([&](auto& d) { d.cut(first, 200); }, Errc::kCorruption, "at least 256 bytes");
  with([&](auto& d) { d.cut(first, 4095); }, Errc::kCorruption, first);
  with([&](auto& d) { d.flip(first, 0); }, Errc::kCorruption, "file type (offset 0)");
  with([&](auto& d) { d.flip(first, 1, 4); }, Errc::kUnsupported, "needs chunk format 7");
  with([&](auto& d) { d.flip("chunk-000001.000000", 35); }, Errc::kUnsupported, "transformed");
  with([&](auto& d) { d.flip("chunk-000001.000000", 6); }, Errc::kCorruption, "header");
  with([&](auto& d) { d.flip("chunk-000001.000000", 2, 1); }, Errc::kInvalidArgument, "chunk size");
  with([&](auto& d) { d.flip(first, 4096 - 128, 1); }, Errc::kCorruption, "not completed");
  with([&](auto& d) { d.flip(first, 4096 - 127, 1); }, Errc::kCorruption, "footer");
  with([&](auto& d) { d.cut(active, 128 + 899); }, Errc::kCorruption, "writer.chk says");
  with([&](auto& d) { d.flip(active, 128 + 897); }, Errc::kCorruption, "no record ends there");
  with([&](auto& d) { d.put("chunk-000007.000000", d.content(active)); }, Errc::kCorruption,
       "chunk-000007.000000 lies behind that");
  with([&](auto& d) { d.put("chunk-000003.000001", d.content(first)); }, Errc::kCorruption,
       "chunk-000003.000001");
  with([&](auto& d) { d.options.chunk_size = 4000; }, Errc::kInvalidArgument,
       "was written with chunk size 2000");
}

TEST(Open, ExactlyTheLengthOfItsRecordsIsEnoughForTheActiveChunk) {
  ThreeChunks disk;
  disk.cut("chunk-000002.000000", 128 + 900);
  const auto log = disk.open();
  EXPECT_EQ(disk.positions(*log), kAll);
}

/// Lets something happen right after a directory was listed.
class BusyDirectory final : public ForwardingFileSystem {
 public:
  BusyDirectory(FileSystem& files, std::function<void()> then)
      : ForwardingFileSystem(files), then_(std::move(then)) {}
  Result<std::vector<DirectoryEntry>> list(const Path& directory) override {
    auto entries = below().list(directory);
    then_();
    return entries;
  }

 private:
  std::function<void()> then_;
};

void rewrite_first_chunk(SmallLog& disk, TransactionLog& log) {
  auto header = log.chunks().front()->header();
  header.scavenged = true;
  auto output = value(ChunkWriter::create(disk.files, disk.directory, "s.tmp", header));
  auto scanner = value(ChunkScanner::open(log.chunks().front(), LogPosition(0)));
  while (const auto record = value(scanner.next())) {
    ok(output.append(record->position(), record->framed));
  }
  value(log.switch_in_chunk(value(output.finish()).path));
}

TEST(Open, ReadingCopesWithChunksSwitchedUnderIt) {
  ThreeChunks disk;
  const auto writer = disk.open();
  const auto reader = disk.open_read_only();
  int switches = 0;
  BusyDirectory busy(disk.files, [&] {
    if (switches < 3) {  // the file that was listed is gone when it is opened
      ++switches;
      rewrite_first_chunk(disk, *writer);
    }
  });
  const auto log =
      value(TransactionLog::open(busy, disk.directory, {}, disk.clock, disk.random, null_log()));
  EXPECT_EQ(switches, 3);
  EXPECT_EQ(log->chunks().front()->version(), 3);
  EXPECT_EQ(disk.positions(*log), kAll);
  EXPECT_EQ(disk.positions(*reader), kAll) << "a reader with the old file open still reads it";
}

TEST(Open, ReadingCopesWithALogThatGrowsOnUnderIt) {
  ThreeChunks disk;
  const auto writer = disk.open();
  int rounds = 0;
  BusyDirectory busy(disk.files, [&] {
    if (rounds < 3) {  // two chunks further than writer.chk was when it was read
      ++rounds;
      for (int i = 0; i < 6; ++i) {
        disk.append_sized(*writer, 900);
      }
      ok(writer->flush());
    }
  });
  const auto log =
      value(TransactionLog::open(busy, disk.directory, {}, disk.clock, disk.random, null_log()));
  EXPECT_GE(disk.positions(*log).size(), kAll.size());
}

}  // namespace
}  // namespace verger::log
