#include "engine/log/chunk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "engine/log/chunk_checksum.h"
#include "tests/support/results.h"
#include "tests/unit/engine_log/hex.h"

namespace verger::log {
namespace {

const char* const kRecord = R"(
  68000000 0001 0000000000000000 2701 0000000000000000 00000000 ffffffffffffffff 06746573742d31
  11111111222233334444555555555555 aaaaaaaabbbbccccddddeeeeeeeeeeee 00c000995c0adc08
  09546573744576656e74 07000000 7b2261223a317d 00000000 68000000)";

ChunkHeader example_header() {
  ChunkHeader header;
  header.chunk_id = value(Uuid::parse("00112233-4455-6677-8899-aabbccddeeff"));
  return header;
}

void write(FileSystem& files, const Path& path, ByteView bytes) {
  const auto file = value(files.open(path, OpenMode::kCreate));
  ok(file->write_at(0, bytes));
}

TEST(ChunkHeader, HasTheBytesOfTheExample) {
  const auto bytes = encode_chunk_header(example_header());
  EXPECT_EQ(to_hex(ByteView(bytes).first(36)),
            "02030000001000000000000000000000000033221100554477668899aabbccddeeff0400");
  const auto again = value(decode_chunk_header(bytes));
  EXPECT_EQ(again.chunk_id.to_string(), "00112233-4455-6677-8899-aabbccddeeff");
  EXPECT_EQ(encode_chunk_header(again), bytes);
}

TEST(ChunkHeader, RefusesForeignNewerAndImpossibleOnes) {
  const auto refusal = [](std::size_t offset, std::uint8_t byte) {
    auto bytes = encode_chunk_header(example_header());
    bytes[offset] = std::byte{byte};
    const auto header = decode_chunk_header(bytes);
    return header ? Errc::kExists : header.error().code;
  };
  EXPECT_EQ(refusal(0, 1), Errc::kCorruption) << "an index table";
  EXPECT_EQ(refusal(1, 5), Errc::kUnsupported) << "a newer format";
  EXPECT_EQ(refusal(35, 1), Errc::kUnsupported) << "an encrypted chunk";
  EXPECT_EQ(refusal(5, 0x80), Errc::kCorruption) << "a negative chunk size";
  EXPECT_EQ(refusal(6, 1), Errc::kCorruption) << "an end below the start";
  EXPECT_EQ(refusal(100, 1), Errc::kCorruption) << "a reserved byte";
}

TEST(ChunkFileName, IsExact) {
  EXPECT_EQ(chunk_file_name(ChunkNumber(12), 3), "chunk-000012.000003");
  const auto name = parse_chunk_file_name("chunk-000012.000003");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->start.value(), 12);
  EXPECT_EQ(name->version, 3);
  for (const char* other : {"chunk-001.000", "chunk-000001.000000.tmp", "chunk-00000a.000000",
                            "Chunk-000001.000000", "chunk-000001-000000", ""}) {
    EXPECT_FALSE(parse_chunk_file_name(other)) << other;
  }
}

TEST(ChunkWriter, ACompletedChunkHasTheMd5OfTheExample) {
  MemoryFileSystem files;
  auto writer = value(ChunkWriter::create(files, "/", "a.tmp", example_header()));
  ok(writer.append(LogPosition(0), from_hex(kRecord)));
  const auto finished = value(writer.finish());
  EXPECT_EQ(finished.file_size, 4096U);
  EXPECT_EQ(to_hex(finished.footer.md5), "d685cc5b2dd54c2b50df1b3a7ddeb023");
  const Bytes file = value(read_file(files, finished.path));
  EXPECT_EQ(to_hex(ByteView(file).subspan(0xf80, 17)), "0370000000700000000000000000000000");
  ok(value(Chunk::open_completed(files, finished.path))->verify_md5());
}

TEST(ChunkWriter, AMergedChunkHasTheMapAndMd5OfTheExample) {
  MemoryFileSystem files;
  ChunkHeader header = example_header();
  header.end = ChunkNumber(1);
  header.scavenged = true;
  Bytes second = from_hex(kRecord);
  const LogPosition position(268436456);
  store_le(second.data() + 6, position.value());
  store_le(second.data() + 0x10, position.value());
  store_le(second.data() + 0x1c, std::int64_t{4});
  second[0x3a] = std::byte{0x56};
  second[0x66] = std::byte{'2'};
  auto writer = value(ChunkWriter::create(files, "/", "a.tmp", header));
  ok(writer.append(LogPosition(0), from_hex(kRecord)));
  ok(writer.append(position, second));
  const auto finished = value(writer.finish());
  const Bytes file = value(read_file(files, finished.path));
  EXPECT_EQ(file.size(), 4096U);
  EXPECT_EQ(to_hex(ByteView(file).subspan(0x160, 24)),
            "00000000000000000000000070000000e803001000000000");
  EXPECT_EQ(to_hex(ByteView(file).subspan(0xf80, 17)), "03e0000000580400100000000018000000");
  EXPECT_EQ(to_hex(finished.footer.md5), "213a5ba65553daf7bfe22470ff5f835b");

  const auto chunk = value(Chunk::open_completed(files, finished.path));
  const auto posmap = value(chunk->posmap());
  const auto data = ByteView(file).subspan(kChunkHeaderSize, 2 * second.size());
  auto copy = value(ChunkWriter::create(files, "/", "b.tmp", header));
  ok(copy.append_copied(LogPosition(0), posmap, data));
  EXPECT_EQ(copy.append_copied(LogPosition(0), posmap, data).error().code, Errc::kInvalidArgument)
      << "it would not follow";
  auto in_pieces = value(ChunkWriter::create(files, "/", "c.tmp", header));
  ok(in_pieces.append_copied(LogPosition(0), std::span(posmap).first(1),
                             data.first(second.size())));
  ok(in_pieces.append_copied(LogPosition(0), std::span(posmap).last(1), data.last(second.size())));
  EXPECT_EQ(value(read_file(files, value(in_pieces.finish()).path)), file);

  Bytes buffer;
  EXPECT_EQ(value(chunk->read(position, buffer)).file_offset, 240U);
  EXPECT_EQ(chunk->read(LogPosition(112), buffer).error().code, Errc::kNotFound);
  EXPECT_EQ(value(chunk->read_at_or_after(LogPosition(1), buffer))->position(), position);
  EXPECT_FALSE(value(chunk->read_at_or_after(position + 1, buffer)).has_value());
  EXPECT_EQ(value(chunk->read_before(position, buffer))->position(), LogPosition(0));
  EXPECT_EQ(value(chunk->read_before(chunk->end_position(), buffer))->position(), position);
  EXPECT_FALSE(value(chunk->read_before(LogPosition(0), buffer)).has_value());
}

TEST(ChunkWriter, RemovesItsFileUnlessFinished) {
  MemoryFileSystem files;
  {
    auto writer = value(ChunkWriter::create(files, "/", "a.tmp", example_header()));
    ok(writer.append(LogPosition(0), from_hex(kRecord)));
    EXPECT_FALSE(writer.append(LogPosition(50), from_hex(kRecord)).has_value());
  }
  EXPECT_FALSE(value(files.exists("/a.tmp")));
}

TEST(ChunkWriter, AnEmptiedChunkIsAsSmallAsCanBe) {
  MemoryFileSystem files;
  ChunkHeader header = example_header();
  header.scavenged = true;
  auto writer = value(ChunkWriter::create(files, "/", "a.tmp", header));
  const auto finished = value(writer.finish());
  EXPECT_EQ(finished.file_size, 4096U);
  const auto chunk = value(Chunk::open_completed(files, finished.path));
  Bytes buffer;
  EXPECT_EQ(chunk->read(LogPosition(0), buffer).error().code, Errc::kNotFound);
  EXPECT_FALSE(value(chunk->read_at_or_after(LogPosition(0), buffer)).has_value());
  EXPECT_FALSE(value(chunk->read_before(chunk->end_position(), buffer)).has_value());
  auto scanner = value(ChunkScanner::open(chunk, LogPosition(77)));
  EXPECT_FALSE(value(scanner.next()).has_value());
}

/// A scavenged chunk of format 2: no padding, map entries of 8 bytes, the older footer.
TEST(Chunk, ReadsTheOldestFormat) {
  MemoryFileSystem files;
  ChunkHeader header = example_header();
  header.min_compatible_version = 2;
  header.version = 0;
  header.scavenged = true;
  Bytes file;
  append_bytes(file, encode_chunk_header(header));
  Bytes record = from_hex(kRecord);
  store_le(record.data() + 6, std::int64_t{500});
  append_bytes(file, record);
  append_le(file, std::int32_t{0});
  append_le(file, std::int32_t{500});
  ChunkFooter footer;
  footer.completed = true;
  footer.map_12_bytes = false;
  footer.physical_data_size = 112;
  footer.logical_data_size = 612;
  footer.map_size = 8;
  append_bytes(file, encode_chunk_footer(footer));
  const auto sum = md5(ByteView(file).first(file.size() - 16));
  std::ranges::copy(sum, file.end() - 16);
  EXPECT_EQ(to_hex(ByteView(file).subspan(file.size() - 128, 13)), "01700000006402000008000000");
  write(files, "/chunk-000000.000001", file);
  const auto chunk = value(Chunk::open_completed(files, "/chunk-000000.000001"));
  ok(chunk->verify_md5());
  Bytes buffer;
  EXPECT_EQ(value(chunk->read(LogPosition(500), buffer)).position().value(), 500);
  EXPECT_EQ(value(chunk->posmap()).at(0).local, 500);
}

/// One chunk with many records, half of them left out: lookups over several pages of the map.
TEST(Chunk, FindsEveryRecordThroughALongMap) {
  MemoryFileSystem files;
  ChunkHeader header = example_header();
  header.scavenged = true;
  auto writer = value(ChunkWriter::create(files, "/", "a.tmp", header));
  constexpr int kCount = 2000;
  for (int i = 0; i < kCount; ++i) {
    Bytes record = from_hex(kRecord);
    store_le(record.data() + 6, std::int64_t{224} * i);
    ok(writer.append(LogPosition(224 * i), record));
  }
  const auto chunk = value(Chunk::open_completed(files, value(writer.finish()).path));
  Bytes buffer;
  for (int i = 0; i < kCount; ++i) {
    const LogPosition at(224 * i);
    EXPECT_EQ(value(chunk->read(at, buffer)).position(), at);
    EXPECT_FALSE(value(chunk->has_record_at(at + 112)));
    const auto after = value(chunk->read_at_or_after(at + 1, buffer));
    EXPECT_EQ(after ? after->position().value() : -1, i + 1 < kCount ? 224 * (i + 1) : -1);
    EXPECT_EQ(value(chunk->read_before(at + 1, buffer))->position(), at);
  }
}

/// Read to the end, or not; with a thread of its own, or without.
TEST(ChunkScanner, ReadsAheadInPiecesOfAnySize) {
  MemoryFileSystem files;
  auto writer = value(ChunkWriter::create(files, "/", "a.tmp", example_header()));
  constexpr std::int64_t kCount = 50;
  Bytes all;
  for (std::int64_t i = 0; i < kCount; ++i) {
    Bytes record = from_hex(kRecord);
    store_le(record.data() + 6, static_cast<std::int64_t>(record.size()) * i);
    ok(writer.append(LogPosition(static_cast<std::int64_t>(record.size()) * i), record));
    append_bytes(all, record);
  }
  const std::shared_ptr<const Chunk> chunk =
      value(Chunk::open_completed(files, value(writer.finish()).path));
  for (const std::size_t size : {1UZ, 7UZ, 111UZ, 112UZ, 113UZ, 1000UZ, 100'000UZ}) {
    SCOPED_TRACE(size);
    auto scanner = value(ChunkScanner::open(chunk, LogPosition(0)));
    EXPECT_TRUE(value(scanner.next_read(3)).empty());
    Bytes read;
    Bytes framed;
    std::int64_t records = 0;
    while (true) {
      const auto piece = value(scanner.read_ahead(size));
      if (piece.empty()) {
        break;
      }
      append_bytes(read, piece);
      while (true) {
        const auto batch = value(scanner.next_read(3));
        if (batch.empty()) {
          break;
        }
        for (const auto& record : batch) {
          EXPECT_EQ(record.position().value(), 112 * records++);
          append_bytes(framed, record.framed);
        }
      }
      EXPECT_LT(read.size() - framed.size(), 112U);
    }
    EXPECT_EQ(records, kCount);
    EXPECT_EQ(read, all);
    EXPECT_EQ(framed, all);
    EXPECT_FALSE(value(scanner.next()).has_value());
  }
}

TEST(ChunkChecksum, IsComparedWhileTheChunkIsRead) {
  MemoryFileSystem files;
  ChunkHeader header = example_header();
  header.scavenged = true;
  auto writer = value(ChunkWriter::create(files, "/", "a.tmp", header));
  constexpr int kCount = 3000;
  for (int i = 0; i < kCount; ++i) {
    Bytes record = from_hex(kRecord);
    store_le(record.data() + 6, std::int64_t{224} * i);
    ok(writer.append(LogPosition(224 * i), record));
  }
  const auto finished = value(writer.finish());
  const auto check = [&](const Path& path, int count, bool in_background) -> Result<void> {
    const std::shared_ptr<const Chunk> chunk = value(Chunk::open_completed(files, path));
    ChunkChecksum checksum(chunk, in_background);
    auto scanner = value(ChunkScanner::open(chunk, LogPosition(0)));
    for (int i = 0; i < count; ++i) {
      VERGER_TRY(const auto record, scanner.next());
      VERGER_RETURN_IF_ERROR(checksum.add(*record));
    }
    return checksum.finish();
  };
  const Bytes good = value(read_file(files, finished.path));
  const std::size_t places[] = {20,
                                128 + 0x62,
                                128 + 112 * 2500 + 0x62,
                                128 + 112 * kCount + 5,
                                good.size() - 200,
                                good.size() - 1};
  for (const bool in_background : {false, true}) {
    for (const int count : {0, 1, 2400, kCount}) {
      SCOPED_TRACE(count);
      ok(check(finished.path, count, in_background));
      for (const auto place : places) {
        SCOPED_TRACE(place);
        Bytes bad = good;
        bad[place] ^= std::byte{1};
        write(files, "/bad", bad);
        const auto checked = check("/bad", count, in_background);
        ASSERT_FALSE(checked);
        EXPECT_EQ(checked.error().code, Errc::kCorruption);
        EXPECT_THAT(checked.error().message, testing::HasSubstr("/bad"));
      }
    }
  }
}

/// A scavenged chunk with many records and a gap after every third one.
Result<Bytes> write_scavenged(MemoryFileSystem& files, const std::shared_ptr<Md5Thread>& hasher,
                              bool writes_behind) {
  auto header = example_header();
  header.scavenged = true;
  VERGER_TRY(auto writer, ChunkWriter::create(files, "/", "a.tmp", header, hasher, writes_behind));
  const auto record = from_hex(kRecord);
  const auto size = static_cast<std::int64_t>(record.size());
  for (std::int64_t n = 0; n < 9'000; ++n) {
    VERGER_RETURN_IF_ERROR(writer.append(LogPosition(n * size + n / 3 * 200), record));
  }
  VERGER_TRY(const auto finished, writer.finish());
  return read_file(files, finished.path);
}

TEST(ChunkWriter, MakesTheSameFileWhoeverWritesIt) {
  MemoryFileSystem alone;
  MemoryFileSystem hashed;
  MemoryFileSystem behind;
  const auto bytes = value(write_scavenged(alone, nullptr, false));
  EXPECT_GT(bytes.size(), std::size_t{1} << 20U) << "several pieces are handed over";
  EXPECT_EQ(value(write_scavenged(hashed, std::make_shared<Md5Thread>(), false)), bytes);
  EXPECT_EQ(value(write_scavenged(behind, std::make_shared<Md5Thread>(), true)), bytes);
}

TEST(ChunkWriter, ThatWritesBehindReportsAFullDiskAndLeavesNothing) {
  MemoryFileSystem files;
  files.set_free_space(std::uint64_t{700} << 10U);
  const auto written = write_scavenged(files, std::make_shared<Md5Thread>(), true);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::kNoSpace);
  EXPECT_FALSE(value(files.exists("/a.tmp")));
}

TEST(VerifiedChunk, IsSoundOrDamaged) {
  MemoryFileSystem files;
  auto writer = value(ChunkWriter::create(files, "/", "a.tmp", example_header()));
  ok(writer.append(LogPosition(0), from_hex(kRecord)));
  const auto finished = value(writer.finish());
  const auto never = [] { return Result<void>(); };
  const auto good = value(Chunk::open_completed(files, finished.path));
  auto bad = value(read_file(files, finished.path));
  bad.back() ^= std::byte{1};
  write(files, "/bad", bad);
  const auto damaged = value(Chunk::open_completed(files, "/bad"));
  for (const auto& chunks : {std::vector{good, damaged}, std::vector{damaged, good, good}}) {
    std::vector<VerifiedFile> compared;
    for (const auto& chunk : chunks) {
      compared.push_back(verified_file(chunk));
    }
    FileVerification verification(std::move(compared));
    ok(verification.finish(good.get(), never));
    const auto checked = verification.finish(damaged.get(), never);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, Errc::kCorruption);
    EXPECT_THAT(checked.error().message, testing::HasSubstr("/bad"));
  }
  EXPECT_FALSE(FileVerification({verified_file(good)}).includes(damaged.get()));
}

TEST(Chunk, DamageSaysFileAndPlace) {
  MemoryFileSystem files;
  auto writer = value(ChunkWriter::create(files, "/", "a.tmp", example_header()));
  ok(writer.append(LogPosition(0), from_hex(kRecord)));
  const Bytes good = value(read_file(files, value(writer.finish()).path));
  const auto problem = [&](std::size_t size, std::size_t offset, std::uint8_t byte) {
    Bytes bad(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    if (offset < size) {
      bad[offset] = std::byte{byte};
    }
    const Path path = "/chunk-000000.000000";
    if (value(files.exists(path))) {
      ok(files.remove(path));
    }
    write(files, path, bad);
    const auto chunk = Chunk::open_completed(files, path);
    if (!chunk) {
      return chunk.error().message;
    }
    auto scanner = value(ChunkScanner::open(*chunk, LogPosition(0)));
    const auto record = scanner.next();
    const auto sum = (*chunk)->verify_md5();
    EXPECT_FALSE(sum.has_value());
    return record ? sum.error().message : record.error().message;
  };
  const auto says = [](const std::string& message, std::string_view what) {
    EXPECT_NE(message.find("/chunk-000000.000000"), std::string::npos) << message;
    EXPECT_NE(message.find(what), std::string::npos) << message;
  };
  says(problem(100, 200, 0), "at least 256 bytes");
  says(problem(4095, 4096, 0), "");
  says(problem(4096, 0, 7), "file type (offset 0)");
  says(problem(4096, 6, 1), "header");
  says(problem(4096, 0xf80, 2), "not completed");
  says(problem(4096, 0xf82, 1), "footer");
  says(problem(4096, 0x80, 0x69), "record at file offset 128");
  says(problem(4096, 0x84, 9), "record type 9");
  says(problem(4096, 0x86, 1), "log position is 1");
  says(problem(4096, 128 + 0x61, 'x'), "MD5");
  says(problem(4096, 0xff0, 0), "MD5");
}

}  // namespace
}  // namespace verger::log
